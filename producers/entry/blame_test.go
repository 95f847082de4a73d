package entry_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"penstock/infra/shares"
	"penstock/producers/entry"
)

// What an entry point answers without having asked anybody counts against no
// component, whoever makes it answer so and however often; what servers failed at does.
func TestWhatNobodyWasAskedForBlamesNobody(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdef0123456789abcdef")
	m := newMesh(t, []string{"a", "b"}, func(_ string, o *entry.Options) {
		o.Limits.Body, o.Limits.Header = 100, 4096
		o.Components[0].Local = pool(t, "shop", "http://127.0.0.1:1") // nobody listens there
	})
	a := m.sites["a"]
	a.places.set("bea", "b", 7)
	m.sites["b"].stop() // whoever is forwarded there gets 502
	head := func(line, fields string) string { return line + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n" }
	for _, test := range []struct {
		name, request string
		status        int
		to            string
	}{
		{"marked, for a component", head("GET /x", "Penstock-Hop: 1\r\nPenstock-To: cart\r\n"), 508, ""},
		{"marked, for the own one", head("GET /x", "Penstock-Hop: b\r\nPenstock-To: web\r\n"), 508, ""},
		{"marked, for data elsewhere", head("GET /x", "Penstock-Hop: 1\r\nX-Owner: bea\r\n"), 200, "web"}, // only the path names owners here
		{"marked", head("GET /x", "Penstock-Hop: 1\r\n"), 200, "web"},
		{"not marked", head("GET /x", "Penstock-To: cart\r\n"), 200, "web"},
		{"data elsewhere, marked", head("GET /u/bea/x", "Penstock-Hop: 1\r\n"), 508, ""},
		{"no HTTP", "GET /x\r\n\r\n", 400, ""},
		{"another version", "GET /x HTTP/3.0\r\nHost: x\r\n\r\n", 505, ""},
		{"a method of none", head("TRACE /x", ""), 405, ""},
		{"an unknown coding", head("POST /x", "Transfer-Encoding: gzip\r\n"), 501, ""},
		{"a large head", head("GET /x", "X: "+strings.Repeat("x", 8192)+"\r\n"), 431, ""},
		{"a large body", head("POST /x", "Content-Length: 101\r\n"), 413, ""},
		{"a large body in chunks", head("POST /x", "Transfer-Encoding: chunked\r\n") + "65\r\n" + strings.Repeat("x", 0x65) + "\r\n0\r\n\r\n", 413, ""},
		{"a body that is none", head("POST /x", "Transfer-Encoding: chunked\r\n") + "zz\r\n", 400, ""},
		{"the site's entry point is away", head("GET /u/bea/x", ""), 502, "web"},
		{"no server", "GET /x HTTP/1.1\r\nHost: shop.example\r\n\r\n", 502, "shop"},
	} {
		n := len(a.rows.await(t, 0))
		c := dial(t, a.point)
		c.send(t, test.request)
		got := c.next(t, "GET")
		if got == nil || got.StatusCode != test.status {
			t.Errorf("%s: got %+v, expected %d", test.name, got, test.status)
			continue
		}
		row := a.rows.await(t, n+1)[n]
		if row.ToComponent != test.to || int(row.Status) != test.status || row.FromSite != "a" || test.status != http.StatusBadGateway && row.ToSite != "a" {
			t.Errorf("%s: row %s, expected to %q", test.name, summary(row), test.to)
		}
	}
	p := run(t, []string{service(t, readAll)}, func(o *entry.Options) { o.JWT = entry.JWT{Key: secret, Required: true} })
	if got := get(t, p.url+"/x"); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("got %d", got.StatusCode)
	}
	if row := p.rows.await(t, 1)[0]; row.ToComponent != "" || row.Status != http.StatusUnauthorized || row.ToSite != "a" {
		t.Errorf("row %s", summary(row))
	}
}

