package entry_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"penstock/infra/geo"
	"penstock/producers/accesslog"
	"penstock/producers/entry"
	"penstock/producers/entry/identify"
	"penstock/schemas/event"
)

type atlas map[string]geo.Place

func (a atlas) Lookup(at netip.Addr) (geo.Place, bool) {
	p, ok := a[at.String()]
	return p, ok
}

func headersOf(w http.ResponseWriter, r *http.Request) {
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded", "Traceparent", "Tracestate", "X-Hop", "X-Owner", "X_Forwarded_For", "Te"} {
		for _, v := range r.Header[name] {
			fmt.Fprintf(w, "%s: %s\n", name, v)
		}
	}
}

// A user of a live entry point is the same as of an imported log.
func TestUsersAreThoseOfAccessLogs(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, headersOf)}, func(o *entry.Options) {
		o.User = []identify.Rule{{Address: true}}
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	addresses := []string{"192.0.2.7", "2001:db8::1", "::ffff:192.0.2.9"}
	for _, a := range addresses {
		get(t, p.url+"/blog/x", "X-Forwarded-For", a)
	}
	parser, _, err := accesslog.Open(accesslog.ChoiceOptions{Name: "combined"}, accesslog.Options{Key: []byte("a key of tests")})
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range p.rows.await(t, len(addresses)) {
		var logged event.Request
		line := addresses[i] + ` - - [17/May/2015:10:05:03 +0000] "GET /blog/x HTTP/1.1" 200 1 "-" "-"`
		if err := parser.Parse([]byte(line), &logged); err != nil {
			t.Fatal(err)
		}
		if row.User != logged.User || len(row.User) != 32 {
			t.Errorf("%s: live %q, logged %q", addresses[i], row.User, logged.User)
		}
	}
}

func TestClientsAndTheirPlaces(t *testing.T) {
	t.Parallel()
	trusted := func(o *entry.Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")}
		o.Geo = atlas{"192.0.2.7": {Lat: 47, Lon: 8}, "127.0.0.1": {Lat: 1, Lon: 2}}
	}
	backend := service(t, headersOf)
	for _, test := range []struct {
		name    string
		trusted bool
		headers []string
		lat     float32
		body    []string
	}{
		{"believed", true, []string{"X-Forwarded-For", "198.51.100.1, 192.0.2.7, 10.1.1.1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "shop"}, 47, []string{
			"X-Forwarded-For: 198.51.100.1, 192.0.2.7, 10.1.1.1, 127.0.0.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: shop",
		}},
		{"believed by Forwarded", true, []string{"Forwarded", "for=198.51.100.1, for=192.0.2.7;proto=https"}, 47, []string{"X-Forwarded-For: 192.0.2.7, 127.0.0.1"}},
		{"not believed", false, []string{"X-Forwarded-For", "192.0.2.7", "X-Forwarded-Proto", "https", "Forwarded", "for=192.0.2.7", "X_Forwarded_For", "192.0.2.7"}, 1, []string{
			"X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http", "X-Forwarded-Host: 127.0.0.1",
		}},
	} {
		p := run(t, []string{backend}, func(o *entry.Options) {
			trusted(o)
			if !test.trusted {
				o.TrustedProxies = nil
			}
		})
		got := get(t, p.url+"/", test.headers...)
		for _, line := range test.body {
			if !strings.Contains(got.body, line) {
				t.Errorf("%s: the service got\n%s, expected %s", test.name, got.body, line)
			}
		}
		if !test.trusted && (strings.Contains(got.body, "Forwarded: ") || strings.Contains(got.body, "192.0.2.7")) {
			t.Errorf("%s: the service got\n%s", test.name, got.body)
		}
		if row := p.rows.await(t, 1)[0]; row.Lat != test.lat {
			t.Errorf("%s: at %v", test.name, row.Lat)
		}
	}
}

