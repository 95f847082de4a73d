package entry_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"penstock/infra/shares"
	"penstock/producers/entry"
)

// Writes go to the configured site, whoever calls and whether there is a table or not;
// what a table says itself counts before.
func TestWritesGoToTheirSiteWithoutATable(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b", "c"}, func(_ string, o *entry.Options) {
		for i := range o.Components {
			o.Components[i].WritesAt = "b"
		}
		o.Residency = func(owner string) []bool { return []bool{true, owner != "eve", true} }
		o.Session = entry.Session{Cookie: "SITE"}
	})
	a, b := m.sites["a"], m.sites["b"]
	to := func(s *meshSite, method, component, from string, headers ...string) answer {
		t.Helper()
		if from != "" {
			headers = append(headers, "Penstock-Component", from)
		}
		return do(t, method, s.internal+"/x", strings.NewReader("w"), append(headers, "Penstock-To", component)...)
	}
	outside := func(s *meshSite, method, host, path string) answer {
		t.Helper()
		r, _ := http.NewRequest(method, s.url+path, strings.NewReader("w"))
		r.Host = host
		r.Header.Set("Cookie", "SITE=a; SITE-shop=a")
		return send(t, r)
	}
	expect := func(what string, got answer, want string) {
		t.Helper()
		if got.body != want {
			t.Errorf("%s: got %d %q, expected %q", what, got.StatusCode, got.body, want)
		}
	}
	expect("a component's call", to(a, "POST", "cart", "web"), "cart@b w")
	expect("its read", to(a, "GET", "cart", "web"), "cart@a w")
	expect("an unknown caller's", to(a, "PUT", "cart", ""), "cart@b w")
	expect("a client's, for a public component", outside(a, "DELETE", "shop.example", "/x"), "shop@b w")
	got := outside(a, "POST", "x.example", "/x")
	expect("a client's", got, "web@b w")
	if got.Header.Get("Set-Cookie") != "" {
		t.Errorf("a write began a session: %q", got.Header.Get("Set-Cookie"))
	}
	expect("a client's read", outside(a, "GET", "x.example", "/x"), "web@a w")
	expect("where writes go", to(b, "POST", "cart", "web"), "cart@b w")
	a.places.set("ada", "c", 3)
	m.sites["c"].places.set("ada", "c", 3)
	expect("one for data that is known to be elsewhere", outside(a, "PUT", "x.example", "/u/ada/x"), "web@c w")
	expect("one for data that may not be there", outside(a, "PUT", "x.example", "/u/eve/x"), "web@a w")
	for _, row := range []struct {
		table  shares.Table
		writes string
	}{
		{shares.Table{Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "cart", Ratios: ratios("a", 0.5, "c", 0.5)}}}, "cart@b w"},
		{shares.Table{Epoch: 2, Rows: []shares.Row{{FromSite: "a", To: "cart", Ratios: ratios("a", 0.5, "b", 0.5)}}}, "cart@b w"},
		{shares.Table{Epoch: 3, Rows: []shares.Row{{FromSite: "a", To: "cart", Ratios: ratios("a", 1.0), WritesAt: "c"}}}, "cart@c w"},
		{shares.Table{Epoch: 4, Rows: []shares.Row{{FromSite: "a", To: "shop", Ratios: ratios("a", 1.0)}}}, "cart@b w"},
	} {
		row.table.From = "web"
		a.put(t, row.table)
		for range 4 {
			expect("with a table", to(a, "POST", "cart", "web"), row.writes)
		}
	}
	// Nobody else may take them.
	b.stop()
	if got := to(a, "POST", "cart", ""); got.StatusCode != http.StatusBadGateway {
		t.Errorf("got %d %q", got.StatusCode, got.body)
	}
	if n := a.counter(t, "penstock_entry_fallbacks_total", "tried", "false", "reason", "no-site"); n != 1 {
		t.Errorf("%v times no other site was found", n)
	}
	for _, site := range []string{"a", "b", "c"} {
		a.settled(t, "cart", site)
	}
}

// A site for writes has to be one, and needs what sends calls elsewhere.
func TestSitesForWritesAreChecked(t *testing.T) {
	t.Parallel()
	for fault, change := range map[string]func(*entry.Options){
		`writes at "z", which is no site`: func(o *entry.Options) { o.Components[0].WritesAt = "z" },
		"there are no shares":             func(o *entry.Options) { o.Shares = nil },
	} {
		o := entry.Options{
			Site: "a", Sites: []entry.Site{{Name: "a"}}, Local: pool(t, "a"), Shares: shares.New(shares.Options{}),
			Components: []entry.ComponentRoute{{Name: "x", WritesAt: "a"}},
		}
		if _, err := entry.New(o); err != nil {
			t.Fatal(err)
		}
		change(&o)
		if _, err := entry.New(o); !errors.Is(err, entry.ErrOption) || !strings.Contains(err.Error(), fault) {
			t.Errorf("got %v, expected %s", err, fault)
		}
	}
}
