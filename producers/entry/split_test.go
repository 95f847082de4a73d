package entry_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"penstock/infra/shares"
	"penstock/producers/entry"
	"penstock/producers/entry/identify"
)

// Requests of many connections together meet the shares to a request, each is one row
// of the entry point that the client called, and each has left its site in the end.
func TestSharesAreMetExactly(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b", "c"}, nil)
	a := m.sites["a"]
	a.put(t, shares.Table{From: "entry", Epoch: 1, Rows: []shares.Row{
		{FromSite: "a", To: "web", Ratios: ratios("a", 0.6, "b", 0.3, "c", 0.1)},
		{FromSite: "a", To: "shop", Ratios: ratios("a", 0.0, "b", 1.0, "c", 0.0)},
	}})
	const connections, each = 10, 20
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			c := client(t)
			for i := range each {
				r, _ := http.NewRequest(http.MethodGet, a.url+"/x", nil)
				if i%2 == 1 {
					r, _ = http.NewRequest(http.MethodPost, a.url+"/x", strings.NewReader("hi"))
				}
				resp, err := c.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("got %d", resp.StatusCode)
				}
				for name := range resp.Header {
					if strings.HasPrefix(name, "Penstock-") {
						t.Errorf("a client is told %s", name)
					}
				}
			}
		})
	}
	all.Wait()
	if n := m.counts(); n["web@a"] != 120 || n["web@b"] != 60 || n["web@c"] != 20 {
		t.Errorf("served %v", n)
	}
	to := map[string]int{}
	for _, r := range a.rows.await(t, connections*each) {
		if r.FromComponent != "" || r.FromSite != "a" || r.ToComponent != "web" || r.ToServer != "a-1" || r.Status != 200 || r.Service != 2000 {
			t.Errorf("row %+v", r)
		}
		to[r.ToSite]++
	}
	if to["a"] != 120 || to["b"] != 60 || to["c"] != 20 {
		t.Errorf("rows %v", to)
	}
	for _, site := range []string{"a", "b", "c"} {
		a.settled(t, "web", site)
		want := map[string]float64{"a": 120, "b": 60, "c": 20}[site]
		if n := a.counter(t, "penstock_entry_picks_total", "to_component", "web", "to_site", site); n != want {
			t.Errorf("%v picks of %s", n, site)
		}
	}
	if n := len(m.sites["b"].rows.all) + len(m.sites["c"].rows.all); n != 0 {
		t.Errorf("peers made %d rows", n)
	}
	// A public component goes by its host, and by its own row.
	r, _ := http.NewRequest(http.MethodGet, a.url+"/x", nil)
	r.Host = "EU.shop.example.:8080"
	if got := send(t, r); got.body != "shop@b " {
		t.Errorf("got %q", got.body)
	}
	if r := a.rows.await(t, connections*each+1)[connections*each]; summary(r) != "@a→shop@b 200" || r.Owner != "" || r.User == "" {
		t.Errorf("row %+v", r)
	}
}

