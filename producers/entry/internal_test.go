package entry_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"penstock/infra/shares"
	"penstock/producers/entry"
	"penstock/producers/entry/identify"
	"penstock/producers/entry/upstream"
)

// Components call others on the internal listener, by name or host; who calls whom is
// in the rows of the entry point, and nothing of it reaches the service.
func TestComponentsCallOthers(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, func(_ string, o *entry.Options) {
		o.JWT = entry.JWT{Key: []byte("0123456789abcdef"), Required: true}
		o.Owner = []identify.Rule{{Header: "X-Owner"}}
		o.User = []identify.Rule{{Header: "X-User"}}
	})
	a := m.sites["a"]
	a.put(t, shares.Table{From: "web", Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "cart", Ratios: ratios("b", 1.0)}}})
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for i, test := range []struct {
		host    string
		headers []string
		status  int
		row     string
	}{
		{"", []string{"Penstock-To", "cart", "Penstock-Component", "web", "X-Owner", "ada", "X-User", "bob"}, 200, "web@a→cart@b 200"},
		{"", []string{"Penstock-To", "cart", "Penstock-Component", "shop"}, 200, "shop@a→cart@a 200"},
		{"cart.internal:81", []string{"Penstock-Component", "web"}, 200, "web@a→cart@b 200"},
		{"Cart.Internal.", nil, 200, "unknown@a→cart@a 200"},
		{"cart.internal", []string{"Penstock-To", "shop", "Penstock-Component", "web"}, 200, "web@a→shop@a 200"},
		{"web.internal", []string{"Penstock-Component", "cart", "X-Owner", "ada", "X-User", "bob"}, 200, "cart@a→web@a 200"},
		{"", []string{"Penstock-To", "web", "Penstock-Component", "entry"}, 200, "unknown@a→web@a 200"},
		{"", []string{"Penstock-To", "web", "Penstock-Component", strings.Repeat("x", 1025)}, 200, "unknown@a→web@a 200"},
		{"x.shop.example", []string{"Penstock-Component", "web"}, 200, "web@a→shop@a 200"},
		{".shop.example", []string{"Penstock-Component", "web"}, 404, "web@a→@a 404"},
		{"", []string{"Penstock-To", "wallet", "Penstock-Component", "web"}, 404, "web@a→@a 404"},
		{"cart.internal", []string{"Penstock-To", "", "Penstock-Component", "web"}, 404, "web@a→@a 404"},
		{"elsewhere.example", []string{"Penstock-Component", "web"}, 404, "web@a→@a 404"},
	} {
		r, _ := http.NewRequest(http.MethodGet, a.internal+"/items", nil)
		r.Host = test.host
		r.Header.Set("Traceparent", trace)
		r.Header.Set("X-Forwarded-For", "192.0.2.9")
		for k := 0; k < len(test.headers); k += 2 {
			r.Header.Set(test.headers[k], test.headers[k+1])
		}
		m.got()
		got := send(t, r)
		rows := a.rows.await(t, i+1)
		row := rows[len(rows)-1]
		if got.StatusCode != test.status || summary(row) != test.row {
			t.Errorf("%s %q: got %d %q, row %s", test.host, test.headers, got.StatusCode, got.body, summary(row))
			continue
		}
		if test.status != 200 {
			if got.body != "penstock: no component of that name, or for that host and path, is known here\n" {
				t.Errorf("got %q", got.body)
			}
			continue
		}
		if got.body != row.ToComponent+"@"+row.ToSite+" " || got.Header.Get("Penstock-Site") != row.ToSite {
			t.Errorf("%s: got %q %v", test.row, got.body, got.Header)
		}
		if fmt.Sprintf("%x", row.Trace) != trace[3:35] {
			t.Errorf("%s: trace %x", test.row, row.Trace)
		}
		if owned := row.ToComponent == "web" && test.host != ""; owned != (row.Owner == "ada") || owned != (row.User == "bob") {
			t.Errorf("%s: of %q, asked by %q", test.row, row.Owner, row.User)
		}
		h := m.got()[0].header
		for name := range h {
			if strings.HasPrefix(name, "Penstock") {
				t.Errorf("%s: the service got %s: %s", test.row, name, h[name])
			}
		}
		if p := h.Get("Traceparent"); p[:36] != trace[:36] || p[36:52] == trace[36:52] || !strings.HasPrefix(h.Get("X-Forwarded-For"), "192.0.2.9, 127.0.0.1") {
			t.Errorf("%s: traceparent %s, for %s", test.row, p, h.Get("X-Forwarded-For"))
		}
	}
	if n := len(m.sites["b"].rows.all); n != 0 {
		t.Errorf("the peer made %d rows", n)
	}
	if n := a.counter(t, "penstock_entry_ignored_total", "what", "component"); n != 2 {
		t.Errorf("%v callers were ignored", n)
	}
	if got := get(t, a.url+"/x"); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("a client without a token got %d", got.StatusCode)
	}
}

