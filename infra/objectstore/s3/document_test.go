package s3

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
)

// rushed is the machine's clock whose sleeps are written down and not slept.
type rushed struct {
	clock.Clock
	mu    sync.Mutex
	slept []time.Duration
}

func newRushed() *rushed { return &rushed{Clock: clock.System()} }

func (c *rushed) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept = append(c.slept, d)
	return ctx.Err()
}

func (c *rushed) sum() (all time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.slept {
		all += d
	}
	return all
}

// rival writes a document past the proxy, as another process does.
func rival(t *testing.T, b *bucket, owner, body string) {
	t.Helper()
	_, revision, err := b.Get(t.Context(), owner)
	if err != nil && !errors.Is(err, objectstore.ErrNoOwner) {
		t.Fatal(err)
	}
	if _, err := b.Set(t.Context(), owner, []byte(body), revision); err != nil {
		t.Fatal(err)
	}
}

// TestOutcomes: whatever happens to a write of a document on its way, what Set
// returns is what became of it.
func TestOutcomes(t *testing.T) {
	lostAnswer := func(_ http.ResponseWriter, _ *http.Request, forward func() *answered) bool {
		forward()
		return cut()
	}
	lostRequest := func(http.ResponseWriter, *http.Request, func() *answered) bool { return cut() }
	failsAfter := func(w http.ResponseWriter, _ *http.Request, forward func() *answered) bool {
		forward()
		return refuse(w, http.StatusInternalServerError, "InternalError")
	}
	failsBefore := func(w http.ResponseWriter, _ *http.Request, _ func() *answered) bool {
		return refuse(w, http.StatusBadGateway, "BadGateway")
	}
	silent := func(_ http.ResponseWriter, r *http.Request, forward func() *answered) bool {
		forward()
		<-r.Context().Done()
		return true
	}
	twice := func(_ http.ResponseWriter, _ *http.Request, forward func() *answered) bool {
		forward()
		return false
	}
	answer := func(status int, code string) fault {
		return func(w http.ResponseWriter, _ *http.Request, _ func() *answered) bool { return refuse(w, status, code) }
	}
	noTag := func(w http.ResponseWriter, _ *http.Request, forward func() *answered) bool {
		a := forward()
		a.header.Del("ETag")
		a.send(w)
		return true
	}
	tests := map[string]struct {
		fault fault
		times int
		rival bool // writes after the harm and before the next attempt
		want  error
	}{
		"no harm":                           {nil, 0, false, nil},
		"answer lost":                       {lostAnswer, 1, false, nil},
		"three answers lost":                {lostAnswer, 3, false, nil},
		"request lost":                      {lostRequest, 2, false, nil},
		"failed after writing":              {failsAfter, 1, false, nil},
		"failed before writing":             {failsBefore, 1, false, nil},
		"silent after writing":              {silent, 1, false, nil},
		"sent twice by the way":             {twice, 1, false, nil},
		"writers met":                       {answer(409, "ConditionalRequestConflict"), 1, false, nil},
		"refused without cause":             {answer(412, "PreconditionFailed"), 1, false, nil},
		"another request's refusal":         {answer(400, "BadRequest"), 1, false, nil},
		"no ETag in the answer":             {noTag, 1, false, nil},
		"answer lost, then written by else": {lostAnswer, 1, true, ErrUnknown},
		"request lost, then by else":        {lostRequest, 1, true, ErrUnknown},
		"another came first":                {answer(409, "ConditionalRequestConflict"), 1, true, errConflict},
		"slow down, another came first":     {answer(503, "SlowDown"), 1, true, errConflict},
		"never answers":                     {lostRequest, 1000, false, ErrUnknown},
		"never admitted":                    {answer(503, "SlowDown"), 1000, false, errAny},
		"not allowed":                       {answer(403, "AccessDenied"), 1, false, errAny},
	}
	p := newProxy(t, nil)
	o := p.options(t)
	o.Clock, o.Timeout, o.Attempts = newRushed(), 300*time.Millisecond, 5
	b := open(t, o).b
	o.Endpoint, o.Timeout = p.server.Endpoint, 0
	direct := open(t, o).b
	for name, test := range tests {
		for _, before := range []string{"", "before"} {
			owner := name + before
			t.Run(owner, func(t *testing.T) {
				revision := ""
				if before != "" {
					rival(t, direct, owner, before)
					_, revision, _ = direct.Get(t.Context(), owner)
				}
				p.set(once(test.times, putsDoc, func(w http.ResponseWriter, r *http.Request, forward func() *answered) bool {
					if test.rival {
						defer rival(t, direct, owner, "rival")
					}
					return test.fault(w, r, forward)
				}))
				b.wire.Unpause()
				next, err := b.Set(t.Context(), owner, []byte("mine"), revision)
				checkOutcome(t, direct, owner, next, err, test.want)
			})
		}
	}
}

