package redirector

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"penstock/infra/door"
)

const (
	// staleFor is how long caches may keep an answer from a directory that is not
	// in step: long enough not to be asked for everything at once.
	staleFor = 10 * time.Second
	// retryAfter is what a client is told to wait for a directory that is not to be
	// believed, in seconds.
	retryAfter = 5
	// bytesAnOwner bounds the body of a batch: an id with its quotes, each byte
	// escaped.
	bytesAnOwner = 6*maxOwner + 8
	maxBody      = 4 << 20
)

// Headers of ours.
const (
	headerSite    = "Penstock-Site"
	headerVersion = "Penstock-Version"
	headerAge     = "Penstock-Age"
)

// answerer answers one request.
type answerer struct {
	*Redirector
	w    http.ResponseWriter
	r    *http.Request
	what string
	now  time.Time
}

// ServeHTTP answers a request.
func (r *Redirector) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a := answerer{Redirector: r, w: w, r: req, what: whatNone, now: r.opts.Clock.Now()}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	who, refused := r.door.Enter(req)
	if refused != 0 {
		word, text := door.Refusal(w.Header(), refused)
		a.fail(refused, Failure{Error: word, Text: text})
		return
	}
	t, err := parse(req.RequestURI)
	a.what = t.what
	switch {
	case errors.Is(err, errPath) && t.what == whatNone:
		a.fail(http.StatusNotFound, Failure{Error: failPath, Text: "ask for " + locationsPath + "/OWNER or " + redirectPath + "OWNER/PATH"})
	case err != nil:
		a.fail(http.StatusBadRequest, Failure{Error: failPath, Text: err.Error()})
	case !a.method(t.what):
	case t.what == whatBatch:
		a.batch(who)
	case !a.within(who, 1):
	case t.what == whatLocation:
		a.location(t.owner)
	default:
		a.redirect(t)
	}
}

// allowed are the methods by what is asked for.
var allowed = map[string]string{
	whatLocation: "GET, HEAD",
	whatBatch:    "POST",
	whatRedirect: "GET, HEAD, POST, PUT, PATCH, DELETE",
}

func (a *answerer) method(what string) bool {
	for m := range strings.SplitSeq(allowed[what], ", ") {
		if m == a.r.Method {
			return true
		}
	}
	a.w.Header().Set("Allow", allowed[what])
	a.fail(http.StatusMethodNotAllowed, Failure{Error: failMethod, Text: "allowed: " + allowed[what]})
	return false
}

// within takes lookups from the client's rate and from that of all.
func (a *answerer) within(who door.Client, n int) bool {
	wait, by := a.rates.Take(who, n, a.now)
	if by == "" {
		return true
	}
	a.metrics.limited.WithLabelValues(by).Add(float64(n))
	a.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	a.fail(http.StatusTooManyRequests, Failure{Error: failLimited, Text: "too many lookups, of this " + by + ": try again later"})
	return false
}

// believed returns how fresh the directory is, and says so in the headers; or it
// answers that it isn't to be believed.
func (a *answerer) believed() (age, bool) {
	fresh, why := a.fresh()
	h := a.w.Header()
	if why != failNotReady {
		h.Set(headerAge, strconv.FormatInt(fresh.seconds(), 10))
	}
	switch why {
	case "":
		return fresh, true
	case failNotReady:
		h.Set("Retry-After", "1")
		a.fail(http.StatusServiceUnavailable, Failure{Error: why, Text: "the locations are still being read"})
	default:
		h.Set("Retry-After", strconv.Itoa(retryAfter))
		seconds := fresh.json()
		a.fail(http.StatusServiceUnavailable, Failure{Error: why, Text: "the bus is away, and what was last known is too old", Age: &seconds})
	}
	return fresh, false
}

// cache says how long an answer may be kept: until the window ends, before which
// nothing is decided. Of a directory that is not in step it says how old it is, as
// caches do (RFC 9111 §5.1; Warning is of RFC 7234 §5.5, which some still read).
func (a *answerer) cache(fresh age) {
	h := a.w.Header()
	keep := time.Duration(0)
	if a.opts.WindowEnd != nil {
		keep = max(0, a.opts.WindowEnd(a.now).Sub(a.now))
	}
	seconds := int64(keep / time.Second)
	if fresh.stale() {
		h.Set("Age", strconv.FormatInt(fresh.seconds(), 10))
		if fresh.connected {
			h.Set("Warning", `110 - "Response is Stale"`)
		} else {
			h.Set("Warning", `112 - "Disconnected Operation"`)
		}
		if seconds > 0 { // caches take the age off
			seconds = fresh.seconds() + min(seconds, int64(staleFor/time.Second))
		}
	}
	if seconds == 0 {
		h.Set("Cache-Control", "no-cache")
		return
	}
	scope := "private"
	if a.opts.Public {
		scope = "public"
	}
	h.Set("Cache-Control", scope+", max-age="+strconv.FormatInt(seconds, 10))
}

