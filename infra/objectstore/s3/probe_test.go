package s3

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/objectstoretest"
)

// checkThenAct looks whether a condition is met and writes after that, as gateways
// do that don't lock: right as long as one writes at a time.
func checkThenAct(_ http.ResponseWriter, r *http.Request, forward func() *answered) bool {
	if !isPut(r) || r.Header.Get("If-Match") == "" && r.Header.Get("If-None-Match") == "" {
		return false
	}
	// The whole request has arrived, and with it all rivals have begun.
	r.Header.Del("If-Match")
	r.Header.Del("If-None-Match")
	return false
}

// early is checkThenAct with the look before the content is there.
type early struct{ p *proxy }

func (e early) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isPut(r) && strings.Contains(r.URL.Path, "/probe/") {
		look, _ := http.NewRequest(http.MethodHead, r.URL.RequestURI(), http.NoBody)
		look.Header.Set("X-Amz-Content-Sha256", emptySum)
		now := e.p.forward(look, nil)
		switch match := r.Header.Get("If-Match"); {
		case match == "" && now.status == http.StatusOK, match != "" && match != now.header.Get("ETag"):
			refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
		_ = checkThenAct(w, r, nil)
	}
	e.p.handle(w, r)
}

const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// TestProbe: the barrier is promised exactly where the service keeps writers
// apart.
func TestProbe(t *testing.T) {
	notImplemented := func(w http.ResponseWriter, r *http.Request, _ func() *answered) bool {
		if isPut(r) && (r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != "") {
			return refuse(w, http.StatusNotImplemented, "NotImplemented")
		}
		return false
	}
	tests := map[string]struct {
		fault   fault
		barrier bool
		why     string
	}{
		"honoured":           {nil, true, ""},
		"none is heard of":   {strip("If-Match", "If-None-Match"), false, "more than one"},
		"only If-None-Match": {strip("If-Match"), false, "more than one"},
		"only If-Match":      {strip("If-None-Match"), false, "more than one"},
		"refused":            {notImplemented, false, "NotImplemented"},
		"writers meet": {once(3, isPut, func(w http.ResponseWriter, _ *http.Request, _ func() *answered) bool {
			return refuse(w, http.StatusConflict, "ConditionalRequestConflict")
		}), true, ""},
		"a bad day": {once(2, isPut, func(w http.ResponseWriter, _ *http.Request, _ func() *answered) bool {
			return refuse(w, http.StatusInternalServerError, "InternalError")
		}), true, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProxy(t, test.fault)
			o := p.options(t)
			var log bytes.Buffer
			o.Logger = zerolog.New(&log)
			s := open(t, o)
			if got := s.Capabilities().Barrier; got != test.barrier {
				t.Errorf("the barrier is promised: %v", got)
			}
			said := "has no write barrier"
			if test.barrier {
				said = "has a write barrier"
			}
			if !strings.Contains(log.String(), said) || !strings.Contains(log.String(), test.why) {
				t.Errorf("logged was %s", log.String())
			}
			left := 0
			err := s.b.list(t.Context(), s.b.layout.probes(), false, func(objectInfo) error { left++; return nil })
			if err != nil || left != 0 {
				t.Errorf("%d trial objects are left, %v", left, err)
			}
		})
	}
}

// TestProbeFindsCheckThenAct: a service that compares before it has the content is
// found out every time, not by luck.
func TestProbeFindsCheckThenAct(t *testing.T) {
	p := newProxy(t, nil)
	s := newServer(t, early{p})
	o := p.options(t)
	o.Endpoint = s
	for range 10 {
		if open(t, o).Capabilities().Barrier {
			t.Fatal("a barrier is promised")
		}
	}
	o.Endpoint = p.url
	for range 10 {
		if !open(t, o).Capabilities().Barrier {
			t.Fatal("the real server is taken for another")
		}
	}
}

// TestProbeSaysWhatIsWrong: a service that can't be used is an error, not a store
// without a barrier.
func TestProbeSaysWhatIsWrong(t *testing.T) {
	o := options(t)
	o.Bucket = "no-such-bucket"
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "NoSuchBucket") {
		t.Errorf("without a bucket: %v", err)
	}
	p := newProxy(t, func(w http.ResponseWriter, _ *http.Request, _ func() *answered) bool {
		return refuse(w, http.StatusInternalServerError, "InternalError")
	})
	o = p.options(t)
	o.Attempts, o.Pause = 2, 1
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "InternalError") {
		t.Errorf("with a broken service: %v", err)
	}
}

// TestWithoutBarrier runs the suite as on a service that doesn't compare, which is
// what no condition is sent to then.
func TestWithoutBarrier(t *testing.T) {
	p := newProxy(t, strip("If-Match", "If-None-Match"))
	s := open(t, p.options(t))
	if err := s.Create(t.Context(), "o", objectstore.Mark{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Hold(t.Context(), "o", ""); !errors.Is(err, objectstore.ErrNoBarrier) {
		t.Errorf("hold: %v", err)
	}
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store {
		s := open(t, options(t))
		s.b.barrier = false
		return s
	}, objectstoretest.Options{Large: 6 << 20, Many: 20, Memory: -1})
}

// TestServerIsAtomic: of many writers with one condition exactly one is let
// through, and it is the one whose document is there. All else stands on this.
func TestServerIsAtomic(t *testing.T) {
	b := open(t, options(t)).b
	revision := ""
	for round := range 20 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		winner, next := -1, ""
		for i := range 16 {
			wg.Go(func() {
				r, err := b.Set(t.Context(), "o", []byte{byte(i)}, revision)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && winner >= 0:
					t.Errorf("round %d: %d and %d were let through", round, winner, i)
				case err == nil:
					winner, next = i, r
				case !isConflict(err):
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		wg.Wait()
		body, now, err := b.Get(t.Context(), "o")
		if err != nil || winner < 0 || now != next || len(body) != 1 || int(body[0]) != winner {
			t.Fatalf("round %d: %d won, the document is %v at %s, not %s (%v)", round, winner, body, now, next, err)
		}
		revision = next
	}
}
