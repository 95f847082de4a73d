package split

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/services"
)

// broker is an entry point of which the services behind it are played.
func broker(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestPeopleSeeWhoServedThem(t *testing.T) {
	served := func(by ...services.Replica) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if (r.Method == http.MethodPost) != (r.URL.Path == "/buy") {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			_ = json.NewEncoder(w).Encode(services.Answer{By: by})
		}
	}
	east := broker(t, served(services.Replica{Component: "web", Site: "east"}, services.Replica{Component: "quotes", Site: "west"}))
	west := broker(t, served(services.Replica{Component: "web", Site: "west"}))
	p := newPeople(clock.System(), "quotes", sites, []string{east, west})
	defer p.close()
	draw := p.draw(0, seeded(1))
	for i := range 40 {
		draw(load.Shot{Number: uint64(i), Due: time.Now()})(t.Context())
	}
	p.draw(1, seeded(1))(load.Shot{Due: time.Now()})(t.Context())
	all := p.seen.All()
	if n, told := p.failures(); n != 0 || len(all) != 41 {
		t.Fatalf("%d answers, %d failures: %q", len(all), n, told)
	}
	kinds := map[int]int{}
	for _, s := range all[:40] {
		kinds[s.Of.kind]++
		if s.Of.site != 0 || s.Of.slowed != 1 || s.Latency <= 0 {
			t.Errorf("%+v", s)
		}
	}
	if last := all[40].Of; last.site != 1 || last.slowed != -1 {
		t.Errorf("%+v", last)
	}
	if len(kinds) != len(services.Kinds) {
		t.Errorf("kinds %v", kinds)
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	for text, h := range map[string]http.HandlerFunc{
		"503 full":          func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "full", http.StatusServiceUnavailable) },
		"invalid character": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") },
		`served by "moon"`: func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"by":[{"component":"web","site":"moon"}]}`)
		},
		"EOF": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		p := newPeople(clock.System(), "quotes", sites, []string{broker(t, h)})
		draw := p.draw(0, seeded(1))
		for range maxExamples + 2 {
			draw(load.Shot{Due: time.Now()})(t.Context())
		}
		n, told := p.failures()
		if n != maxExamples+2 || len(told) != maxExamples || !strings.Contains(told[0], text) || p.seen.Len() != 0 {
			t.Errorf("%s: %d failures: %q", text, n, told)
		}
		// At the end of a run nobody is to blame.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if draw(load.Shot{Due: time.Now()})(ctx); p.failed != n {
			t.Errorf("%s: a request that was given up failed", text)
		}
		p.close()
	}
}

func TestKindsAreDrawnByTheirShares(t *testing.T) {
	n := map[int]int{}
	for i := range 100 {
		n[kindOf(i)]++
	}
	for i, k := range services.Kinds {
		if n[i] != k.Share {
			t.Errorf("%s: %d of 100", k.Name, n[i])
		}
	}
}