var (
	errConflict = errors.New("a conflict")
	errAny      = errors.New("anything but a conflict or an unknown outcome")
)

func checkOutcome(t *testing.T, b *bucket, owner, next string, err, want error) {
	t.Helper()
	body, revision, getErr := b.Get(t.Context(), owner)
	switch {
	case want == nil:
		if err != nil || getErr != nil || string(body) != "mine" || next != revision {
			t.Errorf("set: %q, %v; the document is %q at %q, %v", next, err, body, revision, getErr)
		}
	case want == errConflict: //nolint:errorlint // it stands for one
		if !isConflict(err) || string(body) != "rival" {
			t.Errorf("set: %v; the document is %q", err, body)
		}
	case want == errAny: //nolint:errorlint // it stands for many
		if err == nil || isConflict(err) || errors.Is(err, ErrUnknown) || string(body) == "mine" {
			t.Errorf("set: %v; the document is %q", err, body)
		}
	case !errors.Is(err, want) || isConflict(err):
		t.Errorf("set: %v, want %v", err, want)
	}
	if err != nil && b.o.SecretKey != "" && strings.Contains(err.Error(), b.o.SecretKey) {
		t.Error("the error tells the secret key")
	}
}

// TestSetEnds: a write whose context ends returns soon, and says so.
func TestSetEnds(t *testing.T) {
	p := newProxy(t, nil)
	b := open(t, p.options(t)).b
	arrived := make(chan struct{})
	p.set(once(1, putsDoc, func(_ http.ResponseWriter, r *http.Request, _ func() *answered) bool {
		close(arrived)
		<-r.Context().Done()
		return true
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if _, err := b.Set(ctx, "o", nil, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("set: %v", err)
	}
}

// TestThrottled: a service that asks for a pause gets it, from all requests of the
// store.
func TestThrottled(t *testing.T) {
	p := newProxy(t, nil)
	o := p.options(t)
	c := newRushed()
	counted := map[string]int64{}
	var mu sync.Mutex
	o.Clock = c
	o.Count = func(reason string, n int64) { mu.Lock(); counted[reason] += n; mu.Unlock() }
	b := open(t, o).b
	before := c.sum()
	p.set(once(1, getsDoc, func(w http.ResponseWriter, _ *http.Request, _ func() *answered) bool {
		w.Header().Set("Retry-After", "7")
		return refuse(w, http.StatusServiceUnavailable, "SlowDown")
	}))
	if _, _, err := b.Get(t.Context(), "o"); !errors.Is(err, objectstore.ErrNoOwner) {
		t.Error(err)
	}
	if n := p.requests(http.MethodGet); n != 2 {
		t.Errorf("%d requests", n)
	}
	if got := c.sum() - before; got < 6*time.Second {
		t.Errorf("it waited for %v, asked was for 7 s", got)
	}
	if counted["throttled"] == 0 || counted["retry"] == 0 {
		t.Errorf("counted were %v", counted)
	}
	// Another request waits too.
	before = c.sum()
	if _, _, err := b.Get(t.Context(), "other"); !errors.Is(err, objectstore.ErrNoOwner) {
		t.Error(err)
	}
	if got := c.sum() - before; got < 5*time.Second {
		t.Errorf("another request waited for %v", got)
	}
}

// TestAttempts: a service that keeps failing is asked Attempts times.
func TestAttempts(t *testing.T) {
	p := newProxy(t, nil)
	o := p.options(t)
	o.Clock, o.Attempts = newRushed(), 4
	b := open(t, o).b
	p.set(func(http.ResponseWriter, *http.Request, func() *answered) bool { return cut() })
	requests := map[string]func() error{
		http.MethodGet:    func() error { _, _, err := b.Get(t.Context(), "o"); return err },
		http.MethodPut:    func() error { _, err := b.PutBlob(t.Context(), "o", "id", strings.NewReader("x")); return err },
		http.MethodDelete: func() error { return b.DeleteBlob(t.Context(), "o", "id") },
	}
	for method, request := range requests {
		p.set(p.fault)
		err := request()
		// The client's own transport may send again what certainly didn't arrive,
		// and a GET or DELETE, which do no harm.
		if n := p.requests(method); err == nil || n < 4 || n > 8 {
			t.Errorf("%s: sent %d times, %v", method, n, err)
		}
	}
}

// TestTornReads: content of one version with the ETag of another is not believed.
func TestTornReads(t *testing.T) {
	for name, rename := range map[string]bool{"ETags are MD5": false, "ETags are anything": true} {
		t.Run(name, func(t *testing.T) {
			p := newProxy(t, nil)
			o := p.options(t)
			torn := 0
			o.Count = func(reason string, _ int64) {
				if reason == "torn-read" {
					torn++
				}
			}
			b := open(t, o).b
			first, err := b.Set(t.Context(), "o", []byte("one"), "")
			if err != nil {
				t.Fatal(err)
			}
			var old []byte
			p.set(func(_ http.ResponseWriter, r *http.Request, forward func() *answered) bool {
				if getsDoc(r) {
					old = forward().body
				}
				return false
			})
			_, _, err = b.Get(t.Context(), "o")
			if err != nil {
				t.Fatal(err)
			}
			second, err := b.Set(t.Context(), "o", []byte("two"), first)
			if err != nil {
				t.Fatal(err)
			}
			tear := once(1, getsDoc, func(w http.ResponseWriter, _ *http.Request, forward func() *answered) bool {
				a := forward()
				a.body = old
				a.header.Del("Content-Length")
				if rename {
					a.header.Set("ETag", `"not-an-md5"`)
				}
				a.send(w)
				return true
			})
			p.set(func(w http.ResponseWriter, r *http.Request, forward func() *answered) bool {
				if tear(w, r, forward) {
					return true
				}
				if !rename || !getsDoc(r) {
					return false
				}
				a := forward()
				a.header.Set("ETag", `"not-an-md5"`)
				a.send(w)
				return true
			})
			body, revision, err := b.Get(t.Context(), "o")
			if err != nil || string(body) != "two" || !rename && revision != second {
				t.Errorf("read %q at %q, %v", body, revision, err)
			}
			if torn == 0 {
				t.Error("no torn read was counted")
			}
		})
	}
}

// TestForeignDocuments: what isn't a document, or another's, is not taken for the
// owner's.
func TestForeignDocuments(t *testing.T) {
	b := open(t, options(t)).b
	long := strings.Repeat("a", 500)
	other, err := seal("somebody else", nonce(), []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"empty": "", "no envelope": "hello\n", "no line": `{"penstock":1,"owner":"bw==","nonce":"x"}`,
		"another format": `{"penstock":2,"owner":"bw==","nonce":"x"}` + "\n", "no nonce": `{"penstock":1,"owner":"bw=="}` + "\n",
		"another's": string(other),
	} {
		if _, err := b.putBytes(t.Context(), b.layout.doc(long), []byte(content), noOptions); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.Get(t.Context(), long); !errors.Is(err, objectstore.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDocumentsAreWhole: bodies of any content come back as they were set.
func TestDocumentsAreWhole(t *testing.T) {
	b := open(t, options(t)).b
	revision := ""
	for _, body := range [][]byte{{}, []byte("\n"), []byte("a\nb"), bytes.Repeat([]byte{0, 255}, 1<<20), []byte(`{"penstock":1}`)} {
		next, err := b.Set(t.Context(), "o", body, revision)
		if err != nil {
			t.Fatal(err)
		}
		got, at, err := b.Get(t.Context(), "o")
		if err != nil || !bytes.Equal(got, body) || at != next {
			t.Errorf("set %.20q, got %.20q at %s, %v", body, got, at, err)
		}
		revision = next
	}
	if _, err := b.Set(t.Context(), "o", nil, ""); !isConflict(err) {
		t.Errorf("a first document upon another: %v", err)
	}
	if _, err := b.Set(t.Context(), "nobody", nil, revision); !isConflict(err) {
		t.Errorf("a next document upon none: %v", err)
	}
}

// TestConditionsOnTheWire: what the server gets is the condition that is meant,
// signed, with digests of the content.
func TestConditionsOnTheWire(t *testing.T) {
	p := newProxy(t, nil)
	b := open(t, p.options(t)).b
	var got []http.Header
	p.set(func(_ http.ResponseWriter, r *http.Request, _ func() *answered) bool {
		if putsDoc(r) {
			got = append(got, r.Header.Clone())
		}
		return false
	})
	first, err := b.Set(t.Context(), "o", []byte("1"), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Set(t.Context(), "o", []byte("2"), first); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`If-None-Match: *`, `If-Match: "` + first + `"`} {
		name, value, _ := strings.Cut(want, ": ")
		if v := got[i][name]; len(v) != 1 || v[0] != value {
			t.Errorf("write %d was sent with %s %q", i, name, v)
		}
		if !strings.Contains(got[i].Get("Authorization"), strings.ToLower(name)) {
			t.Errorf("%s is not signed: %s", name, got[i].Get("Authorization"))
		}
		if got[i].Get("Content-Md5") == "" || len(got[i].Get("X-Amz-Content-Sha256")) != 64 {
			t.Errorf("write %d was sent without digests", i)
		}
	}
}
