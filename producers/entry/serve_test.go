package entry_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"penstock/schemas/event"
)

// TestWhatAServiceWaitsForOthersIsNoNetwork: it says 7.5 ms of its own in a total of
// a minute, far more than the request takes, so that what is left is far below 0.
func TestWhatAServiceWaitsForOthersIsNoNetwork(t *testing.T) {
	t.Parallel()
	backend := service(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server-Timing", "app;dur=7.5, total;dur=60000")
	})
	p := run(t, []string{backend}, nil)
	do(t, "GET", p.url+"/", nil)
	if row := p.rows.await(t, 1)[0]; row.Service != 7500 || row.Network < -60_000_000 || row.Network > -30_000_000 {
		t.Errorf("service %d µs, network %d µs", row.Service, row.Network)
	}
}

func TestARequestIsServedAndBecomesARow(t *testing.T) {
	t.Parallel()
	backend := service(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Server-Timing", `db;dur=2, app;dur=7.5;desc="a, b"`)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL, r.Host, b)
	})
	p := run(t, []string{backend}, nil)
	p.places.set("alice", "a", 7)
	host := p.Addr().String()
	got := do(t, "POST", p.url+"/u/%61lice/x?y=1", strings.NewReader("hello"), "X-User", "bob")
	if want := "POST /u/%61lice/x?y=1 " + host + " hello"; got.StatusCode != http.StatusOK || got.body != want {
		t.Errorf("got %d %q, expected %q", got.StatusCode, got.body, want)
	}
	if got.Header.Get("Penstock-Site") != "a" || got.Header.Get("Penstock-Version") != "7" || got.Header.Get("Penstock-Hops") != "0" {
		t.Errorf("headers %v", got.Header)
	}
	row := p.rows.await(t, 1)[0]
	if row.Owner != "alice" || row.User != "bob" || row.Status != 200 || row.Op != event.Write ||
		row.ToSite != "a" || row.ToServer != "a-1" || row.ToComponent != "web" || row.Bytes != int64(len(got.body)+5) {
		t.Errorf("row %+v", row)
	}
	if row.Service != 7500 || row.Trace == [16]byte{} || row.FromSite != row.ToSite || row.Class != "" {
		t.Errorf("row %+v", row)
	}
	if n := p.counter(t, "penstock_entry_requests_total", "answer", "served", "status", "2xx"); n != 1 {
		t.Errorf("%v requests counted", n)
	}
}
