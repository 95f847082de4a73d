package pull

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"penstock/infra/door/doortest"
	"penstock/schemas/control"
)

// waiting asks in the background and returns when the question waits.
func waiting(t *testing.T, s *Server, ctx context.Context, tag string) <-chan *httptest.ResponseRecorder {
	t.Helper()
	done := make(chan *httptest.ResponseRecorder, 1)
	before := s.waiting.Load()
	go func() {
		req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/split/cart?from_site=east&from=web&wait=5m", nil)
		req.Host, req.RemoteAddr = "127.0.0.1", "127.0.0.1:1234"
		req.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		done <- w
	}()
	within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	clock, is := s.opts.Clock.(interface {
		Await(ctx context.Context, n int) error
	})
	if !is {
		t.Fatal("not a clock of tests")
	}
	ok(t, clock.Await(within, int(before)+1)) // its timer is set
	return done
}

// TestLongPoll: what is asked for is kept back until it is another, for at most a
// minute, however long the client would wait.
func TestLongPoll(t *testing.T) {
	t.Parallel()
	s, r, c := setup(t, nil)
	put(t, r, table(1, 1, 0))
	done := waiting(t, s, t.Context(), `"1"`)
	again := waiting(t, s, t.Context(), `"1"`)
	other := table(9, 0, 1)
	other.From = "other"
	put(t, r, other)
	probes := table(1, 1, 0) // the table changes, the answer does not
	probes.Probes = append(probes.Probes, probe())
	put(t, r, probes)
	c.Advance(time.Minute - time.Second)
	select {
	case w := <-done:
		t.Fatal("answered at once:", doortest.Read(w))
	case w := <-again:
		t.Fatal("answered at once:", doortest.Read(w))
	default:
	}
	put(t, r, table(2, 0.5, 0.5))
	for _, each := range []<-chan *httptest.ResponseRecorder{done, again} {
		if w := <-each; w.Code != http.StatusOK || w.Header().Get("ETag") != `"2"` {
			t.Error(doortest.Read(w, "ETag"))
		}
	}
	done = waiting(t, s, t.Context(), `"2"`)
	c.Advance(time.Minute)
	if w := <-done; w.Code != http.StatusNotModified || w.Header().Get("ETag") != `"2"` || w.Header().Get(control.HeaderSplitServers) == "" {
		t.Error(doortest.Read(w, "ETag"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	done = waiting(t, s, ctx, `"2"`)
	cancel()
	<-done
	done = waiting(t, s, t.Context(), `"2"`)
	ok(t, r.Clear(t.Context(), "web"))
	if w := <-done; w.Code != http.StatusOK || w.Header().Get("ETag") != `"0"` {
		t.Error(doortest.Read(w, "ETag"))
	}
	done = waiting(t, s, t.Context(), `"0"`)
	close(s.ending)
	if w := <-done; w.Code != http.StatusNotModified || w.Header().Get("Connection") != "close" {
		t.Error(doortest.Read(w, "ETag"))
	}
	for end, want := range map[string]float64{endChanged: 3, endTime: 1, endLeft: 1, endDrain: 1, endFull: 0} {
		if n := testutil.ToFloat64(s.metrics.waits.WithLabelValues(end)); n != want {
			t.Errorf("%v waits ended by %s, want %v", n, end, want)
		}
	}
	if n := testutil.ToFloat64(s.metrics.waiting); n != 0 || s.waiting.Load() != 0 {
		t.Errorf("%v still wait", n)
	}
}

// TestFewWait: beyond the limit clients are told to come later; those who don't
// wait are answered.
func TestFewWait(t *testing.T) {
	t.Parallel()
	s, r, _ := setup(t, func(o *Options) { o.Waiting = 2 })
	put(t, r, table(1, 1, 0))
	a, b := waiting(t, s, t.Context(), `"1"`), waiting(t, s, t.Context(), `"1"`)
	const uri = "/v1/split/cart?from_site=east&from=web"
	got := doortest.Read(ask(s, "GET", uri+"&wait=30s", "If-None-Match", `"1"`), "Retry-After")
	if want := `503 Retry-After=5 {"error":"too-many-waiting","text":"too many clients wait: come later, or do not wait"}`; got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	if w := ask(s, "GET", uri, "If-None-Match", `"1"`); w.Code != http.StatusNotModified {
		t.Error(doortest.Read(w))
	}
	put(t, r, table(2, 1, 0))
	<-a
	<-b
	done := waiting(t, s, t.Context(), `"2"`)
	put(t, r, table(3, 1, 0))
	if w := <-done; w.Code != http.StatusOK {
		t.Error(doortest.Read(w))
	}
}
