package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// town is all services of a site and an entry point that finds them by
// Penstock-To.
type town struct {
	entry    *httptest.Server
	services map[string]*Service
	handlers map[string]http.Handler
	seen     []string // of each call: caller, callee, method, trace, probe
}

func newTown(t *testing.T) *town {
	w := &town{services: map[string]*Service{}, handlers: map[string]http.Handler{}}
	w.entry = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h := r.Header
		w.seen = append(w.seen, fmt.Sprintf("%s→%s %s %s %s %s", h.Get("Penstock-Component"), h.Get("Penstock-To"), r.Method, r.URL.Path, h.Get("Traceparent"), h.Get("Penstock-Probe")))
		w.handlers[h.Get("Penstock-To")].ServeHTTP(rw, r)
	}))
	for i, c := range Components {
		s, err := New(Options{Component: c.Name, Site: "east", Entry: w.entry.URL, Seed: uint64(i), Logger: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		w.services[c.Name], w.handlers[c.Name] = s, s.Handler()
		t.Cleanup(s.Close)
	}
	t.Cleanup(w.entry.Close)
	return w
}

func (w *town) ask(t *testing.T, r *http.Request) (*httptest.ResponseRecorder, Answer) {
	t.Helper()
	rec := httptest.NewRecorder()
	w.handlers[Front].ServeHTTP(rec, r)
	var a Answer
	if rec.Code == http.StatusOK {
		if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
	}
	return rec, a
}

// timing reads Server-Timing: the service's own time, and that with callees.
func timing(t *testing.T, h http.Header) (app, total float64) {
	t.Helper()
	if _, err := fmt.Sscanf(h.Get("Server-Timing"), "app;dur=%f, total;dur=%f", &app, &total); err != nil {
		t.Fatalf("%q: %v", h.Get("Server-Timing"), err)
	}
	return app, total
}

func TestARequestTakesItsWay(t *testing.T) {
	w := newTown(t)
	for _, c := range []struct {
		kind, method string
		by           []string
	}{
		{"quote", http.MethodGet, []string{"web", "quotes"}},
		{"search", http.MethodGet, []string{"web", "search"}},
		{"portfolio", http.MethodGet, []string{"web", "accounts", "ledger"}},
		{"buy", http.MethodPost, []string{"web", "orders", "accounts", "ledger"}},
	} {
		w.seen = nil
		r := httptest.NewRequest(c.method, "/"+c.kind, strings.NewReader("5 shares"))
		r.Header.Set("Traceparent", "trace-1")
		r.Header.Set("Penstock-Probe", "probe")
		rec, a := w.ask(t, r)
		var by, seen []string
		for i, x := range a.By {
			if x.Site != "east" {
				t.Errorf("%s: by %+v", c.kind, x)
			}
			if by = append(by, x.Component); i > 0 {
				seen = append(seen, fmt.Sprintf("%s→%s %s /%s trace-1 probe", a.By[i-1].Component, x.Component, c.method, c.kind))
			}
		}
		if !slices.Equal(by, c.by) || !slices.Equal(seen, w.seen) {
			t.Errorf("%s: by %q, calls %q; %d %s", c.kind, by, w.seen, rec.Code, rec.Body)
		}
		// What callees take is in total, and not in app.
		app, total := timing(t, rec.Header())
		if app < 1 || total < app+2*float64(len(c.by)-1) {
			t.Errorf("%s: app %v ms, total %v ms", c.kind, app, total)
		}
	}
}

func TestASlowServiceSaysItsOwnTimeOnly(t *testing.T) {
	w := newTown(t)
	control := httptest.NewServer(w.services["quotes"].Control())
	defer control.Close()
	address := strings.TrimPrefix(control.URL, "http://")
	if err := Slow(t.Context(), address, 120*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	rec, _ := w.ask(t, httptest.NewRequest(http.MethodGet, "/quote", http.NoBody))
	if app, total := timing(t, rec.Header()); total < 120 || total-app < 120 {
		t.Errorf("web: app %v ms, total %v ms", app, total)
	}
	if err := Slow(t.Context(), address, 0); err != nil {
		t.Fatal(err)
	}
	if d := w.services["quotes"].work(); d > 100*time.Millisecond {
		t.Errorf("it is still slow: %v", d)
	}
	if err := Slow(t.Context(), address, -time.Second); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("a negative time: %v", err)
	}
	r := httptest.NewRequest(http.MethodGet, "/quote", http.NoBody)
	r.Header.Set("Penstock-Probe", "1")
	w.ask(t, r)
	if got, err := StateOf(t.Context(), address); err != nil || got != (State{Calls: 2, Probes: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
	control.Close()
	if _, err := StateOf(t.Context(), address); err == nil {
		t.Error("a service that is gone has a state")
	}
}

func TestWhatFails(t *testing.T) {
	w := newTown(t)
	if rec, _ := w.ask(t, httptest.NewRequest(http.MethodGet, "/yacht", http.NoBody)); rec.Code != http.StatusNotFound {
		t.Errorf("a kind that nobody knows: %d", rec.Code)
	}
	big := httptest.NewRequest(http.MethodPost, "/buy", strings.NewReader(strings.Repeat("x", maxBody+1)))
	if rec, _ := w.ask(t, big); rec.Code != http.StatusBadRequest {
		t.Errorf("too much: %d", rec.Code)
	}
	for name, h := range map[string]http.HandlerFunc{
		"the callee did not answer as asked: 503 full": func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "full", http.StatusServiceUnavailable) },
		"the callee did not answer as asked: invalid":  func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "x") },
	} {
		w.handlers["ledger"] = h
		rec, _ := w.ask(t, httptest.NewRequest(http.MethodPost, "/buy", http.NoBody))
		if rec.Code != http.StatusBadGateway || !strings.Contains(rec.Body.String(), name) {
			t.Errorf("%d %s, expected %q", rec.Code, rec.Body, name)
		}
	}
	w.entry.Close()
	if rec, _ := w.ask(t, httptest.NewRequest(http.MethodGet, "/quote", http.NoBody)); rec.Code != http.StatusBadGateway {
		t.Errorf("without an entry point: %d", rec.Code)
	}
	// A caller that has gone gets nothing.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rec := httptest.NewRecorder()
	w.handlers[Front].ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/quote", http.NoBody).WithContext(ctx))
	if rec.Body.Len() > 0 {
		t.Errorf("answered %s", rec.Body)
	}
	if _, err := New(Options{Component: "yacht"}); !errors.Is(err, ErrComponent) {
		t.Error(err)
	}
}