// A session by cookie stays where it began, as long as that has a share and is up.
func TestSessionsByCookie(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, func(_ string, o *entry.Options) {
		o.Session = entry.Session{Cookie: "SITE", TTL: 90 * 60e9}
	})
	a := m.sites["a"]
	row := func(epoch uint64, rows ...shares.Row) {
		a.put(t, shares.Table{From: "entry", Epoch: epoch, Rows: rows})
	}
	row(1, shares.Row{FromSite: "a", To: "web", Ratios: ratios("a", 0.5, "b", 0.5)})
	begun := map[string]int{}
	for range 20 {
		got := get(t, a.url+"/x")
		cookies := got.Header.Values("Set-Cookie")
		site, _, _ := strings.Cut(strings.TrimPrefix(got.body, "web@"), " ")
		if len(cookies) != 1 || cookies[0] != "SITE="+site+"; Path=/; Max-Age=5400; HttpOnly; SameSite=Lax" {
			t.Fatalf("served by %q with %q", got.body, cookies)
		}
		begun[site]++
		for range 3 {
			if again := get(t, a.url+"/x", "Cookie", "x=y; SITE="+site); again.body != got.body || again.Header.Get("Set-Cookie") != "" {
				t.Errorf("a session at %s was served by %q, and told %q", site, again.body, again.Header.Get("Set-Cookie"))
			}
		}
	}
	if begun["a"] != 10 || begun["b"] != 10 {
		t.Errorf("sessions began at %v", begun)
	}
	// What names no site is none, and the service may set cookies too.
	m.answers(func(_ string, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Add("Set-Cookie", "mine=1")
		w.Header().Add("Set-Cookie", "more=2")
		return false
	})
	for _, value := range []string{"nowhere", "", `"a`, "a%"} {
		if got := get(t, a.url+"/x", "Cookie", "SITE="+value); len(got.Header.Values("Set-Cookie")) != 3 || got.Header.Values("Set-Cookie")[0] != "mine=1" {
			t.Errorf("%q: told %q", value, got.Header.Values("Set-Cookie"))
		}
	}
	m.answers(nil)
	// A site that lost its share, or drains, has no sessions any more.
	row(2, shares.Row{FromSite: "a", To: "web", Ratios: ratios("a", 0.0, "b", 1.0)})
	if got := get(t, a.url+"/x", "Cookie", "SITE=a"); got.body != "web@b " || !strings.HasPrefix(got.Header.Get("Set-Cookie"), "SITE=b;") {
		t.Errorf("served by %q, told %q", got.body, got.Header.Get("Set-Cookie"))
	}
	row(3, shares.Row{FromSite: "a", To: "web", Ratios: ratios("a", 0.5, "b", 0.5)})
	a.shares.Up(shares.Replica{Component: "web", Site: "b"}, false)
	if got := get(t, a.url+"/x", "Cookie", "SITE=b"); got.body != "web@a " || !strings.HasPrefix(got.Header.Get("Set-Cookie"), "SITE=a;") {
		t.Errorf("served by %q, told %q", got.body, got.Header.Get("Set-Cookie"))
	}
	// Each public component has a cookie of its own.
	row(4, shares.Row{FromSite: "a", To: "shop", Ratios: ratios("a", 0.0, "b", 1.0)})
	r, _ := http.NewRequest(http.MethodGet, a.url+"/x", nil)
	r.Host = "shop.example"
	r.Header.Set("Cookie", "SITE=a")
	if got := send(t, r); got.body != "shop@b " || !strings.HasPrefix(got.Header.Get("Set-Cookie"), "SITE-shop=b;") {
		t.Errorf("served by %q, told %q", got.body, got.Header.Get("Set-Cookie"))
	}
	// Nothing is split: no session.
	if got := get(t, a.url+"/x"); got.Header.Get("Set-Cookie") != "" {
		t.Errorf("told %q", got.Header.Get("Set-Cookie"))
	}
}

// A session by header is at the site that the header names, or at the one that an id
// of the client's leads to: the same for the same id, for calls within too.
func TestSessionsByHeader(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, func(_ string, o *entry.Options) { o.Session = entry.Session{Header: "x-session"} })
	a := m.sites["a"]
	half := ratios("a", 0.5, "b", 0.5)
	a.put(t, shares.Table{From: "entry", Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "web", Ratios: half}}})
	a.put(t, shares.Table{From: "web", Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "cart", Ratios: half}}})
	at := map[string]int{}
	for _, id := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "a b;", "%61"} {
		first := get(t, a.url+"/x", "X-Session", id)
		if first.Header.Get("X-Session") != "" {
			t.Errorf("%s was told %q", id, first.Header.Get("X-Session"))
		}
		at[first.body]++
		for range 3 {
			if again := get(t, a.url+"/x", "X-Session", id); again.body != first.body {
				t.Errorf("%s was at %q, then at %q", id, first.body, again.body)
			}
			within := get(t, a.internal+"/x", "Penstock-To", "cart", "Penstock-Component", "web", "X-Session", id)
			if strings.TrimPrefix(within.body, "cart") != strings.TrimPrefix(first.body, "web") {
				t.Errorf("%s was at %q, within at %q", id, first.body, within.body)
			}
		}
	}
	if len(at) != 2 {
		t.Errorf("all sessions at %v", at)
	}
	got := get(t, a.url+"/x")
	site := got.Header.Get("X-Session")
	if got.body != "web@"+site+" " {
		t.Fatalf("served by %q, told %q", got.body, site)
	}
	for range 4 {
		if again := get(t, a.url+"/x", "X-Session", site); again.body != got.body || again.Header.Get("X-Session") != "" {
			t.Errorf("a session at %s was served by %q, and told %q", site, again.body, again.Header.Get("X-Session"))
		}
	}
}

