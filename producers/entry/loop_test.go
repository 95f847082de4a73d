package entry_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"penstock/producers/entry"
)

// total is how many requests an entry point has answered.
func (p *point) total(t testing.TB) float64 { return p.counter(t, "penstock_entry_requests_total") }

// Entry points that disagree pass a request on once at most, whatever keys they
// have, and each publishes one row of it at most.
func TestNoConfigurationMakesALoop(t *testing.T) {
	t.Parallel()
	const one, other = "0123456789abcdef", "fedcba9876543210"
	elsewhere := map[string]string{"a": "b", "b": "a", "c": "a"}
	for name, test := range map[string]struct {
		keys    [2]string // of a and b
		trusted bool
		unknown bool // they disagree about owners that nobody knows
		answer  string
		want    string
		rows    [2]int // of a and b
	}{
		"one key":               {keys: [2]string{one, one}, want: "200 b v5 hops 1", rows: [2]int{1, 0}},
		"one key, unknown":      {keys: [2]string{one, one}, unknown: true, want: "200 b v hops 1", rows: [2]int{1, 0}},
		"two keys":              {keys: [2]string{one, other}, want: "508 a v hops 0", rows: [2]int{1, 1}},
		"two keys, unknown":     {keys: [2]string{one, other}, unknown: true, want: "508 a v hops 0", rows: [2]int{1, 1}},
		"two keys, one sends":   {keys: [2]string{one, other}, answer: entry.Redirect, want: "508 a v hops 0", rows: [2]int{1, 1}},
		"a key and none":        {keys: [2]string{one, ""}, want: "508 a v hops 0", rows: [2]int{1, 1}},
		"none and a key":        {keys: [2]string{"", one}, want: "508 a v hops 0", rows: [2]int{1, 1}},
		"no key":                {want: "508 a v hops 0", rows: [2]int{1, 1}},
		"no key, unknown":       {unknown: true, want: "508 a v hops 0", rows: [2]int{1, 1}},
		"no key, trusted":       {trusted: true, want: "200 a v4 hops 0", rows: [2]int{2, 0}},
		"two keys, but trusted": {keys: [2]string{one, other}, trusted: true, want: "508 a v hops 0", rows: [2]int{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(site string, o *entry.Options) {
				o.PeerKey = []byte(map[string]string{"a": test.keys[0], "b": test.keys[1], "c": other}[site])
				if test.trusted {
					o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
				}
				if test.unknown {
					o.Unknown = "site:" + elsewhere[site]
				}
				if site == "b" {
					o.Answer = test.answer
				}
			})
			for site, p := range w.points {
				w.stores[site].has["ada"] = true
				if !test.unknown {
					p.places.set("ada", elsewhere[site], map[string]uint64{"a": 5, "b": 4}[site])
				}
			}
			if got := get(t, w.points["a"].url+"/u/ada/x"); got.about() != test.want {
				t.Errorf("got %s, expected %s", got.about(), test.want)
			}
			if a, b, c := w.points["a"].total(t), w.points["b"].total(t), w.points["c"].total(t); a != 1 || b != 1 || c != 0 {
				t.Errorf("answered %v, %v and %v times", a, b, c)
			}
			for i, site := range []string{"a", "b"} {
				if got := w.points[site].rows.await(t, test.rows[i]); len(got) != test.rows[i] {
					t.Errorf("%d rows of %s, expected %d: %+v", len(got), site, test.rows[i], got)
				}
			}
		})
	}
}

// What an entry point with another key knows better is followed all the same.
func TestANewerWordOfAnUnknownPeerIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(site string, o *entry.Options) {
		o.PeerKey = []byte(strings.Repeat(site, 16))
	})
	w.points["a"].places.set("ada", "b", 5)
	w.points["b"].places.set("ada", "c", 6)
	w.points["c"].places.set("ada", "c", 6)
	w.stores["c"].has["ada"] = true
	if got := get(t, w.points["a"].url+"/u/ada/x"); got.about() != "200 c v6 hops 1" {
		t.Errorf("got %s", got.about())
	}
	rows := w.points["a"].rows.await(t, 2)
	if rows[0].Status != http.StatusLoopDetected || rows[0].ToSite != "b" || rows[1].Status != http.StatusOK || rows[1].ToSite != "c" {
		t.Errorf("rows %+v", rows)
	}
}