func TestWorkIsDrawnFromTheSeed(t *testing.T) {
	of := func(seed uint64) (out []time.Duration) {
		s, err := New(Options{Component: "ledger", Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			out = append(out, s.work())
		}
		return out
	}
	a, b := of(1), of(2)
	if !slices.Equal(a, of(1)) || slices.Equal(a, b) {
		t.Error("the same seed must draw the same times, another others")
	}
	var sum time.Duration
	for _, d := range a {
		sum += d
	}
	if mean := sum / 2000; mean < 7800*time.Microsecond || mean > 8200*time.Microsecond {
		t.Errorf("a mean of %v, expected 8ms", mean)
	}
}

func TestTheGraphIsWhole(t *testing.T) {
	sum := 0
	for _, k := range Kinds {
		sum += k.Share
	}
	if sum != 100 {
		t.Errorf("shares of kinds add up to %d", sum)
	}
	seen := map[string]bool{}
	for i := len(Components) - 1; i >= 0; i-- {
		c := Components[i]
		for kind, list := range c.Calls {
			for _, to := range list {
				if !known(kind) || !seen[to] {
					t.Errorf("%s calls %s for %s, which does not come after it", c.Name, to, kind)
				}
			}
		}
		seen[c.Name] = true
		if callers := Callers(c.Name); (len(callers) == 0) != (c.Name == Front) {
			t.Errorf("%s is called by %q", c.Name, callers)
		}
	}
}
