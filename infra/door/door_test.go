package door

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

// TestRatesAreBounded: of many clients those are forgotten that have most left.
func TestRatesAreBounded(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2015, 5, 17, 10, 0, 0, 0, time.UTC)
	r := NewRates(RateOptions{Rate: 1, Burst: 10, Clients: 160, TotalBurst: 1})
	greedy := Client{address: netip.MustParseAddr("192.0.2.1")}
	for range 10 {
		r.Take(greedy, 1, t0)
	}
	refused := 0
	for i := range 5000 {
		r.Take(Client{token: i + 1}, 1, t0)
		if _, by := r.Take(greedy, 1, t0); by == ByClient {
			refused++
		}
	}
	n := 0
	for i := range r.shards {
		n += len(r.shards[i].clients)
	}
	if n > 160 || refused < 4500 {
		t.Errorf("%d clients are kept, the greedy one was refused %d times of 5000", n, refused)
	}
}

// TestRates: what was refused was not taken, of neither limit, and time gives back.
func TestRates(t *testing.T) {
	t.Parallel()
	now := time.Date(2015, 5, 17, 10, 0, 0, 0, time.UTC)
	r := NewRates(RateOptions{Rate: 1, Burst: 2, Clients: 16, TotalRate: 2, TotalBurst: 3})
	ann, bob := Client{token: 1}, Client{token: 2}
	for i, step := range []struct {
		who   Client
		n     int
		after time.Duration
		wait  time.Duration
		by    string
	}{
		{ann, 2, 0, 0, ""},
		{ann, 1, 0, time.Second, ByClient},
		{bob, 2, 0, 500 * time.Millisecond, ByTotal},
		{bob, 1, 0, 0, ""},
		{OnTheBus, 1, 0, 500 * time.Millisecond, ByTotal},
		{OnTheBus, 1, 500 * time.Millisecond, 0, ""},
		{ann, 3, time.Hour, time.Minute, ByClient}, // more than it ever has
	} {
		now = now.Add(step.after)
		if wait, by := r.Take(step.who, step.n, now); wait != step.wait || by != step.by {
			t.Errorf("step %d: wait %v by %q, expected %v by %q", i, wait, by, step.wait, step.by)
		}
	}
}

// TestEnter: with tokens only they count, without only loopback names, and a
// public door asks nothing.
func TestEnter(t *testing.T) {
	t.Parallel()
	one, two := []string{"a secret of some length"}, []string{"a secret of some length", "another one of length"}
	peer := func(a string) Client { return Client{address: netip.MustParseAddr(a)} }
	for name, c := range map[string]struct {
		o             Options
		host, bearer  string
		from, forward string
		want          Client
		refused       int
	}{
		"loopback":            {Options{}, "127.0.0.1:80", "", "127.0.0.1:9", "", peer("127.0.0.1"), 0},
		"a name of loopback":  {Options{}, "localhost", "", "[::1]:9", "", peer("::"), 0},
		"a page's own name":   {Options{}, "evil.example", "", "127.0.0.1:9", "", Client{}, http.StatusForbidden},
		"no token":            {Options{Tokens: one}, "x", "", "192.0.2.1:9", "", Client{}, http.StatusUnauthorized},
		"another token":       {Options{Tokens: one}, "x", "Bearer no", "192.0.2.1:9", "", Client{}, http.StatusUnauthorized},
		"not a bearer":        {Options{Tokens: one}, "x", one[0], "192.0.2.1:9", "", Client{}, http.StatusUnauthorized},
		"the token":           {Options{Tokens: one}, "x", "Bearer " + one[0], "192.0.2.1:9", "", peer("192.0.2.1"), 0},
		"the second token":    {Options{Tokens: two}, "x", "Bearer " + two[1], "192.0.2.1:9", "", Client{token: 2}, 0},
		"public":              {Options{Public: true, Tokens: one}, "x", "", "[2001:db8::1:2:3:4]:9", "", peer("2001:db8::"), 0},
		"a proxy of nobody's": {Options{Public: true}, "x", "", "192.0.2.1:9", "203.0.113.9", peer("192.0.2.1"), 0},
		"a trusted proxy": {
			Options{Public: true, Trusted: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, "x", "", "192.0.2.1:9", "203.0.113.9", peer("203.0.113.9"), 0,
		},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Host, r.RemoteAddr = c.host, c.from
		r.Header.Set("Authorization", c.bearer)
		if c.forward != "" {
			r.Header.Set("X-Forwarded-For", c.forward)
		}
		if got, refused := New(c.o).Enter(r); got != c.want || refused != c.refused {
			t.Errorf("%s: %+v, %d", name, got, refused)
		}
	}
}

// TestProves: a door that asks for tokens takes whole ones only.
func TestProves(t *testing.T) {
	t.Parallel()
	two := Options{Tokens: []string{"first", "second"}}
	for name, c := range map[string]struct {
		o             Options
		authorization string
		want          bool
	}{
		"no tokens":      {Options{}, "", true},
		"public":         {Options{Public: true, Tokens: two.Tokens}, "", true},
		"the first":      {two, "Bearer first", true},
		"the second":     {two, "Bearer second", true},
		"none sent":      {two, "", false},
		"another scheme": {two, "Basic first", false},
		"a part":         {two, "Bearer firs", false},
		"both":           {two, "Bearer first second", false},
	} {
		if got := New(c.o).Proves(c.authorization); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCheck: off loopback a server needs tokens worth the name, or to be public.
func TestCheck(t *testing.T) {
	t.Parallel()
	const secret = "a secret of some length"
	for name, c := range map[string]struct {
		listen string
		o      Options
		want   error
	}{
		"loopback":       {"127.0.0.1:0", Options{}, nil},
		"a short token":  {"localhost:1", Options{Tokens: []string{"x"}}, nil},
		"no port":        {"127.0.0.1", Options{}, ErrOptions},
		"an empty token": {"127.0.0.1:0", Options{Tokens: []string{""}}, ErrOptions},
		"everywhere":     {":0", Options{}, ErrToken},
		"one is short":   {"0.0.0.0:0", Options{Tokens: []string{secret, "short"}}, ErrToken},
		"with a token":   {"0.0.0.0:0", Options{Tokens: []string{secret}}, nil},
		"public":         {"0.0.0.0:0", Options{Public: true}, nil},
	} {
		if err := c.o.Check(c.listen); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
