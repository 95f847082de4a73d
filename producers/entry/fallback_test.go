package entry_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/infra/shares"
	"penstock/producers/entry"
	"penstock/producers/entry/upstream"
)

// unplaced is a component without servers at a site.
func unplaced(o *entry.Options, name string) {
	for i := range o.Components {
		if o.Components[i].Name == name {
			o.Components[i].Local = nil
		}
	}
}

// What the chosen site has no servers for is done by another, once, if nothing was
// sent or it may be sent twice; the attempt that failed is a row.
func TestAnotherSiteIsTriedOnce(t *testing.T) {
	t.Parallel()
	dead := "http://127.0.0.1:1" // nobody listens there
	type options func(site string, o *entry.Options)
	absentAt := func(sites string) options {
		return func(site string, o *entry.Options) {
			if strings.Contains(sites, site) {
				unplaced(o, "cart")
			}
		}
	}
	cart := func(at string, change func(*upstream.Options), url string) options {
		return func(site string, o *entry.Options) {
			if site != at {
				return
			}
			u := upstream.Options{Name: "cart", Servers: []upstream.Server{{URL: url}}}
			if change != nil {
				change(&u)
			}
			p, err := upstream.New(u)
			if err != nil {
				t.Error(err)
			}
			t.Cleanup(p.Close)
			o.Components[1].Local = p
		}
	}
	breaks := service(t, func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	fine := service(t, func(http.ResponseWriter, *http.Request) {})
	full := func(u *upstream.Options) { u.Dispatcher = &desk{refuses: &upstream.BusyError{}} }
	for name, test := range map[string]struct {
		change  options
		ratios  []shares.Ratio
		writes  string
		method  string
		sites   []string // entry.ComponentRoute.Sites at a
		header  string
		status  int
		body    string
		rows    []string
		counted string
	}{
		"absent at the peer":            {change: absentAt("b"), ratios: ratios("b", 1.0), body: "cart@a ", rows: []string{"b 503", "a 200"}, counted: "true no-server"},
		"a write, absent at the peer":   {change: absentAt("b"), ratios: ratios("b", 1.0), method: "POST", body: "cart@a body", rows: []string{"b 503", "a 200"}, counted: "true no-server"},
		"writes have one site":          {change: absentAt("b"), ratios: ratios("a", 1.0), writes: "b", method: "POST", status: 503, rows: []string{"b 503"}, counted: "false no-site"},
		"not connected at the peer":     {change: cart("b", nil, dead), ratios: ratios("b", 1.0), method: "POST", body: "cart@a body", rows: []string{"b 502", "a 200"}, counted: "true no-connection"},
		"broken off at the peer":        {change: cart("b", nil, breaks), ratios: ratios("b", 1.0), body: "cart@a ", rows: []string{"b 502", "a 200"}, counted: "true server"},
		"a write, broken off there":     {change: cart("b", nil, breaks), ratios: ratios("b", 1.0), method: "POST", status: 502, rows: []string{"b 502"}, counted: "false not-repeatable"},
		"with a key against twice":      {change: cart("b", nil, breaks), ratios: ratios("b", 1.0), method: "POST", header: "Idempotency-Key", body: "cart@a body", rows: []string{"b 502", "a 200"}, counted: "true server"},
		"absent here":                   {change: absentAt("a"), ratios: ratios("a", 1.0, "b", 0.0, "c", 0.0), status: 503, rows: []string{"a 503"}, counted: "false no-site"},
		"absent here, others have":      {change: absentAt("a"), ratios: ratios("a", 0.998, "b", 0.001, "c", 0.001), body: "cart@b ", rows: []string{"a 0", "b 200"}, counted: "true no-server"},
		"absent here, the greatest":     {change: absentAt("a"), ratios: ratios("a", 0.998, "b", 0.0005, "c", 0.0015), body: "cart@c ", rows: []string{"a 0", "c 200"}, counted: "true no-server"},
		"absent here and there":         {change: absentAt("ab"), ratios: ratios("a", 0.998, "b", 0.002), status: 503, rows: []string{"a 0", "b 503"}, counted: "true no-server"},
		"not connected here":            {change: cart("a", nil, dead), ratios: ratios("a", 0.998, "c", 0.002), method: "POST", body: "cart@c body", rows: []string{"a 0", "c 200"}, counted: "true no-connection"},
		"broken off here":               {change: cart("a", nil, breaks), ratios: ratios("a", 0.998, "c", 0.002), status: 502, rows: []string{"a 0", "a 502"}},
		"full here":                     {change: cart("a", full, fine), ratios: ratios("a", 0.998, "c", 0.002), method: "POST", body: "cart@c body", rows: []string{"a 0", "c 200"}, counted: "true busy"},
		"full at the peer":              {change: cart("b", full, fine), ratios: ratios("b", 1.0), method: "POST", body: "cart@a body", rows: []string{"b 503", "a 200"}, counted: "true busy"},
		"the own site may not":          {change: absentAt("b"), ratios: ratios("b", 0.998, "c", 0.002), sites: []string{"b", "c"}, body: "cart@c ", rows: []string{"b 503", "c 200"}, counted: "true no-server"},
		"nobody else may":               {change: absentAt("b"), ratios: ratios("b", 1.0, "c", 0.0), sites: []string{"b", "c"}, status: 503, rows: []string{"b 503"}, counted: "false no-site"},
		"the service's own 503":         {ratios: ratios("b", 1.0), header: "X-Fail", status: 503, rows: []string{"b 503"}},
		"a table names what is no site": {ratios: ratios("nowhere", 1.0), body: "cart@a ", rows: []string{"a 200"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMesh(t, []string{"a", "b", "c"}, func(site string, o *entry.Options) {
				if test.change != nil {
					test.change(site, o)
				}
				if site == "a" {
					o.Components[1].Sites = test.sites
				}
			})
			m.answers(func(_ string, w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("X-Fail") == "" {
					return false
				}
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			})
			a := m.sites["a"]
			a.put(t, shares.Table{From: "web", Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "cart", Ratios: test.ratios, WritesAt: test.writes}}})
			headers := []string{"Penstock-To", "cart", "Penstock-Component", "web"}
			if test.header != "" {
				headers = append(headers, test.header, "x")
			}
			var got answer
			if test.method == "" {
				got = get(t, a.internal+"/x", headers...)
			} else {
				got = do(t, test.method, a.internal+"/x", strings.NewReader("body"), headers...)
			}
			if test.status == 0 && got.body != test.body || test.status != 0 && got.StatusCode != test.status {
				t.Errorf("got %d %q", got.StatusCode, got.body)
			}
			for i, row := range a.rows.await(t, len(test.rows)) {
				if i >= len(test.rows) || fmt.Sprint(row.ToSite, " ", row.Status) != test.rows[i] || row.FromComponent != "web" || row.ToComponent != "cart" {
					t.Errorf("row %d: %s, expected %s", i, summary(row), test.rows)
				}
			}
			tried, reason, _ := strings.Cut(test.counted, " ")
			all := a.counter(t, "penstock_entry_fallbacks_total")
			if test.counted != "" && a.counter(t, "penstock_entry_fallbacks_total", "tried", tried, "reason", reason) != 1 || all > 1 || test.counted == "" && all != 0 {
				t.Errorf("%v counted, expected %q", all, test.counted)
			}
			for _, site := range []string{"a", "b", "c"} {
				a.settled(t, "cart", site)
			}
		})
	}
}

