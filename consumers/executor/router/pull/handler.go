package pull

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"penstock/infra/door"
	"penstock/schemas/control"
)

// retryAfter is what a client is told to wait where too many wait, in seconds.
const retryAfter = 5

// asking is one request.
type asking struct {
	*Server
	w http.ResponseWriter
	r *http.Request
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := asking{s, w, r}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	who, refused := s.door.Enter(r)
	if refused != 0 {
		word, text := door.Refusal(w.Header(), refused)
		a.fail(refused, Failure{Error: word, Text: text})
		return
	}
	if !a.within(who) {
		return
	}
	q, status, f := s.read(r.URL)
	switch {
	case status != 0:
		a.fail(status, f)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		a.fail(http.StatusMethodNotAllowed, Failure{Error: failMethod, Text: "allowed: GET, HEAD"})
	case !s.opts.Ready():
		w.Header().Set("Retry-After", "1")
		a.fail(http.StatusServiceUnavailable, Failure{Error: failNotReady, Text: "what is in force is still being read"})
	default:
		a.tell(q)
	}
}

// within takes a question from the client's rate and from that of all.
func (a *asking) within(who door.Client) bool {
	wait, by := a.rates.Take(who, 1, a.opts.Clock.Now())
	if by == "" {
		return true
	}
	a.metrics.limited.WithLabelValues(by).Inc()
	a.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	a.fail(http.StatusTooManyRequests, Failure{Error: failLimited, Text: "too many questions, of this " + by + ": try again later"})
	return false
}

// tell answers a question, at once or when there is something else to tell.
func (a *asking) tell(q question) {
	now, changed, err := a.look(q)
	if err == nil && q.wait > 0 && a.has(now) {
		if a.waiting.Add(1) > int64(a.opts.Waiting) {
			a.waiting.Add(-1)
			a.metrics.waits.WithLabelValues(endFull).Inc()
			a.w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
			a.fail(http.StatusServiceUnavailable, Failure{Error: failWaiting, Text: "too many clients wait: come later, or do not wait"})
			return
		}
		a.metrics.waiting.Inc()
		now, err = a.await(q, now, changed)
		a.metrics.waiting.Dec()
		a.waiting.Add(-1)
	}
	if err != nil {
		a.log.Error().Err(err).Msg("a split could not be told")
		a.fail(http.StatusInternalServerError, Failure{Error: failUnavailable, Text: "the answer can't be encoded"})
		return
	}
	a.send(now)
}

// look makes the answer to a question; changed is closed when it may be another.
func (a *asking) look(q question) (answered, <-chan struct{}, error) {
	changed := a.opts.Shares.Changed(q.link.From)
	t, has := a.opts.Shares.Table(q.link.From)
	now, err := a.answer(q.link, t, has)
	return now, changed, err
}

// await waits for an answer that is another than now.
func (a *asking) await(q question, now answered, changed <-chan struct{}) (answered, error) {
	// The limit for reading a request is over for this one, and must not be taken for
	// a client that went away. A writer that knows no limits needs nothing undone.
	_ = http.NewResponseController(a.w).SetReadDeadline(time.Time{})
	timer := a.opts.Clock.NewTimer(q.wait)
	defer timer.Stop()
	how, err := endChanged, error(nil)
	for before := now.tag; err == nil && now.tag == before && how == endChanged; {
		select {
		case <-changed:
			now, changed, err = a.look(q)
		case <-timer.C():
			how = endTime
		case <-a.ending:
			how = endDrain
			a.w.Header().Set("Connection", "close")
		case <-a.r.Context().Done():
			how = endLeft
		}
	}
	a.metrics.waits.WithLabelValues(how).Inc()
	return now, err
}

// send sends an answer, or that it is the one that the client has.
func (a *asking) send(now answered) {
	a.age()
	h := a.w.Header()
	h.Set("ETag", now.tag)
	h.Set(control.HeaderSplitServers, now.servers)
	h.Set("Cache-Control", "private, no-cache") // kept, but asked about each time
	if a.has(now) {
		a.count(http.StatusNotModified)
		a.w.WriteHeader(http.StatusNotModified)
		return
	}
	a.body(http.StatusOK, now.body)
}

// has reports whether the client has an answer: by its tag, and if the client says
// by which servers, by these.
func (a *asking) has(now answered) bool {
	servers := a.r.Header.Get(control.HeaderSplitServers)
	return door.HasTag(a.r, now.tag) && (servers == "" || servers == now.servers)
}

// age says how old what is known is, as caches do too (RFC 9111 §5.1; Warning is of
// RFC 7234 §5.5, which some still read).
func (a *asking) age() {
	seconds := int64(math.Ceil(a.silence().Seconds()))
	h := a.w.Header()
	h.Set(control.HeaderSplitAge, strconv.FormatInt(seconds, 10))
	if seconds > 0 {
		a.metrics.stale.Inc()
		h.Set("Age", strconv.FormatInt(seconds, 10))
		h.Set("Warning", `112 - "Disconnected Operation"`)
	}
}

// silence is for how long the bus has been away, 0 while it is there.
func (s *Server) silence() time.Duration {
	now := s.opts.Clock.Now()
	if s.opts.Connected() {
		s.heard.Store(now.UnixNano())
		return 0
	}
	return max(1, now.Sub(time.Unix(0, s.heard.Load())))
}

func (a *asking) fail(status int, f Failure) {
	b, err := json.Marshal(f)
	if err != nil {
		b = []byte(`{"error":"` + failUnavailable + `","text":"the answer can't be encoded"}`) // of strings alone it can
	}
	a.w.Header().Set("Cache-Control", "no-store")
	a.body(status, append(b, '\n'))
}

func (a *asking) body(status int, b []byte) {
	a.count(status)
	door.Reply(a.w, a.r, status, b)
}

func (a *asking) count(status int) {
	a.metrics.requests.WithLabelValues(strconv.Itoa(status)).Inc()
}
