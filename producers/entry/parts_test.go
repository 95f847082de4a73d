package entry

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/infra/clock"
)

func TestTraceparents(t *testing.T) {
	t.Parallel()
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for in, flags := range map[string]int{
		"00-" + id + "-" + span + "-01":                                 1,
		"00-" + id + "-" + span + "-00":                                 0,
		"00-" + id + "-" + span + "-ff":                                 255,
		"cc-" + id + "-" + span + "-01-more":                            1,
		"":                                                              -1,
		"00-" + id + "-" + span:                                         -1,
		"00-" + id + "-" + span + "-01-more":                            -1,
		"cc-" + id + "-" + span + "-01.":                                -1,
		"ff-" + id + "-" + span + "-01":                                 -1,
		"00-" + strings.ToUpper(id) + "-" + span + "-01":                -1,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":            -1,
		"00-" + id + "-" + strings.Repeat("0", 16) + "-01":              -1,
		"00_" + id + "-" + span + "-01":                                 -1,
		"00-" + id + "-" + span + "-0x":                                 -1,
		strings.Repeat("-", 55):                                         -1,
		"00-" + id[:31] + "-" + "0" + span + "-01" + "":                 -1,
		"0g-" + id + "-" + span + "-01":                                 -1,
		"00-" + id + "-" + span[:15] + "\x00" + "-01":                   -1,
		"00-" + strings.Replace(id, "a", "é", 1)[:32] + "-" + span + "": -1,
	} {
		got, f, ok := parseTrace(in)
		if ok != (flags >= 0) || ok && (int(f) != flags || hex.EncodeToString(got[:]) != id) {
			t.Errorf("%s: %x %d %v", in, got, f, ok)
		}
	}
}

func TestServerTiming(t *testing.T) {
	t.Parallel()
	ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	for _, test := range []struct {
		lines []string
		name  string
		peer  bool
		want  timings
	}{
		{nil, "", false, timings{}},
		{[]string{"app;dur=1.5"}, "", false, timings{service: ms(1.5), hasService: true}},
		{[]string{"total;dur=9, app;dur=1.5"}, "", false, timings{service: ms(1.5), hasService: true, callees: ms(7.5)}},
		{[]string{"total;dur=9, app;dur=9.5"}, "", false, timings{service: ms(9.5), hasService: true}},
		{[]string{"total;dur=9", "penstock-service;dur=2"}, "", true, timings{service: ms(2), hasService: true, callees: ms(7)}},
		{[]string{"total;dur=9, db;dur=1"}, "db", false, timings{service: ms(1), hasService: true, callees: ms(8)}},
		{[]string{"total;dur=9"}, "db", false, timings{}},
		{[]string{"db;dur=1, total;dur=9", "cache"}, "", false, timings{service: ms(9), hasService: true}},
		{[]string{"db;dur=3, cache;desc=\"a, dur=5\""}, "", false, timings{service: ms(3), hasService: true}},
		{[]string{"db;dur=3, cache;dur=1"}, "", false, timings{}},
		{[]string{"db;dur=3, app;dur=1"}, "db", false, timings{service: ms(3), hasService: true}},
		{[]string{"app;dur=1"}, "db", false, timings{}},
		{[]string{`app; DUR = "2.5" ;desc="x;y"`}, "", false, timings{service: ms(2.5), hasService: true}},
		{[]string{"app;dur=-4"}, "", false, timings{service: ms(-4), hasService: true}},
		{[]string{"app;dur=NaN, x;dur=1e99, y;dur=, ;dur=1, z;dur=1x"}, "", false, timings{}},
		{[]string{"app;dur=1", "penstock-service;dur=7, penstock-wait;dur=2"}, "", true, timings{service: ms(7), wait: ms(2), hasService: true, hasWait: true}},
		{[]string{"penstock-service;dur=7, penstock-limit;dur=500, app;dur=1"}, "", true, timings{service: ms(7), hasService: true, limit: ms(500)}},
		{[]string{"penstock-wait;dur=2, app;dur=1"}, "", false, timings{service: ms(1), hasService: true}},
	} {
		if got := readTimings(http.Header{"Server-Timing": test.lines}, test.name, test.peer); got != test.want {
			t.Errorf("%q: got %+v, expected %+v", test.lines, got, test.want)
		}
	}
	h := http.Header{"Server-Timing": {`app;dur=1;desc="a, b"`}}
	addTimings(h, ms(2.0625), ms(0.5), 0)
	if got := h["Server-Timing"][1]; got != "penstock-service;dur=2.062, penstock-wait;dur=0.500" {
		t.Errorf("got %s", got)
	}
	h["Server-Timing"] = h["Server-Timing"][:1]
	addTimings(h, ms(2.0625), ms(0.5), ms(500))
	if got := h["Server-Timing"][1]; got != "penstock-service;dur=2.062, penstock-wait;dur=0.500, penstock-limit;dur=500.000" {
		t.Errorf("got %s", got)
	}
	h["Server-Timing"] = append(h["Server-Timing"], "x;dur=1, penstock-wait;dur=2, y")
	withoutTimings(h)
	if got := h["Server-Timing"]; !slices.Equal(got, []string{`app;dur=1;desc="a, b"`, "x;dur=1, y"}) {
		t.Errorf("left are %q", got)
	}
	h = http.Header{"Server-Timing": {"penstock-wait;dur=2"}}
	if withoutTimings(h); len(h) != 0 {
		t.Errorf("left is %v", h)
	}
}