// Writes have one site, whatever sessions and ratios say; they begin no session there
// unless reads go there too.
func TestWritesGoToTheirSite(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, func(_ string, o *entry.Options) { o.Session = entry.Session{Cookie: "SITE"} })
	a := m.sites["a"]
	a.put(t, shares.Table{From: "entry", Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "web", Ratios: ratios("a", 1.0, "b", 0.0), WritesAt: "b"}}})
	for range 5 {
		if got := do(t, "POST", a.url+"/x", strings.NewReader("w"), "Cookie", "SITE=a"); got.body != "web@b w" || got.Header.Get("Set-Cookie") != "" {
			t.Errorf("a write was served by %q, told %q", got.body, got.Header.Get("Set-Cookie"))
		}
		if got := get(t, a.url+"/x"); got.body != "web@a " {
			t.Errorf("a read was served by %q", got.body)
		}
	}
	// Nobody else may take them.
	m.sites["b"].stop()
	if got := do(t, "PUT", a.url+"/x", strings.NewReader("w")); got.StatusCode != http.StatusBadGateway {
		t.Errorf("got %d %q", got.StatusCode, got.body)
	}
	if n := a.counter(t, "penstock_entry_fallbacks_total", "tried", "false", "reason", "no-site"); n != 1 {
		t.Errorf("%v times no other site was found", n)
	}
	a.settled(t, "web", "b")
}

// Where an owner's data is known to be beats the shares, and residency bounds them.
func TestLocationsBeatShares(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b", "c"}, func(_ string, o *entry.Options) {
		o.Owner = []identify.Rule{{Path: "/u/{owner}/**"}}
		o.Residency = func(owner string) []bool {
			if owner == "eve" {
				return []bool{true, false, true}
			}
			return nil
		}
	})
	a := m.sites["a"]
	table := func(epoch uint64, site string) {
		a.put(t, shares.Table{From: "entry", Epoch: epoch, Rows: []shares.Row{{FromSite: "a", To: "web", Ratios: ratios(site, 1.0)}}})
	}
	table(1, "b")
	for _, s := range m.sites {
		s.places.set("ada", "c", 4)
	}
	for range 3 {
		if got := get(t, a.url+"/u/ada/x"); got.body != "web@c " || got.about() != "200 c v4 hops 1" {
			t.Errorf("got %q, %s", got.body, got.about())
		}
	}
	if n := a.counter(t, "penstock_entry_misdirections_total"); n != 0 || len(a.rows.await(t, 3)) != 3 {
		t.Errorf("%v times it was found out at a peer", n)
	}
	// Of unknown place: by the shares, all of one owner's together, where it may be.
	if got := get(t, a.url+"/u/bob/x"); got.body != "web@b " || got.about() != "200 b v hops 1" {
		t.Errorf("got %q, %s", got.body, got.about())
	}
	if got := get(t, a.url+"/u/eve/x"); got.body != "web@a " {
		t.Errorf("an owner that may not be at b was served by %q", got.body)
	}
	a.put(t, shares.Table{From: "entry", Epoch: 2, Rows: []shares.Row{{FromSite: "a", To: "web", Ratios: ratios("a", 0.5, "b", 0.5)}}})
	for _, owner := range []string{"1", "2", "3", "4", "5", "6"} {
		first := get(t, a.url+"/u/"+owner+"/x").body
		for range 3 {
			if again := get(t, a.url+"/u/"+owner+"/x").body; again != first {
				t.Errorf("owner %s at %q and %q", owner, first, again)
			}
		}
	}
	// The peer knows better where the data is, and is followed.
	table(3, "b")
	m.sites["b"].places.set("dan", "c", 7)
	m.got()
	if got := do(t, "PUT", a.url+"/u/dan/x", strings.NewReader("w")); got.body != "web@c w" || got.about() != "200 c v7 hops 1" {
		t.Errorf("got %q, %s", got.body, got.about())
	}
	if n := m.counts(); n["web@c"] != 1 || len(n) != 1 {
		t.Errorf("served %v", n)
	}
	for _, site := range []string{"a", "b", "c"} {
		a.settled(t, "web", site)
	}
}