// Answers for owners that are being moved, and where no way leads, are no component's;
// the attempt that a server answered with 421 is.
func TestMovesBlameNobody(t *testing.T) {
	t.Parallel()
	g := &gate{held: make(chan struct{})} // ada's, for ever
	w := newWorld(t, func(site string, o *entry.Options) {
		o.Hold, o.Gate = -1, g
		if site == "c" {
			o.Sites = []entry.Site{{Name: "c"}, {Name: "b"}} // no way leads there
		}
	})
	a := w.points["a"]
	w.stores["a"].moved["cleo"] = word{"a", 2}
	for _, p := range w.points {
		p.places.set("ada", "a", 1)
		p.places.set("bea", "b", 1)
		p.places.set("cleo", "a", 1)
	}
	for _, test := range []struct {
		site, method, path string
		rows               []string
	}{
		{"a", "GET", "/u/cleo/x", []string{"@a→web@a 421", "@a→@a 503"}},
		{"a", "PUT", "/u/ada/x", []string{"@a→@a 503"}},
		{"b", "GET", "/u/cleo/x", []string{"@b→web@a 421", "@b→@b 503"}},
		{"b", "PUT", "/u/ada/x", []string{"@b→@a 503"}}, // its peer's own
		{"c", "GET", "/u/bea/x", []string{"@c→@c 503"}},
	} {
		p := w.points[test.site]
		n := len(p.rows.await(t, 0))
		if got := do(t, test.method, p.url+test.path, nil); got.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s: got %s", test.site, got.about())
		}
		for i, row := range p.rows.await(t, n+len(test.rows))[n:] {
			if summary(row) != test.rows[i] {
				t.Errorf("%s of %s at %s: row %s, expected %s", test.method, test.path, test.site, summary(row), test.rows[i])
			}
		}
	}
	if got := get(t, a.url+"/u/bea/x", "Penstock-Hop", "x"); got.about() != "508 b v1 hops 0" || !strings.Contains(got.body, "is at another site") {
		t.Errorf("got %s %q", got.about(), got.body)
	}
}

// The text of a refused call says what is wrong between sites, and nothing of another.
func TestARefusedCallSaysWhy(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, nil)
	got := get(t, m.sites["a"].url+"/x", "Penstock-Hop", "b", "Penstock-To", "cart")
	if got.StatusCode != http.StatusLoopDetected || !strings.Contains(got.body, "peer_key_file") || got.Header.Get("Penstock-Peer") != "unknown" ||
		got.Header.Get("Penstock-Site") != "" {
		t.Errorf("got %d %q %v", got.StatusCode, got.body, got.Header)
	}
}

// However many calls a peer refuses for its key, a component that is well here answers
// them: nothing of it is more work than there was, so that no budget holds it back.
func TestAPeerWithAnotherKeyCostsNoAnswers(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, func(site string, o *entry.Options) { o.PeerKey = []byte(strings.Repeat(site, 16)) })
	a := m.sites["a"]
	a.put(t, shares.Table{From: "web", Epoch: 1, Rows: []shares.Row{
		{FromSite: "a", To: "cart", Ratios: ratios("a", 0.0, "b", 1.0)},
		{FromSite: "a", To: "shop", Ratios: ratios("a", 1.0), WritesAt: "b"},
	}})
	c := client(t)
	const calls = 60
	for i := range calls {
		r, _ := http.NewRequest(http.MethodPost, a.internal+"/x", strings.NewReader("w"))
		r.Header.Set("Penstock-To", "cart")
		r.Header.Set("Penstock-Component", "web")
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("call %d got %d", i, resp.StatusCode)
		}
	}
	if n := m.counts(); n["cart@a"] != calls || len(n) != 1 {
		t.Errorf("served %v", n)
	}
	if err := a.shares.Ready(t.Context(), shares.Replica{Component: "cart", Site: "b"}); err == nil {
		t.Error("cart is not down at b")
	}
	// Writes that have a site can't be done elsewhere: that fails as for a site without servers.
	got := do(t, "POST", a.internal+"/x", strings.NewReader("w"), "Penstock-To", "shop", "Penstock-Component", "web")
	if got.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %d %q", got.StatusCode, got.body)
	}
	rows := a.rows.await(t, 2*calls+1)
	if last := fmt.Sprint(summary(rows[2*calls])); last != "web@a→shop@b 503" {
		t.Errorf("row %s", last)
	}
}