// A stranger names nothing, neither by headers of ours nor by the host of what is not
// public, in whatever spelling; only the internal listener knows these.
func TestStrangersReachOnlyWhatIsPublic(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, nil)
	a := m.sites["a"]
	to := ratios("b", 1.0)
	for _, from := range []string{"web", "unknown"} { // a stranger that were believed would end at b
		a.put(t, shares.Table{From: from, Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "cart", Ratios: to}, {FromSite: "a", To: "web", Ratios: to}}})
	}
	plain := func(h string) string { return "GET /x HTTP/1.1\r\nHost: x.example\r\n" + h + "\r\n" }
	for _, test := range []struct {
		request string
		status  int
		at      string
	}{
		{plain("Penstock-To: cart\r\n"), 200, "web@a"},
		{plain("penstock-to: cart\r\nPenstock-Component: web\r\nPenstock-Probe: 1\r\n"), 200, "web@a"},
		{plain("PENSTOCK_TO: cart\r\nPenstock-Site: b\r\n"), 200, "web@a"},
		{plain("Penstock-To: cart\r\nConnection: Penstock-To\r\n"), 400, ""},
		{plain("Penstock-To: cart\r\nPenstock-Peer: guess\r\n"), 200, "web@a"},
		{"GET /x HTTP/1.1\r\nHost: cart.internal\r\n\r\n", 200, "web@a"},
		{"GET http://cart.internal/x HTTP/1.1\r\nHost: cart.internal\r\n\r\n", 200, "web@a"},
		{"GET /x HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-Host: cart.internal\r\nPenstock-To: cart\r\n\r\n", 200, "shop@a"},
		{plain("Penstock-Hop: b\r\nPenstock-To: cart\r\n"), 508, ""},
		{plain("Penstock-Hop: b\r\nPenstock-To: web\r\nPenstock-Peer: 0123456789abcdeF\r\n"), 508, ""},
		{plain("Penstock-Hop: b\r\nPenstock-To: cart\r\nPenstock-Peer:\r\n"), 508, ""},
		{"POST /x HTTP/1.1\r\nHost: x\r\nPenstock-To: cart\r\nContent-Length: 4\r\n\r\nbody", 200, "web@a"},
	} {
		m.got()
		n := len(a.rows.await(t, 0))
		c := dial(t, a.point)
		c.send(t, test.request)
		got := c.next(t, "GET")
		if got == nil || got.StatusCode != test.status {
			t.Fatalf("%q: got %+v", test.request, got)
		}
		calls := m.got()
		if test.at == "" && len(calls) > 0 || test.at != "" && (len(calls) != 1 || calls[0].at != test.at) {
			t.Errorf("%q: served by %+v", test.request, calls)
		}
		for _, call := range calls {
			for name := range call.header {
				if strings.HasPrefix(strings.ToLower(name), "penstock") {
					t.Errorf("%q: the service got %s", test.request, name)
				}
			}
		}
		if row := a.rows.await(t, n+1)[n]; row.FromComponent != "" || row.Class == "probe" || row.FromSite != "a" || row.ToSite != "a" {
			t.Errorf("%q: row %+v", test.request, row)
		}
		for name := range got.Header {
			if strings.HasPrefix(name, "Penstock-") && test.status == 200 {
				t.Errorf("%q: told %s", test.request, name)
			}
		}
	}
}

// A peer names the component, and is served here or not at all: it is the one hop.
func TestAPeerIsServedHere(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, func(site string, o *entry.Options) {
		if site == "b" {
			o.Components = append(o.Components, entry.ComponentRoute{Name: "absent"})
		}
	})
	b := m.sites["b"]
	back := ratios("a", 1.0) // b would send on what it gets
	for _, from := range []string{"entry", "web", "unknown"} {
		b.put(t, shares.Table{From: from, Epoch: 1, Rows: []shares.Row{{FromSite: "b", To: "cart", Ratios: back}, {FromSite: "b", To: "web", Ratios: back}}})
	}
	hop := []string{"Penstock-Hop", "a", "Penstock-Peer", meshKey, "Penstock-Component", "web"}
	for to, want := range map[string]string{
		"cart": "200 cart@b ", "web": "200 web@b ", "shop": "200 shop@b ",
		"absent": "503 no-server", "wallet": "503 no-component", "": "503 no-component",
	} {
		for _, url := range []string{b.url, b.internal} {
			got := get(t, url+"/x", append(hop, "Penstock-To", to)...)
			said := fmt.Sprint(got.StatusCode, " ", got.body)
			if got.StatusCode != http.StatusOK {
				said = fmt.Sprint(got.StatusCode, " ", got.Header.Get("Penstock-Reason"))
			} else if got.Header.Get("Penstock-Server") == "" || got.Header.Get("Penstock-Site") != "b" || !strings.Contains(strings.Join(got.Header.Values("Server-Timing"), ","), "penstock-service;dur=2") {
				t.Errorf("%q: told %v", to, got.Header)
			}
			if said != want {
				t.Errorf("%q: got %s, expected %s", to, said, want)
			}
		}
	}
	if n := m.sites["a"].total(t); n != 0 {
		t.Errorf("%v requests came back", n)
	}
	if n := len(b.rows.all); n != 0 {
		t.Errorf("%d rows of requests of a peer", n)
	}
}