// Whoever writes the mark of forwarded requests is served where it calls, or not at
// all; and it is believed nothing.
func TestAMarkedRequestOfAStrangerEndsHere(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{entry.Forward, entry.Redirect} {
		w := newWorld(t, func(_ string, o *entry.Options) { o.Answer, o.Replay = answer, -1 })
		a := w.points["a"]
		w.stores["a"].has["ada"], w.stores["b"].has["bea"] = true, true
		a.places.set("ada", "a", 3)
		a.places.set("bea", "b", 7)
		a.places.set("cleo", "a", 1)
		w.stores["a"].moved["cleo"] = word{"b", 2}
		for i, test := range []struct{ request, want string }{
			{"GET /u/ada/x HTTP/1.1\r\nHost: a\r\nPenstock-Hop: b\r\nPenstock-Owner: bea\r\nPenstock-User: root\r\n\r\n", "200 a v3 hops 0"},
			{"GET /u/bea/x HTTP/1.1\r\nHost: a\r\nPenstock-Hop: b\r\nPenstock-Owner: ada\r\nPenstock-Version: 9\r\n\r\n", "508 b v7 hops 0"},
			{"GET /u/bea/x HTTP/1.1\r\nHost: a\r\npenstock-hop:\r\n\r\n", "508 b v7 hops 0"},
			{"GET /u/bea/x HTTP/1.1\r\nHost: a\r\nPENSTOCK-HOP: nowhere\r\nPenstock-Peer: a guess of a key\r\n\r\n", "508 b v7 hops 0"},
			{"HEAD /u/bea/x HTTP/1.1\r\nHost: a\r\nPenstock-Hop: x\r\nPenstock-Hop: a\r\n\r\n", "508 b v7 hops 0"},
			{"PUT /u/bea/x HTTP/1.1\r\nHost: a\r\nPenstock-Hop: b\r\nContent-Length: 4\r\n\r\ndata", "508 b v7 hops 0"},
			{"PUT /u/cleo/x HTTP/1.1\r\nHost: a\r\nPenstock-Hop: b\r\nContent-Length: 4\r\n\r\ndata", "508 b v2 hops 0"},
			{"GET /u/cleo/x HTTP/1.1\r\nHost: a\r\nPenstock-Hop: b\r\n\r\n", "508 b v2 hops 0"},
			{"GET /u/new/x HTTP/1.1\r\nHost: a\r\nPenstock-Hop: b\r\n\r\n", "421 a v hops 0"}, // the service's own
		} {
			c := dial(t, a)
			c.send(t, test.request)
			got := c.next(t, strings.Fields(test.request)[0])
			if got == nil {
				t.Fatalf("%q: no answer", test.request)
			}
			if got.about() != test.want || got.Header.Get("Location") != "" || got.Header.Get("Penstock-Server") != "" {
				t.Errorf("%s, %q: got %s %v, expected %s", answer, test.request, got.about(), got.Header, test.want)
			}
			// It says itself what became of it: nobody hides by a mark.
			rows := a.rows.await(t, i+1)
			if row := rows[len(rows)-1]; row.User == "root" || int(row.Status) != got.StatusCode || row.FromSite != "a" || row.ToSite != "a" {
				t.Errorf("%q: row %+v", test.request, row)
			}
		}
		if n := w.points["b"].total(t) + w.points["c"].total(t); n != 0 {
			t.Errorf("%v requests went on", n)
		}
		if n := a.counter(t, "penstock_entry_ignored_total", "what", "hop", "reason", "key"); n != 9 {
			t.Errorf("%v marks were counted", n)
		}
	}
}

// An answer of 421 that is the service's own comes through a peer as it is.
func TestAServicesOwn421ComesThroughAPeer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.points["a"].places.set("ada", "b", 5)
	if got := get(t, w.points["a"].url+"/u/ada/x"); got.about() != "421 b v5 hops 1" || w.stores["b"].calls != 1 {
		t.Errorf("got %s after %d calls", got.about(), w.stores["b"].calls)
	}
}
