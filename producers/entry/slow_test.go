package entry_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/infra/shares"
	"penstock/producers/entry"
	"penstock/producers/entry/upstream"
)

// slowPair are two entry points whose times are of a clock that stands: of b, which has
// all requests served at a. reached gets a word when a request is at the service, and
// another when the first of its body is.
type slowPair struct {
	clock   *clock.Manual
	points  map[string]*point
	reached chan string
}

func newSlowPair(t *testing.T) *slowPair {
	t.Helper()
	p := &slowPair{clock: clock.NewManual(time.Date(2026, 5, 17, 10, 0, 0, 0, time.UTC)), points: map[string]*point{}, reached: make(chan string, 2)}
	standing := func(name, url string) *upstream.Pool {
		pool, err := upstream.New(upstream.Options{Name: name, Servers: []upstream.Server{{URL: url}}, Clock: p.clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	backend := service(t, p.serve)
	for _, site := range []string{"a", "b"} {
		table := shares.New(shares.Options{})
		if _, err := table.Put(t.Context(), shares.Table{From: "entry", Epoch: 1, Rows: []shares.Row{{FromSite: site, To: "web", Ratios: ratios("a", 1.0)}}}); err != nil {
			t.Fatal(err)
		}
		p.points[site] = run(t, []string{backend}, func(o *entry.Options) {
			o.Site, o.PeerKey, o.Clock, o.Shares, o.Local = site, []byte(meshKey), p.clock, table, standing("web", backend)
			if site == "b" {
				o.Sites[0].Peer = standing("peer", p.points["a"].url)
			}
		})
	}
	return p
}

// serve answers POST with how much it got, before the end where the path is /early, and
// GET with more than all buffers hold. Only /says says how long it took.
func (p *slowPair) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/says" {
		w.Header().Set("Server-Timing", "app;dur=1")
	}
	if r.Method == http.MethodGet {
		large := strings.Repeat("x", 1<<20)
		for range 16 {
			_, _ = io.WriteString(w, large)
		}
		return
	}
	p.reached <- "request"
	_, _ = io.ReadFull(r.Body, make([]byte, 5))
	p.reached <- "body"
	if r.URL.Path == "/early" {
		_ = http.NewResponseController(w).EnableFullDuplex() // else it reads the rest itself
		w.WriteHeader(http.StatusForbidden)
		w.(http.Flusher).Flush()
		return
	}
	n, _ := io.Copy(io.Discard, r.Body)
	fmt.Fprint(w, 5+n)
}

// passes lets the time pass that a client takes.
func (p *slowPair) passes() { p.clock.Advance(10 * time.Second) }

func (p *slowPair) await(t *testing.T, what string) {
	t.Helper()
	select {
	case got := <-p.reached:
		if got != what {
			t.Errorf("%s is there, expected %s", got, what)
		}
	case <-time.After(patience):
		t.Fatalf("%s does not reach the service", what)
	}
}

// expect fails if the last row counts time in which only the client was waited for.
func (p *slowPair) expect(t *testing.T, what string, at *point, rows int) {
	t.Helper()
	row := at.rows.await(t, rows)[rows-1]
	said := int64(0)
	if strings.Contains(what, "/says") {
		said = 1000
	}
	if row.Wait != 0 || row.Service != said || row.Network != -said || row.ToSite != "a" || row.ToComponent != "web" {
		t.Errorf("%s: wait %d, service %d, network %d µs, of %s", what, row.Wait, row.Service, row.Network, summary(row))
	}
	if want := p.clock.Now().UnixMicro(); row.Time != want {
		t.Errorf("%s: at %d, %d µs before its end", what, row.Time, want-row.Time)
	}
}

// A client that sends its body slowly says nothing of the replica that serves it, be it
// here or behind a peer, and whether it says how long it took itself or not.
func TestASlowUploadIsNoSlowReplica(t *testing.T) {
	t.Parallel()
	p := newSlowPair(t)
	rest := strings.Repeat("x", 99_995) // more than is sent at once
	for _, at := range []*point{p.points["a"], p.points["b"]} {
		n := 0
		for _, path := range []string{"/x", "/says", "/early"} {
			for framing, parts := range map[string][2]string{
				"Content-Length: 100000":     {"hello", rest},
				"Transfer-Encoding: chunked": {"5\r\nhello\r\n", "5\r\nworld\r\n0\r\n\r\n"},
			} {
				c := dial(t, at)
				c.send(t, "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+framing+"\r\n\r\n")
				p.await(t, "request")
				p.passes()
				c.send(t, parts[0])
				p.await(t, "body")
				status := http.StatusForbidden
				if path != "/early" {
					status = http.StatusOK
					p.passes()
					c.send(t, parts[1])
				}
				if got := c.next(t, "POST"); got == nil || got.StatusCode != status {
					t.Errorf("%s %s: got %+v", path, framing, got)
				}
				n++
				p.expect(t, path+" "+framing, at, n)
			}
		}
		// A small body is sent when it is there.
		c := dial(t, at)
		c.send(t, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello")
		eventually(t, "a request runs", func() bool { return at.counter(t, "penstock_entry_requests_running") == 1 })
		p.passes()
		c.send(t, "world")
		if got := c.next(t, "POST"); got == nil || got.body != "10" {
			t.Errorf("got %+v", got)
		}
		p.await(t, "request")
		p.await(t, "body")
		p.expect(t, "a small body", at, n+1)
	}
}

// Neither does one that takes its answer slowly.
func TestASlowReaderIsNoSlowReplica(t *testing.T) {
	t.Parallel()
	p := newSlowPair(t)
	for _, at := range []*point{p.points["a"], p.points["b"]} {
		for i, path := range []string{"/x", "/says"} {
			c := dial(t, at)
			c.send(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
			if _, err := c.r.Peek(1); err != nil {
				t.Fatal(err)
			}
			p.passes()
			if n := len(at.rows.await(t, i)); n != i {
				t.Errorf("%d rows before the answer was taken", n)
			}
			if got := c.next(t, "GET"); got == nil || len(got.body) != 16<<20 {
				t.Fatalf("%s: got %+v", path, got)
			}
			p.expect(t, path, at, i+1)
		}
	}
}