// More than the budget is not tried elsewhere.
func TestWhatIsTriedElsewhereHasABudget(t *testing.T) {
	t.Parallel()
	manual := clock.NewManual(time.Date(2026, 5, 17, 10, 0, 0, 0, time.UTC))
	m := newMesh(t, []string{"a", "b"}, func(site string, o *entry.Options) {
		if site == "b" {
			unplaced(o, "cart")
			return
		}
		o.Clock = manual
	})
	a := m.sites["a"]
	a.put(t, shares.Table{From: "web", Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "cart", Ratios: ratios("b", 1.0)}}})
	const least = 30 // 3 a second, of 10 s
	for i := range least + 5 {
		got := get(t, a.internal+"/x", "Penstock-To", "cart", "Penstock-Component", "web")
		if within := i < least; within != (got.body == "cart@a ") || !within && got.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("number %d: got %d %q", i, got.StatusCode, got.body)
		}
	}
	if n := a.counter(t, "penstock_entry_fallbacks_total", "tried", "false", "reason", "budget"); n != 5 {
		t.Errorf("%v were over the budget", n)
	}
}

// Shares are told of replicas that are down, and when they may be tried again. When
// all are down they are tried all the same (P31).
func TestReplicasGoDownAndComeBack(t *testing.T) {
	t.Parallel()
	manual := clock.NewManual(time.Date(2026, 5, 17, 10, 0, 0, 0, time.UTC))
	var local, there *upstream.Pool
	m := newMesh(t, []string{"a", "b"}, func(site string, o *entry.Options) {
		p, err := upstream.New(upstream.Options{
			Name: "cart", Servers: []upstream.Server{{Name: "cart-1", URL: "http://127.0.0.1:1"}},
			Health: upstream.Health{Failures: 2, Eject: time.Minute}, Clock: manual,
		})
		if err != nil {
			t.Error(err)
		}
		t.Cleanup(p.Close)
		o.Components[1].Local = p
		if site == "a" {
			local, o.Clock = p, manual
		} else {
			there = p
		}
	})
	a := m.sites["a"]
	up := func(site string) bool {
		return a.shares.Ready(t.Context(), shares.Replica{Component: "cart", Site: site}) == nil
	}
	call := func() answer { return get(t, a.internal+"/x", "Penstock-To", "cart", "Penstock-Component", "web") }
	a.put(t, shares.Table{From: "web", Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "cart", Ratios: ratios("a", 0.5, "b", 0.5)}}})
	if err := manual.Await(t.Context(), 1); err != nil { // it looks at replicas
		t.Fatal(err)
	}
	for range 20 { // nobody answers, and everybody is asked
		if got := call(); got.StatusCode/100 != 5 {
			t.Fatalf("got %d %q", got.StatusCode, got.body)
		}
	}
	if up("a") || up("b") {
		t.Errorf("up: a %v, b %v", up("a"), up("b"))
	}
	m.got()
	if got := call(); got.StatusCode/100 != 5 {
		t.Errorf("got %d %q", got.StatusCode, got.body)
	}
	// An answer is enough for a site that is asked of; of the own site its pool knows.
	if err := there.Set([]upstream.Server{{Name: "cart-1", URL: service(t, m.at("cart@b"))}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b is up", func() bool { call(); return up("b") })
	if up("a") {
		t.Error("a is up without a server")
	}
	for range 10 {
		if got := call(); got.body != "cart@b " {
			t.Errorf("got %d %q", got.StatusCode, got.body)
		}
	}
	if err := local.Set([]upstream.Server{{Name: "cart-2", URL: service(t, m.at("cart@a"))}}); err != nil {
		t.Fatal(err)
	}
	if err := manual.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	manual.Advance(250 * time.Millisecond)
	eventually(t, "a is up", func() bool { return up("a") })
	m.got()
	for range 10 {
		call()
	}
	if n := m.counts(); n["cart@a"] != 5 || n["cart@b"] != 5 {
		t.Errorf("served %v", n)
	}
	// Failures in a row, and then its time is over.
	if err := there.Set(nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b is down", func() bool { call(); return !up("b") })
	for range 5 {
		if got := call(); got.body != "cart@a " {
			t.Errorf("got %d %q", got.StatusCode, got.body)
		}
	}
	manual.Advance(5 * time.Second)
	eventually(t, "b is tried again", func() bool { manual.Advance(250 * time.Millisecond); return up("b") })
}
