package s3

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/objectstore"
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

// TestWithoutBarrier: on a service that doesn't compare, a store says so, and still
// keeps apart those who write through it.
func TestWithoutBarrier(t *testing.T) {
	ctx := t.Context()
	p := newProxy(t, strip("If-Match", "If-None-Match"))
	s := open(t, p.options(t))
	if s.Capabilities().Barrier {
		t.Fatal("a barrier is promised")
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 3 {
				_, err := s.Put(ctx, "o", fmt.Sprintf("%d-%d", i, j), strings.NewReader("x"), objectstore.Mark{})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	l, err := s.List(ctx, "o")
	if err != nil || len(l.Objects) != 24 {
		t.Errorf("of 24 objects %d are there, %v", len(l.Objects), err)
	}
	for _, version := range []string{"", l.Version} {
		if _, err := s.Hold(ctx, "o", version); !errors.Is(err, objectstore.ErrNoBarrier) {
			t.Errorf("hold: %v", err)
		}
	}
	stale, err := s.b.Set(ctx, "other", []byte("1"), "")
	if err != nil {
		t.Fatal(err)
	}
	// An answer that is lost is found out here too.
	p.set(func(w http.ResponseWriter, r *http.Request, forward func() *answered) bool {
		_ = strip("If-Match", "If-None-Match")(w, r, forward)
		if putsDoc(r) {
			p.set(nil)
			forward()
			return cut()
		}
		return false
	})
	if _, err := s.b.Set(ctx, "other", []byte("2"), stale); err != nil {
		t.Error(err)
	}
	if _, err := s.b.Set(ctx, "other", []byte("3"), stale); !isConflict(err) {
		t.Errorf("set upon a stale revision: %v", err)
	}
	if _, err := s.b.Set(ctx, "other", []byte("3"), ""); !isConflict(err) {
		t.Errorf("a first document upon another: %v", err)
	}
	if body, _, err := s.b.Get(ctx, "other"); err != nil || string(body) != "2" {
		t.Errorf("the document is %q, %v", body, err)
	}
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