func TestTracesAreJoined(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, headersOf)}, nil)
	const id = "0af7651916cd43dd8448eb211c80319c"
	got := get(t, p.url+"/", "Traceparent", "00-"+id+"-b7ad6b7169203331-00", "Tracestate", "x=y")
	if !strings.Contains(got.body, "Traceparent: 00-"+id+"-") || strings.Contains(got.body, "b7ad6b7169203331") || !strings.Contains(got.body, "-00\n") || !strings.Contains(got.body, "Tracestate: x=y") {
		t.Errorf("the service got\n%s", got.body)
	}
	got = get(t, p.url+"/", "Traceparent", "00-nonsense", "Tracestate", "x=y")
	rows := p.rows.await(t, 2)
	if hex.EncodeToString(rows[0].Trace[:]) != id {
		t.Errorf("row %x", rows[0].Trace)
	}
	if !strings.Contains(got.body, fmt.Sprintf("Traceparent: 00-%x-", rows[1].Trace)) || !strings.Contains(got.body, "-01\n") || strings.Contains(got.body, "Tracestate") {
		t.Errorf("the service got\n%s", got.body)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdef0123456789abcdef")
	sign := func(key []byte, claims jwt.MapClaims) string {
		s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + s
	}
	good := sign(secret, jwt.MapClaims{"sub": "ada", "exp": time.Now().Add(time.Hour).Unix()})
	forged := sign([]byte("another secret of some length"), jwt.MapClaims{"sub": "root"})
	old := sign(secret, jwt.MapClaims{"sub": "ada", "exp": time.Now().Add(-time.Hour).Unix()})
	backend := service(t, headersOf)
	setup := func(required bool) *point {
		return run(t, []string{backend}, func(o *entry.Options) {
			o.User = []identify.Rule{{Claim: "sub"}, {Header: "X-User"}}
			o.JWT = entry.JWT{Key: secret, Required: required}
		})
	}
	p := setup(false)
	for _, a := range []string{good, forged, old, "Bearer x", "Basic x"} {
		if got := get(t, p.url+"/", "Authorization", a, "X-User", "else"); got.StatusCode != http.StatusOK {
			t.Errorf("got %d", got.StatusCode)
		}
	}
	for i, row := range p.rows.await(t, 5) {
		if want := map[bool]string{true: "ada", false: "else"}[i == 0]; row.User != want {
			t.Errorf("row %d: user %q, expected %q", i, row.User, want)
		}
	}
	p = setup(true)
	for a, status := range map[string]int{good: 200, forged: 401, old: 401, "": 401, "Basic x": 401} {
		got := get(t, p.url+"/", "Authorization", a)
		if got.StatusCode != status || status == 401 && !strings.HasPrefix(got.Header.Get("Www-Authenticate"), "Bearer") {
			t.Errorf("%.20s: got %d %v", a, got.StatusCode, got.Header)
		}
	}
}

func TestClassesAndIdsThatAreNone(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, headersOf)}, func(o *entry.Options) {
		o.Class = []entry.ClassRule{{Path: "/static/**", Class: "static"}, {Path: "/u/*/feed", Class: "feed"}}
	})
	get(t, p.url+"/static/./a.js")
	get(t, p.url+"/u/ada/feed")
	get(t, p.url+"/u/"+strings.Repeat("a", 2000)+"/x", "X-Owner", "bea")
	rows := p.rows.await(t, 3)
	if rows[0].Class != "static" || rows[1].Class != "feed" || rows[2].Class != "" || rows[2].Owner != "bea" {
		t.Errorf("rows %+v", rows)
	}
	if p.counter(t, "penstock_entry_ignored_total", "what", "owner", "reason", "unusable") != 1 {
		t.Error("not counted")
	}
}