// location answers GET /v1/locations/{owner}.
func (a *answerer) location(owner string) {
	fresh, ok := a.believed()
	if !ok {
		return
	}
	l, known := a.locate(owner, fresh)
	a.cache(fresh)
	if !known {
		a.fail(http.StatusNotFound, a.missing(owner, fresh))
		return
	}
	tag := `"` + strconv.FormatUint(l.Version, 10) + `"`
	h := a.w.Header()
	h.Set("ETag", tag)
	h.Set(headerSite, l.Site)
	h.Set(headerVersion, tag[1:len(tag)-1])
	if door.HasTag(a.r, tag) {
		a.status(http.StatusNotModified)
		return
	}
	a.body(http.StatusOK, encode(l))
}

// redirect answers /r/{owner}/rest.
func (a *answerer) redirect(t target) {
	fresh, ok := a.believed()
	if !ok {
		return
	}
	h := a.w.Header()
	l, known := a.locate(t.owner, fresh)
	if known {
		h.Set(headerVersion, strconv.FormatUint(l.Version, 10))
	} else {
		d, ok := a.unknown(t.owner)
		if !ok {
			a.cache(fresh)
			a.fail(http.StatusNotFound, a.missing(t.owner, fresh))
			return
		}
		l.Site, l.URL = d.Site, d.URL
	}
	h.Set(headerSite, l.Site)
	if l.URL == "" {
		a.fail(http.StatusServiceUnavailable, Failure{Error: failNoURL, Text: "the configuration has no URL for the site of this owner"})
		return
	}
	a.cache(fresh)
	h.Set("Location", location(l.URL, t.rest))
	a.status(http.StatusTemporaryRedirect)
}

// location joins a site's URL, without a slash at its end, and the rest.
func location(url, rest string) string {
	if strings.HasPrefix(rest, "/") || strings.Count(url, "/") > 2 {
		return url + rest
	}
	return url + "/" + rest
}

// batch answers POST /v1/locations.
func (a *answerer) batch(who door.Client) {
	if !a.within(who, 1) { // before anything of it is read
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(a.w, a.r.Body, min(maxBody, int64(a.opts.Batch)*bytesAnOwner+64)))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		a.fail(http.StatusRequestEntityTooLarge, Failure{Error: failTooLarge, Text: "a body of more than " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes"})
		return
	}
	if err != nil {
		a.fail(http.StatusBadRequest, Failure{Error: failBody, Text: "the body could not be read: " + err.Error()})
		return
	}
	owners, f := readBatch(body, a.opts.Batch)
	switch {
	case f != nil && f.Error == failTooLarge:
		a.fail(http.StatusRequestEntityTooLarge, *f)
		return
	case f != nil:
		a.fail(http.StatusBadRequest, *f)
		return
	}
	if len(owners) > 1 && !a.within(who, len(owners)-1) {
		return
	}
	fresh, ok := a.believed()
	if !ok {
		return
	}
	a.cache(fresh)
	a.body(http.StatusOK, encode(a.all(owners, fresh)))
}

func readBatch(body []byte, most int) ([]string, *Failure) {
	var b Batch
	if !utf8.Valid(body) { // what isn't would be taken for another owner
		return nil, &Failure{Error: failBody, Text: "not UTF-8; send such owners as tokens"}
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, &Failure{Error: failBody, Text: `expected {"owners":[…],"tokens":[…]}: ` + err.Error()}
	}
	return b.owners(most)
}

func (a *answerer) fail(status int, f Failure) {
	if a.w.Header().Get("Cache-Control") == "" {
		a.w.Header().Set("Cache-Control", "no-store")
	}
	a.body(status, encode(f))
}

func (a *answerer) body(status int, b []byte) {
	a.count(status)
	door.Reply(a.w, a.r, status, b)
}

// status answers without a body.
func (a *answerer) status(status int) {
	a.count(status)
	a.w.WriteHeader(status)
}

func (a *answerer) count(status int) {
	a.metrics.requests.WithLabelValues(a.what, strconv.Itoa(status)).Inc()
}
