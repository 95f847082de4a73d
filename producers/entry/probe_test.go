package entry_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/infra/shares"
	"penstock/producers/entry"
	"penstock/schemas/event"
)

// probing is a table that orders a share of probes to a site, and sends nothing else
// there.
func probing(share float64) shares.Table {
	return shares.Table{
		From: "entry", Epoch: 1,
		Rows:   []shares.Row{{FromSite: "a", To: "web", Ratios: ratios("a", 1.0, "b", 0.0)}},
		Probes: []shares.Probe{{FromSite: "a", To: "web", Site: "b", Share: share}},
	}
}

func probes(rows []event.Request) (out []event.Request) {
	for _, r := range rows {
		if r.Class == "probe" {
			out = append(out, r)
		}
	}
	return out
}

// Copies of real requests go where the table wants samples: of those that read, as
// many as it orders, marked, and each a row of its own class that is nobody's.
func TestProbesAreCopiesOfRequests(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, func(_ string, o *entry.Options) {
		o.Class = []entry.ClassRule{{Path: "/**", Class: "dynamic"}}
	})
	a := m.sites["a"]
	a.put(t, probing(0.05))
	const requests = 200
	for i := range requests {
		r, _ := http.NewRequest([]string{"GET", "POST", "HEAD", "PUT", "OPTIONS", "DELETE"}[i%6], a.url+"/x?y=z", nil)
		if i%6 == 1 {
			r.Body = io.NopCloser(strings.NewReader("body"))
		}
		r.Header.Set("Authorization", "Bearer of mine")
		if got := send(t, r); got.StatusCode != http.StatusOK || i%6 == 0 && got.body != "web@a " {
			t.Errorf("got %d %q", got.StatusCode, got.body)
		}
	}
	// One in twenty is due at a request that can't be copied, and waits for the next
	// that can: the last for none that comes. For the first nothing is saved up yet.
	const ordered = requests/20 - 2
	rows := probes(a.rows.await(t, requests+ordered))
	if len(rows) != ordered {
		t.Errorf("%d probes, expected %d", len(rows), ordered)
	}
	for _, r := range rows {
		if summary(r) != "@a→web@b 200" || r.User != "" || r.Owner != "" || r.Service != 2000 || r.Network == event.NullInt || r.Wait < 0 || r.Op != event.Read || r.ToServer != "a-1" {
			t.Errorf("row %+v", r)
		}
	}
	marked := 0
	for _, s := range m.got() {
		if s.header.Get("Penstock-Probe") == "" {
			if s.at != "web@a" {
				t.Errorf("a request went to %s", s.at)
			}
			continue
		}
		marked++
		if s.at != "web@b" || s.header.Get("Penstock-Probe") != "1" || s.header.Get("Authorization") != "Bearer of mine" ||
			s.method != "GET" && s.method != "HEAD" && s.method != "OPTIONS" {
			t.Errorf("a probe %s %s %v", s.method, s.at, s.header)
		}
	}
	if marked != len(rows) {
		t.Errorf("%d probes came, %d rows", marked, len(rows))
	}
	for outcome, want := range map[string]int{"sent": ordered, "skipped": 1, "failed": 0} {
		if n := a.counter(t, "penstock_entry_probes_total", "outcome", outcome); n != float64(want) {
			t.Errorf("%v %s", n, outcome)
		}
	}
	if n := len(m.sites["b"].rows.all); n != 0 {
		t.Errorf("the peer made %d rows", n)
	}
}

// Whatever a table orders, no more than a tenth of a link's requests are copied, or
// what the options say.
func TestProbesHaveALimit(t *testing.T) {
	t.Parallel()
	for limit, most := range map[float64]int{0: 8, 0.05: 4, -1: 0} {
		m := newMesh(t, []string{"a", "b"}, func(_ string, o *entry.Options) { o.ProbeLimit = limit })
		a := m.sites["a"]
		a.put(t, probing(1))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				c := client(t)
				for range 20 {
					if resp, err := c.Get(a.url + "/x"); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				}
			})
		}
		all.Wait()
		rows := probes(a.rows.await(t, 80+most))
		if len(rows) != most {
			t.Errorf("a limit of %v: %d probes, expected %d", limit, len(rows), most)
		}
		if n := a.counter(t, "penstock_entry_probes_total", "outcome", "skipped", "reason", "limit"); n != float64(80-most) {
			t.Errorf("a limit of %v: %v were skipped", limit, n)
		}
	}
}