// What is no request is a row of its own class, with the status that it got.
func TestNoRequestIsABadRequest(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, headersOf)}, nil)
	w := dial(t, p)
	w.send(t, "\x16\x03\x01\x02")
	if a := w.next(t, "GET"); a == nil || a.StatusCode != http.StatusBadRequest {
		t.Errorf("got %+v", a)
	}
	row := p.rows.await(t, 1)[0]
	if row.Class != "bad-request" || row.Status != 400 || row.ToSite != "a" || row.Owner != "" || row.User != "" {
		t.Errorf("row %+v", row)
	}
	if p.counter(t, "penstock_entry_refused_total", "reason", "control-character") != 1 {
		t.Error("not counted")
	}
}

// Unknown owners are served by the rule, within residency.
func TestUnknownOwners(t *testing.T) {
	t.Parallel()
	for unknown, served := range map[string]string{"local": "a", "first": "a", "site:b": "b", "hash": "a b c"} {
		w := newWorld(t, func(_ string, o *entry.Options) { o.Unknown = unknown })
		seen := map[string]bool{}
		for i := range 20 {
			owner := fmt.Sprint("o", i)
			for _, s := range w.stores {
				s.set(func() { s.has[owner] = true })
			}
			seen[get(t, w.points["a"].url+"/u/"+owner+"/x").Header.Get("Penstock-Site")] = true
		}
		for _, s := range strings.Fields(served) {
			if !seen[s] || len(seen) != len(strings.Fields(served)) {
				t.Errorf("%s: served by %v", unknown, seen)
			}
		}
	}
	w := newWorld(t, func(_ string, o *entry.Options) {
		o.Residency = func(owner string) []bool { return []bool{!strings.HasPrefix(owner, "eu-"), true, false} }
	})
	w.stores["b"].has["eu-ada"], w.stores["a"].has["ada"] = true, true
	if got := get(t, w.points["a"].url+"/u/eu-ada/x"); got.about() != "200 b v hops 1" {
		t.Errorf("got %s", got.about())
	}
	if got := get(t, w.points["a"].url+"/u/ada/x"); got.about() != "200 a v hops 0" {
		t.Errorf("got %s", got.about())
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	good := func() entry.Options {
		return entry.Options{Site: "a", Sites: []entry.Site{{Name: "a"}}, Local: pool(t, "a")}
	}
	if _, err := entry.New(good()); err != nil {
		t.Fatal(err)
	}
	for fault, change := range map[string]func(*entry.Options){
		"no pool of local servers":               func(o *entry.Options) { o.Local = nil },
		`site "x" is not one of the sites`:       func(o *entry.Options) { o.Site = "x" },
		`answer "maybe", expected forward`:       func(o *entry.Options) { o.Answer = "maybe" },
		`go to site "x"`:                         func(o *entry.Options) { o.Unknown = "site:x" },
		`unknown "x", expected local`:            func(o *entry.Options) { o.Unknown = "x" },
		"tokens are required":                    func(o *entry.Options) { o.JWT.Required = true },
		"a secret of 3 bytes":                    func(o *entry.Options) { o.JWT.Key = []byte("abc") },
		"peer key of 3 bytes":                    func(o *entry.Options) { o.PeerKey = []byte("abc") },
		"header limit of 10 bytes":               func(o *entry.Options) { o.Limits.Header = 10 },
		"user rule 1: no key to hash with":       func(o *entry.Options) { o.User = []identify.Rule{{Address: true}} },
		"owner rule 2: expected one of path":     func(o *entry.Options) { o.Owner = []identify.Rule{{Header: "X"}, {}} },
		`path "/u/**" has no {owner}`:            func(o *entry.Options) { o.Owner = []identify.Rule{{Path: "/u/**"}} },
		"class x: path \"y\" does not begin":     func(o *entry.Options) { o.Class = []entry.ClassRule{{Path: "y", Class: "x"}} },
		`site "a" has no name, a bad one, or on`: func(o *entry.Options) { o.Sites = append(o.Sites, entry.Site{Name: "a"}) },
	} {
		o := good()
		change(&o)
		if _, err := entry.New(o); !errors.Is(err, entry.ErrOption) || !strings.Contains(err.Error(), fault) {
			t.Errorf("got %v, expected %s", err, fault)
		}
	}
}
