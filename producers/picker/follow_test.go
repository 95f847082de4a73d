package picker

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"penstock/infra/clock"
	"penstock/schemas/control"
)

// TestFollows: a change arrives by the long poll; the API goes and what was known
// goes on; it comes back and is followed again.
func TestFollows(t *testing.T) {
	t.Parallel()
	x := startAPI(t, told(1, 0.5, 0.5))
	p := open(t, x.url(), func(o *Options) { o.Token = "a token of some length" })
	ok(t, p.Ready(t.Context(), "cart"))
	x.waits(1)
	counted(t, "both", p, map[string]int{"http://e1": 25, "http://e2": 25, "http://w1": 50})
	x.set(func() { x.now = told(2, 0, 1) })
	x.waits(2)
	counted(t, "moved", p, map[string]int{"http://w1": 40})
	if c := p.Pick("cart"); c.Site != "west" || c.Epoch != 2 || !c.Known {
		t.Errorf("%+v", c)
	}
	x.stop()
	counted(t, "the API is away", p, map[string]int{"http://w1": 40})
	for p.States()[0].Err == nil {
		time.Sleep(time.Millisecond)
	}
	counted(t, "and the picker knows", p, map[string]int{"http://w1": 40})
	x.mu.Lock()
	x.now = told(3, 1, 0)
	x.mu.Unlock()
	x.start()
	x.waits(3)
	counted(t, "it is back", p, map[string]int{"http://e1": 20, "http://e2": 20})
	s := p.States()
	if len(s) != 1 || s[0].Component != "cart" || s[0].Epoch != 3 || !s[0].Known || s[0].Err != nil || s[0].Age != 3*time.Second || s[0].Answered.IsZero() || s[0].Servers != 3 || s[0].Out != 0 {
		t.Errorf("%+v", s)
	}
	x.set(func() { x.now = told(0, 1, 0); x.now.Known = false })
	x.waits(0)
	if c := p.Pick("cart"); c.Site != "east" || c.Known || c.Epoch != 0 {
		t.Errorf("without a table: %+v", c)
	}
	for _, h := range x.asked {
		if h.Get("Authorization") != "Bearer a token of some length" {
			t.Errorf("asked with %v", h)
		}
	}
	if n := testutil.ToFloat64(p.metrics.answers.WithLabelValues(gotTable)); n != 3 {
		t.Errorf("%v tables", n)
	}
}