// A request that goes itself to where a probe is due is sample enough, and a site that
// nothing leads to gets none.
func TestProbesThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, nil)
	a := m.sites["a"]
	for i, test := range []struct{ at, to, reason string }{{"b", "b", "same-site"}, {"a", "nowhere", "no-way"}} {
		a.put(t, shares.Table{
			From: "entry", Epoch: uint64(i + 1), Rows: []shares.Row{{FromSite: "a", To: "web", Ratios: ratios(test.at, 1.0)}},
			Probes: []shares.Probe{{FromSite: "a", To: "web", Site: test.to, Share: 1}},
		})
		for range 20 {
			if got := get(t, a.url+"/x"); got.body != "web@"+test.at+" " {
				t.Errorf("got %q", got.body)
			}
		}
		if n := a.counter(t, "penstock_entry_probes_total", "outcome", "skipped", "reason", test.reason); n != 20 {
			t.Errorf("%v were skipped: %s", n, test.reason)
		}
	}
	if n := a.counter(t, "penstock_entry_probes_total", "outcome", "sent"); n != 0 {
		t.Errorf("%v were sent", n)
	}
}

// Requests with a body, and those that ask for another protocol, are not copied,
// whatever their method: one that is due waits for another request.
func TestWhatIsNotCopied(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, nil)
	a := m.sites["a"]
	a.put(t, probing(1))
	for i := range 20 {
		if i%2 == 0 {
			do(t, "GET", a.url+"/x", strings.NewReader("body"))
		} else {
			get(t, a.url+"/x", "Connection", "Upgrade", "Upgrade", "websocket")
		}
	}
	count := func(labels ...string) float64 { return a.counter(t, "penstock_entry_probes_total", labels...) }
	if sent, skipped := count("outcome", "sent"), count("outcome", "skipped", "reason", "not-copyable"); sent != 0 || skipped != 19 {
		t.Errorf("%v sent, %v skipped", sent, skipped)
	}
	a.put(t, shares.Table{From: "entry", Epoch: 2, Rows: probing(1).Rows}) // orders none, but one waits
	get(t, a.url+"/x")
	if got := probes(a.rows.await(t, 22)); len(got) != 1 || summary(got[0]) != "@a→web@b 200" {
		t.Errorf("probes %+v", got)
	}
	// What waits does not go to a site that has begun to drain.
	a.put(t, shares.Table{From: "entry", Epoch: 3, Rows: probing(1).Rows, Probes: probing(1).Probes})
	do(t, "POST", a.url+"/x", strings.NewReader("body"))
	if _, err := a.shares.Drain(t.Context(), shares.Replica{Component: "web", Site: "b"}); err != nil {
		t.Fatal(err)
	}
	get(t, a.url+"/x")
	if sent, skipped := count("outcome", "sent"), count("outcome", "skipped", "reason", "not-ready"); sent != 1 || skipped != 1 {
		t.Errorf("%v sent, %v skipped", sent, skipped)
	}
}

// What a service calls because of a probe is of the probe's class, and causes none.
func TestProbesCauseNoProbes(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, nil)
	a, b := m.sites["a"], m.sites["b"]
	inner := client(t)
	m.answers(func(at string, w http.ResponseWriter, r *http.Request) bool {
		if at != "web@b" {
			return false
		}
		return callsCart(t, inner, b.internal, w, r)
	})
	a.put(t, probing(0.1))
	b.put(t, shares.Table{
		From: "web", Epoch: 1, Rows: []shares.Row{{FromSite: "b", To: "cart", Ratios: ratios("a", 1.0)}},
		Probes: []shares.Probe{{FromSite: "b", To: "cart", Site: "b", Share: 1}},
	})
	for range 100 {
		get(t, a.url+"/x")
	}
	rows := probes(a.rows.await(t, 109))
	if len(rows) < 9 {
		t.Fatalf("%d probes", len(rows))
	}
	for _, r := range b.rows.await(t, len(rows)) {
		if summary(r) != "web@b→cart@a 200" || r.Class != "probe" {
			t.Errorf("row %+v", r)
		}
	}
	for _, s := range m.got() {
		if strings.HasPrefix(s.at, "cart") && (s.at != "cart@a" || s.header.Get("Penstock-Probe") != "1") {
			t.Errorf("%s got %v", s.at, s.header)
		}
	}
	if n := b.counter(t, "penstock_entry_probes_total"); n != 0 {
		t.Errorf("%v probes of probes", n)
	}
}

