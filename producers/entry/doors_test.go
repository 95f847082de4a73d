package entry_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"penstock/infra/shares"
	"penstock/infra/testserver"
	"penstock/producers/entry"
)

// While requests of clients run, the components that serve them call others as
// before; then the internal listener ends too.
func TestTheInternalListenerDrainsLast(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, nil)
	a := m.sites["a"]
	began, goOn := make(chan bool, 1), make(chan bool)
	inner := client(t)
	m.answers(func(at string, w http.ResponseWriter, r *http.Request) bool {
		if at != "web@a" {
			return false
		}
		began <- true
		<-goOn
		return callsCart(t, inner, a.internal, w, r)
	})
	got := make(chan answer, 1)
	go func() { got <- get(t, a.url+"/x") }()
	<-began
	ended := make(chan error, 1)
	go func() { ended <- a.stop() }()
	eventually(t, "clients are refused", func() bool {
		c, err := net.Dial("tcp", a.Addr().String())
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	goOn <- true
	if got := <-got; got.body != "cart@a " || got.StatusCode != http.StatusOK {
		t.Errorf("got %d %q", got.StatusCode, got.body)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", a.InternalAddr().String()); err == nil {
		c.Close()
		t.Error("calls are still accepted")
	}
	if rows := a.rows.await(t, 2); len(rows) != 2 || summary(rows[0]) != "web@a→cart@a 200" || summary(rows[1]) != "@a→web@a 200" {
		t.Errorf("rows %+v", rows)
	}
}

// Calls that last longer than the drain are cut off on both listeners, and have rows.
func TestDrainCutsCallsOff(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a"}, func(_ string, o *entry.Options) { o.Drain = 50 * time.Millisecond })
	a := m.sites["a"]
	began := make(chan bool, 2)
	m.answers(func(_ string, _ http.ResponseWriter, r *http.Request) bool {
		began <- true
		<-r.Context().Done()
		return true
	})
	for _, address := range []net.Addr{a.Addr(), a.InternalAddr()} {
		c, err := net.Dial("tcp", address.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /x HTTP/1.1\r\nHost: cart.internal\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-began
	}
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if n := len(a.rows.await(t, 2)); n != 2 {
		t.Errorf("%d rows", n)
	}
	for _, component := range []string{"web", "cart"} {
		a.settled(t, component, "a")
	}
}

// Clients that take all connections leave those of components alone.
func TestClientsDoNotTakeTheConnectionsOfComponents(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a"}, func(_ string, o *entry.Options) { o.Limits.Connections = 2 })
	a := m.sites["a"]
	for range 2 {
		w := dial(t, a.point)
		w.send(t, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
		w.next(t, "GET")
	}
	if got := dial(t, a.point).next(t, "GET"); got == nil || got.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one client too many got %+v", got)
	}
	if got := get(t, a.internal+"/x", "Penstock-To", "cart"); got.body != "cart@a " {
		t.Errorf("got %d %q", got.StatusCode, got.body)
	}
}

// A connection that changes its protocol is at its site until it ends, here and
// through a peer; the table may change meanwhile.
func TestAChangedProtocolIsAtItsSite(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, func(_ string, o *entry.Options) {
		o.Components = append(o.Components, entry.ComponentRoute{Name: "chat", Local: pool(t, "chat", echo(t))})
	})
	a := m.sites["a"]
	for i, site := range []string{"a", "b"} {
		table := func(epoch int, site string) {
			a.put(t, shares.Table{From: "web", Epoch: uint64(epoch), Rows: []shares.Row{{FromSite: "a", To: "chat", Ratios: ratios(site, 1.0)}}})
		}
		table(2*i+1, site)
		c, err := net.Dial("tcp", a.InternalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		fmt.Fprint(c, "GET /chat HTTP/1.1\r\nHost: x\r\nPenstock-To: chat\r\nPenstock-Component: web\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		r := bufio.NewReader(c)
		resp, err := http.ReadResponse(r, nil) //nolint:bodyclose // it ends with the connection
		if err != nil || resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Penstock-Site") != site {
			t.Fatalf("got %+v, %v", resp, err)
		}
		table(2*i+2, map[string]string{"a": "b", "b": "a"}[site])
		fmt.Fprint(c, "hello")
		b := make([]byte, 5)
		if _, err := io.ReadFull(r, b); err != nil || string(b) != "hello" {
			t.Errorf("got %q, %v", b, err)
		}
		replica := shares.Replica{Component: "chat", Site: site}
		drained, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if n, err := a.shares.Drain(drained, replica); n != 1 || !errors.Is(err, shares.ErrRemaining) {
			t.Errorf("%d at %s, %v", n, site, err)
		}
		cancel()
		c.Close()
		a.settled(t, "chat", site)
	}
	for _, row := range a.rows.await(t, 2) {
		if row.Status != http.StatusSwitchingProtocols || row.Bytes != 10 {
			t.Errorf("row %+v", row)
		}
	}
}

// A client that leaves, and a panic of the answer, leave nothing behind.
func TestWhoLeavesIsCountedOut(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, nil)
	a := m.sites["a"]
	began := make(chan bool, 1)
	m.answers(func(_ string, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/broken" {
			fmt.Fprint(w, "begun")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		began <- true
		<-r.Context().Done()
		return true
	})
	for i, site := range []string{"a", "b"} {
		a.put(t, shares.Table{From: "entry", Epoch: uint64(i + 1), Rows: []shares.Row{{FromSite: "a", To: "web", Ratios: ratios(site, 1.0)}}})
		w := dial(t, a.point)
		w.send(t, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
		<-began
		_ = w.Close()
		a.settled(t, "web", site)
		a.rows.await(t, 2*i+1)
		broken := dial(t, a.point)
		broken.send(t, "GET /broken HTTP/1.1\r\nHost: x\r\n\r\n")
		_, _ = io.ReadAll(broken)
		a.settled(t, "web", site)
		a.rows.await(t, 2*i+2)
	}
	for i, row := range a.rows.await(t, 4) {
		if want := []int32{499, 502}[i%2]; row.Status != want {
			t.Errorf("row %d: %s", i, summary(row))
		}
	}
}

// Options that make no entry point are refused, with what was listened on already.
func TestOptionsOfSplits(t *testing.T) {
	t.Parallel()
	local := pool(t, "a", "http://127.0.0.1:1")
	route := func(c ...entry.ComponentRoute) func(*entry.Options) {
		return func(o *entry.Options) { o.Components = c }
	}
	for name, change := range map[string]func(*entry.Options){
		"no name":                route(entry.ComponentRoute{}),
		"a name of callers":      route(entry.ComponentRoute{Name: "unknown"}),
		"the scope of the entry": route(entry.ComponentRoute{Name: "entry"}),
		"a name with a line end": route(entry.ComponentRoute{Name: "x\r\n"}),
		"twice":                  route(entry.ComponentRoute{Name: "x"}, entry.ComponentRoute{Name: "x"}),
		"web twice":              route(entry.ComponentRoute{Name: "web", Hosts: []string{"x"}}, entry.ComponentRoute{Name: "web"}),
		"web's servers":          route(entry.ComponentRoute{Name: "web", Local: local}),
		"a host with a port":     route(entry.ComponentRoute{Name: "x", Hosts: []string{"x:80"}}),
		"a star within":          route(entry.ComponentRoute{Name: "x", Hosts: []string{"x.*.y"}}),
		"a star alone":           route(entry.ComponentRoute{Name: "x", Hosts: []string{"*"}}),
		"a path of none":         route(entry.ComponentRoute{Name: "x", Path: "x"}),
		"a site of none":         route(entry.ComponentRoute{Name: "x", Sites: []string{"z"}}),
		"many probes":            func(o *entry.Options) { o.ProbeLimit = 0.2 },
		"no address for clients": func(o *entry.Options) { o.Listen = "" },
		"no key":                 func(o *entry.Options) { o.PeerKey = nil },
		"two sessions":           func(o *entry.Options) { o.Session = entry.Session{Cookie: "x", Header: "y"} },
		"a cookie of none":       func(o *entry.Options) { o.Session.Cookie = "a b" },
		"a header of ours":       func(o *entry.Options) { o.Session.Header = "penstock-to" },
		"a negative time":        func(o *entry.Options) { o.Session.TTL = -1 },
		"a cookie's component": func(o *entry.Options) {
			o.Session.Cookie = "x"
			o.Components = []entry.ComponentRoute{{Name: "a b", Public: true}}
		},
	} {
		o := entry.Options{
			Listen: "127.0.0.1:0", Internal: "127.0.0.1:0", Site: "a", Component: "web", Local: local, PeerKey: []byte(meshKey), Shares: shares.New(shares.Options{}),
			Sites: []entry.Site{{Name: "a"}, {Name: "b", Peer: &late{}}},
		}
		change(&o)
		if e, err := entry.New(o); !errors.Is(err, entry.ErrOption) {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := testserver.FreeAddress(t)
	if _, err := entry.New(entry.Options{Listen: address, Internal: taken.Addr().String(), Site: "a", Local: local, Sites: []entry.Site{{Name: "a"}}}); err == nil || errors.Is(err, entry.ErrOption) {
		t.Errorf("an address that is taken: %v", err)
	}
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Errorf("what was listened on already: %v", err)
	} else {
		again.Close()
	}
}
