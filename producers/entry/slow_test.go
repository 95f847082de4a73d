package entry_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/infra/shares"
	"penstock/producers/entry"
	"penstock/schemas/event"
)

// slowly is how long slow clients pause: much longer than anything else takes here.
const slowly = 500 * time.Millisecond

// A client that sends its body slowly, or takes its answer slowly, says nothing of the
// replica that serves it, be it here or behind a peer, and whether it says how long it
// took itself or not.
func TestASlowClientIsNoSlowReplica(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 1<<20)
	m := newMesh(t, []string{"a", "b"}, func(_ string, o *entry.Options) { o.Class = []entry.ClassRule{{Path: "/says", Class: "says"}} })
	m.answers(func(_ string, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/early" { // it answers what it has no interest in
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = io.ReadFull(r.Body, make([]byte, 5))
			w.WriteHeader(http.StatusForbidden)
			w.(http.Flusher).Flush()
			return true
		}
		n, _ := io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/says" {
			w.Header().Set("Server-Timing", "app;dur=1")
		}
		if r.Method == http.MethodPost {
			fmt.Fprint(w, n)
			return true
		}
		for range 16 {
			_, _ = io.WriteString(w, large)
		}
		return true
	})
	var all sync.WaitGroup
	upload := func(p *point, path, framing string, status int, parts ...string) {
		c := dial(t, p)
		all.Go(func() {
			_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+framing+"\r\n")
			for _, part := range parts {
				time.Sleep(slowly)
				_, _ = io.WriteString(c, part)
			}
			if got := c.next(t, "POST"); got == nil || got.StatusCode != status {
				t.Errorf("%s %q: got %+v", path, framing, got)
			}
		})
	}
	const length, chunked = "Content-Length: 10\r\n", "Transfer-Encoding: chunked\r\n"
	for site, s := range m.sites {
		s.put(t, shares.Table{From: "entry", Epoch: 1, Rows: []shares.Row{{FromSite: site, To: "web", Ratios: ratios("a", 1.0)}}})
		for _, path := range []string{"/x", "/says"} {
			upload(s.point, path, length, 200, "hello", "world")
			upload(s.point, path, chunked, 200, "5\r\nhello\r\n", "5\r\nworld\r\n0\r\n\r\n")
			c := dial(t, s.point)
			all.Go(func() {
				_, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
				time.Sleep(slowly) // no buffers hold all of it
				if got := c.next(t, "GET"); got == nil || len(got.body) != 16<<20 {
					t.Errorf("%s: got %+v", path, got)
				}
			})
		}
		upload(s.point, "/early", "Content-Length: 1000000\r\n", 403, "hello")
		upload(s.point, "/early", chunked, 403, "5\r\nhello\r\n")
	}
	all.Wait()
	for site, s := range m.sites {
		for _, row := range s.rows.await(t, 8) {
			if row.Wait < 0 || row.Service < 0 || row.Network == event.NullInt || row.Wait+row.Service+row.Network > slowly.Microseconds()*3/4 {
				t.Errorf("at %s: wait %d, service %d, network %d µs: %+v", site, row.Wait, row.Service, row.Network, row)
			}
			if row.ToSite != "a" || row.Class == "says" && row.Service != 1000 {
				t.Errorf("at %s: row %+v", site, row)
			}
		}
	}
}