// TestStartsWithoutTheAPI, by the fallback at this site; of what has none, no server
// is known.
func TestStartsWithoutTheAPI(t *testing.T) {
	t.Parallel()
	x := startAPI(t, told(1, 0.5, 0.5))
	x.stop()
	p := open(t, x.url(), nil)
	counted(t, "fallback", p, map[string]int{"http://f1": 20, "http://f2": 20})
	for what, c := range map[string]Choice{"turn": p.Pick("search"), "key": p.PickFor("search", "key"), "write": p.PickWrite("search")} {
		if c.Server != "" || c.Site != "east" || c.Known {
			t.Errorf("%s: %+v", what, c)
		}
		c.Done(nil)
		c.Done(errStatus)
	}
	if n := testutil.ToFloat64(p.metrics.noServer); n != 3 {
		t.Errorf("%v picks without a server", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	for p.States()[0].Err == nil {
		time.Sleep(time.Millisecond)
	}
	if err := p.Ready(ctx, "cart"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("ready: %v", err)
	}
	local := told(1, 1, 0)
	local.Ratios[0].Servers = nil // the API knows no servers there
	x.now = local
	x.start()
	ok(t, p.Ready(t.Context(), "cart"))
	counted(t, "fallback at the site that the API names", p, map[string]int{"http://f1": 20, "http://f2": 20})
	p.Close()
	p.Close()
	counted(t, "closed", p, map[string]int{"http://f1": 20, "http://f2": 20})
	if c := p.Pick("new"); c.Server != "" || c.Site != "east" {
		t.Errorf("after the end: %+v", c)
	}
}

// TestOtherServers under the same epoch, after a restart of the API, say.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	x := startAPI(t, told(1, 0, 1))
	p := open(t, x.url(), func(o *Options) { o.Wait = 20 * time.Millisecond })
	ok(t, p.Ready(t.Context(), "cart"))
	x.waits(1)
	x.mu.Lock()
	x.now = told(1, 0, 1)
	x.now.Ratios[1].Servers = []string{"http://w2"}
	x.servers = "other"
	x.mu.Unlock()
	for p.Pick("cart").Server != "http://w2" {
		time.Sleep(time.Millisecond)
	}
}

// TestAnswersThatAreNone leave what was known, and are counted and said.
func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	send := func(status int, body string, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	encoded := func(change func(*control.SplitAnswer)) string {
		a := told(5, 1, 0)
		change(a)
		b, err := control.Encode(a)
		ok(t, err)
		return string(b)
	}
	for name, c := range map[string]struct {
		other  http.HandlerFunc
		result string
		want   string
	}{
		"not found":         {send(404, `{"error":"unknown-component","text":"no such"}`), gotRefusal, `status 404, "unknown-component": "no such"`},
		"a token is needed": {send(401, `<html>`), gotRefusal, "status 401"},
		"sent elsewhere":    {send(302, ``, "Location", "http://127.0.0.1:1/"), gotRefusal, "status 302"},
		"no JSON":           {send(200, `{`), gotRubbish, "undecodable"},
		"another component": {send(200, encoded(func(a *control.SplitAnswer) { a.Component = "search" })), gotRubbish, "To:search"},
		"another site":      {send(200, encoded(func(a *control.SplitAnswer) { a.FromSite = "west" })), gotRubbish, "FromSite:west"},
		"no sum":            {send(200, encoded(func(a *control.SplitAnswer) { a.Ratios[0].Share = 0.5 })), gotRubbish, "a sum of"},
		"half":              {send(200, `{"component`, "Content-Length", "100"), gotNothing, "EOF"},
		"unasked 304":       {send(304, ``), gotRefusal, "status 304"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := startAPI(t, told(1, 0, 1))
			x.other = c.other
			p := open(t, x.url(), nil)
			p.Pick("cart")
			for p.States()[0].Err == nil {
				time.Sleep(time.Millisecond)
			}
			err := p.States()[0].Err
			if !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrAnswer) != (c.result != gotNothing) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if n := testutil.ToFloat64(p.metrics.answers.WithLabelValues(c.result)); n < 1 {
				t.Errorf("not counted as %s", c.result)
			}
			counted(t, "fallback", p, map[string]int{"http://f1": 2, "http://f2": 2})
			x.set(func() { x.other = nil })
			x.waits(1)
			if s := p.States()[0]; s.Err != nil || s.Epoch != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestOlderTables are refused for a minute; then the bus has begun anew. An asker
// that is told to come later does.
func TestOlderTables(t *testing.T) {
	t.Parallel()
	x := startAPI(t, told(7, 0, 1))
	c := clock.NewManual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	p := open(t, x.url(), func(o *Options) { o.Clock, o.Retry = c, 5*time.Second })
	ok(t, p.Ready(t.Context(), "cart"))
	// step lets the next question be asked, which waits for the clock, as tend does.
	step := func(d time.Duration) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ok(t, c.Await(ctx, 2))
		c.Advance(d)
	}
	x.mu.Lock()
	x.now = told(3, 1, 0)
	x.mu.Unlock()
	step(leastPace)
	for range 12 {
		step(0) // it waits again
		if e := p.Pick("cart").Epoch; e != 7 {
			t.Fatalf("epoch %d after %v", e, c.Now())
		}
		if err := p.States()[0].Err; !errors.Is(err, errOlder) {
			t.Fatal(err)
		}
		step(5 * time.Second)
	}
	step(0)
	if choice := p.Pick("cart"); choice.Epoch != 3 || choice.Site != "east" {
		t.Errorf("after a minute: %+v", choice)
	}
	x.mu.Lock()
	x.other = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	x.mu.Unlock()
	step(leastPace)
	step(0)
	x.set(func() { x.other = nil; x.now = told(4, 0, 1) })
	step(19 * time.Second)
	if e := p.Pick("cart").Epoch; e != 3 {
		t.Errorf("asked too early: epoch %d", e)
	}
	step(time.Second)
	for p.Pick("cart").Epoch != 4 {
		time.Sleep(time.Millisecond)
	}
}