type fixed map[string]place

func (f fixed) Locate(owner string) (site string, version uint64, known bool) {
	p, ok := f[owner]
	return []string{"a", "b", "c", "elsewhere"}[p.site], p.version, ok
}
func (fixed) Learn(string, string, uint64) {}

func TestWaysOfRequests(t *testing.T) {
	t.Parallel()
	type peer struct{ Upstream }
	sites := []Site{{Name: "a", URL: "http://a", Peer: peer{}}, {Name: "b", URL: "http://b", Peer: peer{}}, {Name: "c", Peer: peer{}}, {Name: "d", URL: "http://d"}, {Name: "e"}}
	for _, test := range []struct {
		answer string
		p      place
		hop    *hop
		marked bool
		tunnel bool
		want   way
	}{
		{Forward, place{site: 0}, nil, false, false, serve},
		{Forward, place{site: 1, known: true}, nil, false, false, forward},
		{Redirect, place{site: 1, known: true}, nil, false, false, redirect},
		{Redirect, place{site: 1, known: true}, nil, false, true, forward},
		{Redirect, place{site: 2, known: true}, nil, false, false, forward},
		{Forward, place{site: 3, known: true}, nil, false, false, redirect},
		{Forward, place{site: 3, known: true}, nil, false, true, nowhereToGo},
		{Forward, place{site: 4, known: true}, nil, false, false, nowhereToGo},
		{Forward, place{site: noSite}, nil, false, false, nowhereToGo},
		{Forward, place{site: noSite}, &hop{}, true, false, nowhereToGo},
		{Forward, place{site: 0, known: true, version: 3}, &hop{version: 2}, true, false, serve},
		{Forward, place{site: 1, known: true, version: 3}, &hop{version: 3}, true, false, misdirected},
		{Forward, place{site: 1, known: true, version: 3}, &hop{version: 4}, true, false, serve},
		{Forward, place{site: 1}, &hop{}, true, false, serve},
		{Redirect, place{site: 1, known: true}, &hop{}, true, false, misdirected},
		{Redirect, place{site: 1, known: true}, nil, true, false, disowned},
		{Forward, place{site: 1, known: true, version: 3}, nil, true, false, disowned},
		{Forward, place{site: 1}, nil, true, true, disowned},
		{Forward, place{site: 0}, nil, true, false, serve},
	} {
		r := newRouter(&Options{Site: "a", Sites: sites, Answer: test.answer, Unknown: UnknownLocal, Locations: fixed{}})
		if got := r.decide(test.p, test.hop, test.marked, test.tunnel); got != test.want {
			t.Errorf("%+v: got %d", test, got)
		}
	}
}

