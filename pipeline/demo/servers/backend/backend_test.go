package backend

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/infra/clock"
)

var t0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// slow is a server on a clock of its own, with a word each time that it has more at once.
func slow(t *testing.T, workers int) (s *Server, c *clock.Manual, more chan State) {
	t.Helper()
	c, more = clock.NewManual(t0), make(chan State, 100)
	s, err := New(Options{Workers: workers, Slowness: 2, Seed: 1, Clock: c, Most: func(x State) { more <- x }})
	if err != nil {
		t.Fatal(err)
	}
	return s, c, more
}

func next(t *testing.T, more chan State) State {
	t.Helper()
	select {
	case s := <-more:
		return s
	case <-time.After(patience):
		t.Fatal("no more at once")
		return State{}
	}
}

func ask(ctx context.Context, h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	return w
}

func TestWorkersAreTheMostAtATime(t *testing.T) {
	t.Parallel()
	s, c, more := slow(t, 2)
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			if w := ask(t.Context(), s.Handler(), "/page/3"); w.Code != 200 || w.Body.Len() != Size(Page, 3) {
				t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
			}
		})
	}
	for range 3 {
		next(t, more)
	}
	done := make(chan struct{})
	go func() {
		asking.Wait()
		close(done)
	}()
	for ended := false; !ended; {
		c.Advance(2 * Work(Page, 3))
		select {
		case <-done:
			ended = true
		default:
		}
	}
	if st := s.State(); st.Most != 3 || st.Waited != 1 || st.Done != 3 || st.InService != 0 || st.Told {
		t.Errorf("%+v", st)
	}
	s.End()
	if st := s.State(); !st.Told || st.Left != 0 {
		t.Errorf("%+v", st)
	}
}

func TestAClientThatGoesFreesItsWorker(t *testing.T) {
	t.Parallel()
	s, _, more := slow(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() { ask(ctx, s.Handler(), "/static/3") })
		next(t, more)
	}
	s.End()
	cancel()
	asking.Wait()
	if st := s.State(); st.InService != 0 || st.Left != 2 {
		t.Errorf("%+v", st)
	}
}

func TestWorkTakesAsLongAsItsMachineAndItsFault(t *testing.T) {
	t.Parallel()
	s, _, _ := slow(t, 1)
	l := httptest.NewServer(s.Control())
	defer l.Close()
	at := strings.TrimPrefix(l.URL, "http://")
	mean := func() (sum time.Duration) {
		for range 2000 {
			sum += s.time(100 * time.Millisecond)
		}
		return sum / 2000
	}
	if d := mean(); d < 195*time.Millisecond || d > 205*time.Millisecond {
		t.Errorf("200 ms on average, got %v", d)
	}
	if err := Slower(t.Context(), at, 10); err != nil {
		t.Fatal(err)
	}
	if d := mean(); d < 1950*time.Millisecond || d > 2050*time.Millisecond {
		t.Errorf("2 s on average, got %v", d)
	}
	if st, err := StateOf(t.Context(), at); err != nil || st.Times != 10 || st.PID == 0 {
		t.Errorf("%+v, %v", st, err)
	}
	for _, times := range []float64{0, -1, 1001} {
		if Slower(t.Context(), at, times) == nil {
			t.Errorf("%g times slower", times)
		}
	}
	if _, err := StateOf(t.Context(), "127.0.0.1:1"); err == nil {
		t.Error("nobody's state")
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	if Size(Static, 0) != 2000 || Size(Static, Files-1) != 64000 || Size(Page, Pages-1) != 32000 || Work(Page, 0) != 140*time.Millisecond || Work(Static, 0) != 44*time.Millisecond {
		t.Error(Size(Static, 0), Size(Static, Files-1), Size(Page, Pages-1), Work(Page, 0), Work(Static, 0))
	}
	s, _, _ := slow(t, 1)
	for path, code := range map[string]int{"/health": 200, "/page/20": 404, "/page/x": 404, "/other/1": 404, "/static/-1": 404} {
		if w := ask(t.Context(), s.Handler(), path); w.Code != code {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, o := range []Options{{Slowness: 1}, {Workers: 1}, {Workers: 1, Slowness: 1e6}} {
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