// Sites whose keys differ don't take each other's calls for requests of strangers.
func TestCallsOfSitesWithOtherKeys(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, func(site string, o *entry.Options) { o.PeerKey = []byte(strings.Repeat(site, 16)) })
	a := m.sites["a"]
	a.put(t, shares.Table{From: "web", Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "cart", Ratios: ratios("b", 1.0)}}})
	if got := get(t, a.internal+"/x", "Penstock-To", "cart", "Penstock-Component", "web"); got.body != "cart@a " {
		t.Errorf("got %q", got.body)
	}
	if n := m.counts(); n["cart@a"] != 1 || len(n) != 1 {
		t.Errorf("served %v", n)
	}
	rows := a.rows.await(t, 2)
	if summary(rows[0]) != "web@a→cart@b 508" || summary(rows[1]) != "web@a→cart@a 200" {
		t.Errorf("rows %s, %s", summary(rows[0]), summary(rows[1]))
	}
}

// Only owners' data is somewhere: what another component answers with 421 is its
// answer, here and through a peer.
func TestAComponentsOwn421(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, nil)
	a := m.sites["a"]
	m.answers(func(_ string, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Penstock-Site", "b")
		w.Header().Set("Penstock-Version", "9")
		w.WriteHeader(http.StatusMisdirectedRequest)
		fmt.Fprint(w, "not mine")
		return true
	})
	for i, site := range []string{"a", "b"} {
		a.put(t, shares.Table{From: "web", Epoch: uint64(i + 1), Rows: []shares.Row{{FromSite: "a", To: "cart", Ratios: ratios(site, 1.0)}}})
		got := get(t, a.internal+"/x", "Penstock-To", "cart", "Penstock-Component", "web")
		if got.StatusCode != http.StatusMisdirectedRequest || got.body != "not mine" || got.Header.Get("Penstock-Site") != site {
			t.Errorf("got %s %q", got.about(), got.body)
		}
	}
	if n := len(m.got()); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// gRPC goes through the internal listener as it is: HTTP/2, both directions, trailers.
func TestCallsOverHTTP2(t *testing.T) {
	t.Parallel()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		b := make([]byte, 10)
		for {
			n, err := r.Body.Read(b)
			fmt.Fprintf(w, "<%s>", b[:n])
			w.(http.Flusher).Flush()
			if err != nil {
				break
			}
		}
		w.Header().Set("Grpc-Status", r.Proto+" ["+r.Header.Get("Penstock-To")+"]")
	}))
	backend.Config.Protocols = protocols
	backend.Start()
	t.Cleanup(backend.Close)
	calls, err := upstream.New(upstream.Options{Name: "calls", H2: true, Servers: []upstream.Server{{URL: backend.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(calls.Close)
	m := newMesh(t, []string{"a", "b"}, func(_ string, o *entry.Options) {
		o.Components = append(o.Components, entry.ComponentRoute{Name: "calls", Local: calls})
	})
	a := m.sites["a"]
	a.put(t, shares.Table{From: "web", Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "calls", Ratios: ratios("a", 0.5, "b", 0.5)}}})
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	for range 4 {
		body, write := io.Pipe()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, a.internal+"/pkg.Service/Call", body)
		r.Header.Set("Te", "trailers")
		r.Header.Set("Penstock-To", "calls")
		r.Header.Set("Penstock-Component", "web")
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range []string{"one", "two"} {
			if _, err := io.WriteString(write, message); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(message)+2)
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != "<"+message+">" {
				t.Errorf("got %q, %v", got, err)
			}
		}
		_ = write.Close()
		rest, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(rest) != "<>" || resp.Trailer.Get("Grpc-Status") != "HTTP/2.0 []" {
			t.Errorf("then %q, %v, trailer %v", rest, err, resp.Trailer)
		}
	}
	to := map[string]int{}
	for _, row := range a.rows.await(t, 4) {
		to[row.ToSite]++
	}
	if to["a"] != 2 || to["b"] != 2 {
		t.Errorf("rows %v", to)
	}
	a.settled(t, "calls", "a")
	a.settled(t, "calls", "b")
}