func TestPlacesOfOwners(t *testing.T) {
	t.Parallel()
	sites := []Site{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	allow := func(owner string) []bool {
		switch owner[0] {
		case 'n':
			return []bool{false, false, false}
		case 'b':
			return []bool{false, true, false}
		case 's':
			return []bool{false, true}
		}
		return []bool{true, true, true}
	}
	known := fixed{"here": {site: 0, version: 3}, "there": {site: 2, version: 4}, "gone": {site: 3, version: 5}}
	for _, test := range []struct {
		unknown, owner string
		want           place
		strange        bool
	}{
		{UnknownLocal, "", place{site: 1}, false},
		{UnknownLocal, "here", place{0, 3, true}, false},
		{UnknownLocal, "there", place{2, 4, true}, false},
		{UnknownLocal, "gone", place{site: 1}, true},
		{UnknownLocal, "x", place{site: 1}, false},
		{UnknownLocal, "none", place{site: noSite}, false},
		{UnknownFirst, "x", place{site: 0}, false},
		{UnknownFirst, "b", place{site: 1}, false},
		{"site:c", "x", place{site: 2}, false},
		{"site:c", "b", place{site: 1}, false},
		{"site:c", "short", place{site: 1}, false},
		{UnknownHash, "b", place{site: 1}, false},
		{UnknownHash, "none", place{site: noSite}, false},
	} {
		r := newRouter(&Options{Site: "b", Sites: sites, Unknown: test.unknown, Locations: known, Residency: allow})
		if got, strange := r.find(test.owner); got != test.want || strange != test.strange {
			t.Errorf("%s, %q: got %+v %v, expected %+v", test.unknown, test.owner, got, strange, test.want)
		}
	}
}

// Each site gets its share of unknown owners, and one that leaves moves only its
// own.
func TestRendezvous(t *testing.T) {
	t.Parallel()
	var sites []Site
	for i := range 5 {
		sites = append(sites, Site{Name: fmt.Sprint("site-", i)})
	}
	all := newRouter(&Options{Site: "site-0", Sites: sites, Unknown: UnknownHash, Locations: fixed{}})
	less := newRouter(&Options{Site: "site-0", Sites: sites[:4], Unknown: UnknownHash, Locations: fixed{}})
	counts := make([]int, 5)
	for i := range 5000 {
		owner := fmt.Sprint("owner-", i)
		a, b := all.choose(owner), less.choose(owner)
		counts[a]++
		if a != 4 && a != b {
			t.Fatalf("%s moved from %d to %d", owner, a, b)
		}
	}
	for i, n := range counts {
		if n < 900 || n > 1100 {
			t.Errorf("site %d has %d of 5,000", i, n)
		}
	}
}

func TestNoAllocationToFindAWay(t *testing.T) { // not parallel: it counts allocations
	r := newRouter(&Options{Site: "a", Sites: []Site{{Name: "a"}, {Name: "b"}}, Unknown: UnknownHash, Locations: fixed{"x": {site: 1}}})
	if n := testing.AllocsPerRun(100, func() {
		p, _ := r.find("x")
		r.decide(p, nil, false, false)
		r.find("y")
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestStrip(t *testing.T) {
	t.Parallel()
	h := http.Header{
		"Connection": {"keep-alive, X-Mine", " x-other ,"}, "X-Mine": {"1"}, "X-Other": {"1"}, "Keep-Alive": {"5"}, "Te": {"trailers"}, "Upgrade": {"x"}, "Trailer": {"x"},
		"Transfer-Encoding": {"chunked"}, "Proxy-Authorization": {"x"}, "Proxy-Connection": {"x"}, "Penstock-User": {"root"}, "Penstock_hop": {"b"}, "Penstock-": {"x"},
		"X_forwarded_for": {"x"}, "Content_length": {"5"}, "Transfer_encoding": {"x"}, "Http2-Settings": {"x"},
		"X_mine": {"stays"}, "Penstocks": {"stays"}, "X-Penstock-User": {"stays"}, "Accept": {"stays"},
	}
	strip(h)
	if want := (http.Header{"X_mine": {"stays"}, "Penstocks": {"stays"}, "X-Penstock-User": {"stays"}, "Accept": {"stays"}}); !reflect.DeepEqual(h, want) {
		t.Errorf("left are %v", h)
	}
}

func TestIdsInHeaders(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"ada", "bob & co", "a\r\nb", "100%", "ä", "a/b", "", strings.Repeat("ä", 512)} {
		enc := encodeID(id)
		if got := decodeID(enc); got != id || !isHeaderValue(enc) {
			t.Errorf("%q: %q, %q", id, enc, got)
		}
	}
	for _, s := range []string{"%", "%zz", "%ff", strings.Repeat("a", 1025)} {
		if got := decodeID(s); got != "" {
			t.Errorf("%q: %q", s, got)
		}
	}
}

// A body is sent again from its beginning, whoever reads it and however much,
// as long as that is kept.
func TestBodiesAreSentAgain(t *testing.T) {
	t.Parallel()
	const text = "0123456789abcdefghij"
	for _, read := range []int{0, 1, 5, 10, 11, 20} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text))
		b := &body{src: r.Body, control: http.NewResponseController(httptest.NewRecorder()), request: r, sockets: clock.System(), clock: clock.System(), whole: true, keep: 10}
		first, err := b.open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(first, make([]byte, read)); err != nil {
			t.Fatal(err)
		}
		second, err := b.open()
		if (err == nil) != (read <= 10) || b.again() != (err == nil) {
			t.Errorf("after %d bytes: %v", read, err)
		}
		if err != nil {
			continue
		}
		if n, err := first.Read(make([]byte, 5)); n != 0 || err == nil {
			t.Errorf("the first attempt reads on: %d, %v", n, err)
		}
		if got, err := io.ReadAll(second); string(got) != text || err != nil {
			t.Errorf("after %d bytes: got %q, %v", read, got, err)
		}
		b.end()
		if n, err := second.Read(make([]byte, 5)); n != 0 || err == nil {
			t.Errorf("after the end: %d, %v", n, err)
		}
	}
}