// A probe that fails, or that a peer answers by itself, harms nobody; its row has no
// delay that a service did not take.
func TestProbesThatFail(t *testing.T) {
	t.Parallel()
	strange := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Penstock-Reason", "of my own")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(strange.Close)
	for name, test := range map[string]struct {
		change  func(site string, o *entry.Options)
		answer  func(w http.ResponseWriter)
		status  int32
		service bool
		reason  string
	}{
		"absent":    {change: func(site string, o *entry.Options) { o.Component = map[string]string{"a": "web", "b": "front"}[site] }, status: 503, reason: "no-component"},
		"not there": {change: func(site string, o *entry.Options) { closeServers(t, o, site == "b") }, status: 502, reason: "no-connection"},
		"its own words": {change: func(site string, o *entry.Options) {
			if site == "a" {
				o.Sites[1].Peer = pool(t, "b", strange.URL)
			}
		}, status: 503, reason: "peer"},
		"an error":   {answer: func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, status: 500, service: true, reason: "status"},
		"other keys": {change: func(site string, o *entry.Options) { o.PeerKey = []byte(strings.Repeat(site, 16)) }, status: 508, reason: "peer-key"},
		"breaks off": {answer: func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "9")
			fmt.Fprint(w, "x")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, status: 502, service: true, reason: "broken-off"},
		"much to read": {answer: func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat("x", 1<<20)) }, status: 200, service: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMesh(t, []string{"a", "b"}, func(site string, o *entry.Options) {
				if test.change != nil {
					o.Components = o.Components[:2]
					test.change(site, o)
				}
			})
			m.answers(func(at string, w http.ResponseWriter, _ *http.Request) bool {
				if at != "web@b" || test.answer == nil {
					return false
				}
				test.answer(w)
				return true
			})
			a := m.sites["a"]
			a.put(t, probing(0.1))
			for range 25 {
				if got := get(t, a.url+"/x"); got.body != "web@a " {
					t.Errorf("got %d %q", got.StatusCode, got.body)
				}
			}
			eventually(t, "a probe", func() bool {
				return len(probes(a.rows.await(t, 25))) > 0
			})
			r := probes(a.rows.await(t, 25))[0]
			if r.Status != test.status || r.ToSite != "b" || (r.Service != event.NullInt) != test.service || r.Bytes > 300<<10 {
				t.Errorf("row %+v", r)
			}
			if n := a.counter(t, "penstock_entry_probes_total", "outcome", "failed", "reason", test.reason); (n > 0) != (test.reason != "") {
				t.Errorf("%v failed", n)
			}
		})
	}
}

// closeServers makes all servers of web unreachable.
func closeServers(t testing.TB, o *entry.Options, at bool) {
	if at {
		o.Local = pool(t, "a", "http://127.0.0.1:1")
	}
}

// Probes end with the entry point.
func TestProbesEndWithTheEntryPoint(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, nil)
	a := m.sites["a"]
	release := make(chan struct{})
	defer close(release)
	m.answers(func(at string, _ http.ResponseWriter, r *http.Request) bool {
		if at == "web@b" {
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}
		return false
	})
	a.put(t, probing(1))
	c := client(t)
	for range 60 {
		resp, err := c.Get(a.url + "/x")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	count := func(labels ...string) float64 { return a.counter(t, "penstock_entry_probes_total", labels...) }
	eventually(t, "6 probes run", func() bool { return count("outcome", "sent") == 6 })
	began := time.Now()
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("the end took %v", took)
	}
	if n := count("outcome", "failed", "reason", "ended"); n != 6 {
		t.Errorf("%v were broken off", n)
	}
	if n := len(probes(a.rows.await(t, 60))); n != 0 {
		t.Errorf("%d rows of probes that were broken off", n)
	}
}
