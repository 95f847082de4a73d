package redirector

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"penstock/infra/clock"
	"penstock/infra/door"
	"penstock/infra/door/doortest"
	"penstock/schemas/control"
)

var t0 = time.Date(2015, 5, 17, 10, 0, 0, 0, time.UTC)

// table is a directory of a test's own.
type table struct {
	owners    map[string]control.Location
	since     time.Duration
	connected bool
	ready     chan struct{}
}

func (t *table) Get(owner string) (control.Location, bool) {
	l, known := t.owners[owner]
	return l, known
}

func (t *table) Freshness() (time.Duration, bool) { return t.since, t.connected }

func (t *table) Ready() <-chan struct{} { return t.ready }

// known is in step and knows a few owners.
func known() *table {
	t := &table{connected: true, ready: make(chan struct{}), owners: map[string]control.Location{}}
	close(t.ready)
	at := func(owner, site string, version uint64) {
		t.owners[owner] = control.Location{Site: site, Version: version, State: control.Live, Since: t0}
	}
	at("ann", "east", 7)
	at("a/b", "west", 1<<63)
	at("bin\xff\r\n", "east", 0)
	at("urlless", "moon", 3)
	pinned := t.owners["ann"]
	pinned.Pinned, pinned.State = true, control.Moving
	t.owners["pin"] = pinned
	return t
}

// setup is a redirector with a clock that stands at a quarter to the window's end.
func setup(t testing.TB, change func(*Options)) (*Redirector, *table, *clock.Manual) {
	t.Helper()
	d, c := known(), clock.NewManual(t0.Add(45*time.Minute))
	o := Options{
		Directory: d, Clock: c, Listen: "127.0.0.1:0",
		Sites:     map[string]string{"east": "http://east.example:8080/", "west": "https://west.example/base", "moon": ""},
		WindowEnd: func(now time.Time) time.Time { return now.Truncate(time.Hour).Add(time.Hour) },
	}
	if change != nil {
		change(&o)
	}
	r, err := New(o)
	ok(t, err)
	t.Cleanup(r.Close)
	return r, d, c
}

// ask sends a request to the handler, as a server would.
func ask(r *Redirector, method, uri string, headers ...string) *httptest.ResponseRecorder {
	return askWith(r, method, uri, "", headers...)
}

func askWith(r *Redirector, method, uri, body string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "/", strings.NewReader(body))
	req.RequestURI = uri
	return doortest.Ask(r, req, headers...)
}

var aboutOwner = []string{"ETag", "Penstock-Site", "Penstock-Version", "Penstock-Age", "Cache-Control", "Location"}

func TestAnswers(t *testing.T) {
	r, _, _ := setup(t, func(o *Options) {
		o.Unknown = func(owner string) (string, bool) { return "west", owner != "nobody" }
	})
	const ann = `{"owner":"ann","site":"east","url":"http://east.example:8080","version":7,"state":"live","since":"2015-05-17T10:00:00Z","age":0}`
	for _, c := range []struct {
		method, uri string
		headers     []string
		want        string
	}{
		{"GET", "/v1/locations/ann", nil, `200 ETag="7" Penstock-Site=east Penstock-Version=7 Penstock-Age=0 Cache-Control=private, max-age=900 Location= ` + ann},
		{"HEAD", "/v1/locations/ann", nil, `200 ETag="7" Penstock-Site=east Penstock-Version=7 Penstock-Age=0 Cache-Control=private, max-age=900 Location=`},
		{"GET", "/v1/locations/ann", []string{"If-None-Match", `"7"`}, `304 ETag="7" Penstock-Site=east Penstock-Version=7 Penstock-Age=0 Cache-Control=private, max-age=900 Location=`},
		{"GET", "/v1/locations/ann", []string{"If-None-Match", `"5", W/"7"`}, `304 ETag="7" Penstock-Site=east Penstock-Version=7 Penstock-Age=0 Cache-Control=private, max-age=900 Location=`},
		{"GET", "/v1/locations/ann", []string{"If-None-Match", "*"}, `304 ETag="7" Penstock-Site=east Penstock-Version=7 Penstock-Age=0 Cache-Control=private, max-age=900 Location=`},
		{"GET", "/v1/locations/ann", []string{"If-None-Match", `"6"`, "If-None-Match", "7"}, `200 ETag="7" Penstock-Site=east Penstock-Version=7 Penstock-Age=0 Cache-Control=private, max-age=900 Location= ` + ann},
		{
			"GET", "/v1/locations/a%2fb", nil,
			`200 ETag="9223372036854775808" Penstock-Site=west Penstock-Version=9223372036854775808 Penstock-Age=0 Cache-Control=private, max-age=900 Location= ` +
				`{"owner":"a/b","site":"west","url":"https://west.example/base","version":9223372036854775808,"state":"live","since":"2015-05-17T10:00:00Z","age":0}`,
		},
		{
			"GET", "/v1/locations/bin%FF%0D%0A", nil, `200 ETag="0" Penstock-Site=east Penstock-Version=0 Penstock-Age=0 Cache-Control=private, max-age=900 Location= ` +
				`{"token":"b64=Ymlu_w0K","site":"east","url":"http://east.example:8080","version":0,"state":"live","since":"2015-05-17T10:00:00Z","age":0}`,
		},
		{
			"GET", "/v1/locations/urlless", nil, `200 ETag="3" Penstock-Site=moon Penstock-Version=3 Penstock-Age=0 Cache-Control=private, max-age=900 Location= ` +
				`{"owner":"urlless","site":"moon","version":3,"state":"live","since":"2015-05-17T10:00:00Z","age":0}`,
		},
		{
			"GET", "/v1/locations/pin", nil, `200 ETag="7" Penstock-Site=east Penstock-Version=7 Penstock-Age=0 Cache-Control=private, max-age=900 Location= ` +
				`{"owner":"pin","site":"east","url":"http://east.example:8080","version":7,"state":"moving","since":"2015-05-17T10:00:00Z","pinned":true,"age":0}`,
		},
		{
			"GET", "/v1/locations/new", nil, `404 ETag= Penstock-Site= Penstock-Version= Penstock-Age=0 Cache-Control=private, max-age=900 Location= ` +
				`{"error":"unknown-owner","text":"the owner has no location: it was never moved, imported or pinned","owner":"new","unknown":{"site":"west","url":"https://west.example/base"},"age":0}`,
		},
		{
			"GET", "/v1/locations/nobody", nil, `404 ETag= Penstock-Site= Penstock-Version= Penstock-Age=0 Cache-Control=private, max-age=900 Location= ` +
				`{"error":"unknown-owner","text":"the owner has no location: it was never moved, imported or pinned","owner":"nobody","age":0}`,
		},
		{"GET", "/r/ann/x?y=1", nil, `307 ETag= Penstock-Site=east Penstock-Version=7 Penstock-Age=0 Cache-Control=private, max-age=900 Location=http://east.example:8080/x?y=1`},
		{"HEAD", "/r/ann", nil, `307 ETag= Penstock-Site=east Penstock-Version=7 Penstock-Age=0 Cache-Control=private, max-age=900 Location=http://east.example:8080/`},
		{"POST", "/r/ann?q", nil, `307 ETag= Penstock-Site=east Penstock-Version=7 Penstock-Age=0 Cache-Control=private, max-age=900 Location=http://east.example:8080/?q`},
		{"DELETE", "/r/a%2Fb", nil, `307 ETag= Penstock-Site=west Penstock-Version=9223372036854775808 Penstock-Age=0 Cache-Control=private, max-age=900 Location=https://west.example/base`},
		{"PUT", "/r/a%2Fb//evil.example/%0d", nil, `307 ETag= Penstock-Site=west Penstock-Version=9223372036854775808 Penstock-Age=0 Cache-Control=private, max-age=900 Location=https://west.example/base//evil.example/%0d`},
		{"PATCH", "/r/new/x", nil, `307 ETag= Penstock-Site=west Penstock-Version= Penstock-Age=0 Cache-Control=private, max-age=900 Location=https://west.example/base/x`},
		{
			"GET", "/r/nobody/x", nil, `404 ETag= Penstock-Site= Penstock-Version= Penstock-Age=0 Cache-Control=private, max-age=900 Location= ` +
				`{"error":"unknown-owner","text":"the owner has no location: it was never moved, imported or pinned","owner":"nobody","age":0}`,
		},
		{"GET", "/r/urlless/x", nil, `503 ETag= Penstock-Site=moon Penstock-Version=3 Penstock-Age=0 Cache-Control=no-store Location= {"error":"no-url","text":"the configuration has no URL for the site of this owner"}`},
		{"GET", "/r/ann/../x", nil, `400 ETag= Penstock-Site= Penstock-Version= Penstock-Age= Cache-Control=no-store Location= {"error":"bad-path","text":"the path has a segment of dots alone"}`},
		{"GET", "/v1/locations/", nil, `400 ETag= Penstock-Site= Penstock-Version= Penstock-Age= Cache-Control=no-store Location= {"error":"bad-path","text":"no owner, of 1 to 1024 bytes, as one percent-encoded segment"}`},
		{"GET", "/", nil, `404 ETag= Penstock-Site= Penstock-Version= Penstock-Age= Cache-Control=no-store Location= {"error":"bad-path","text":"ask for /v1/locations/OWNER or /r/OWNER/PATH"}`},
		{"OPTIONS", "*", nil, `404 ETag= Penstock-Site= Penstock-Version= Penstock-Age= Cache-Control=no-store Location= {"error":"bad-path","text":"ask for /v1/locations/OWNER or /r/OWNER/PATH"}`},
		{"OPTIONS", "/r/ann/x", []string{"Origin", "http://x"}, `405 ETag= Penstock-Site= Penstock-Version= Penstock-Age= Cache-Control=no-store Location= {"error":"method","text":"allowed: GET, HEAD, POST, PUT, PATCH, DELETE"}`},
		{"POST", "/v1/locations/ann", nil, `405 ETag= Penstock-Site= Penstock-Version= Penstock-Age= Cache-Control=no-store Location= {"error":"method","text":"allowed: GET, HEAD"}`},
	} {
		res := ask(r, c.method, c.uri, c.headers...)
		for h := range res.Header() {
			if strings.HasPrefix(h, "Access-Control") || h == "Set-Cookie" {
				t.Errorf("%s %s: %s", c.method, c.uri, h)
			}
		}
		if got := doortest.Read(res, aboutOwner...); got != c.want {
			t.Errorf("%s %s:\n got %s\nwant %s", c.method, c.uri, got, c.want)
		}
	}
	if n := testutil.ToFloat64(r.metrics.requests.WithLabelValues(whatLocation, "304")); n != 3 {
		t.Errorf("%v are counted as not modified", n)
	}
	if f, u := testutil.ToFloat64(r.metrics.lookups.WithLabelValues(found)), testutil.ToFloat64(r.metrics.lookups.WithLabelValues(unknown)); f != 16 || u != 4 {
		t.Errorf("%v found, %v unknown", f, u)
	}
}

// TestAges: without the bus, the last known with its age, for as long as it is
// believed; with a directory that knows nothing yet, nothing.
func TestAges(t *testing.T) {
	r, d, c := setup(t, func(o *Options) { o.MaxAge, o.Public = time.Hour, true })
	headers := []string{"Penstock-Age", "Age", "Warning", "Cache-Control", "Retry-After"}
	for _, x := range []struct {
		since     time.Duration
		connected bool
		want      string
	}{
		{0, true, "307 Penstock-Age=0 Age= Warning= Cache-Control=public, max-age=900 Retry-After="},
		{time.Millisecond, true, `307 Penstock-Age=1 Age=1 Warning=110 - "Response is Stale" Cache-Control=public, max-age=11 Retry-After=`},
		{90 * time.Second, false, `307 Penstock-Age=90 Age=90 Warning=112 - "Disconnected Operation" Cache-Control=public, max-age=100 Retry-After=`},
		{time.Hour, false, `307 Penstock-Age=3600 Age=3600 Warning=112 - "Disconnected Operation" Cache-Control=public, max-age=3610 Retry-After=`},
		{time.Hour + time.Second, false, `503 Penstock-Age=3601 Age= Warning= Cache-Control=no-store Retry-After=5 {"error":"too-old","text":"the bus is away, and what was last known is too old","age":3601}`},
	} {
		d.since, d.connected = x.since, x.connected
		if got := doortest.Read(ask(r, "GET", "/r/ann/x"), headers...); got != x.want {
			t.Errorf("%v:\n got %s\nwant %s", x.since, got, x.want)
		}
	}
	if n := testutil.ToFloat64(r.metrics.stale); n != 4 {
		t.Errorf("%v stale answers", n)
	}
	d.since, d.connected = 0, true
	c.Advance(14*time.Minute + 59*time.Second + 500*time.Millisecond)
	if got := doortest.Read(ask(r, "GET", "/r/ann/x"), "Cache-Control"); got != "307 Cache-Control=no-cache" {
		t.Errorf("half a second before the end of the window: %s", got)
	}
	d.ready = make(chan struct{})
	if got := doortest.Read(ask(r, "GET", "/v1/locations/ann"), headers...); got != `503 Penstock-Age= Age= Warning= Cache-Control=no-store Retry-After=1 {"error":"not-ready","text":"the locations are still being read"}` {
		t.Errorf("before anything is known: %s", got)
	}
	r, _, _ = setup(t, func(o *Options) { o.WindowEnd = nil })
	if got := doortest.Read(ask(r, "GET", "/r/ann/x"), "Cache-Control"); got != "307 Cache-Control=no-cache" {
		t.Errorf("without windows: %s", got)
	}
}

func TestBatches(t *testing.T) {
	r, d, _ := setup(t, func(o *Options) { o.Batch = 4 })
	d.since = 1500 * time.Millisecond
	res := askWith(r, "POST", "/v1/locations", `{"owners":["a/b","nobody"],"tokens":["b64=Ymlu_w0K","ann"]}`)
	if res.Code != http.StatusOK || res.Header().Get("Penstock-Age") != "2" {
		t.Errorf("%d, %v", res.Code, res.Header())
	}
	var got Answers
	ok(t, json.NewDecoder(res.Body).Decode(&got))
	var sites []string
	for _, l := range got.Locations {
		m := l.(map[string]any)
		sites = append(sites, fmt.Sprint(m["owner"], " ", m["token"], " ", m["site"], " ", m["error"], " ", m["age"]))
	}
	if want := []string{
		"a/b <nil> west <nil> 1.5", "nobody <nil> <nil> unknown-owner 1.5", "<nil> b64=Ymlu_w0K east <nil> 1.5", "ann <nil> east <nil> 1.5",
	}; !slices.Equal(sites, want) || got.Age != 1.5 {
		t.Errorf("%q, %v old", sites, got.Age)
	}
	for _, c := range []struct{ body, want string }{
		{`{}`, `200 {"age":1.5,"locations":[]}`},
		{`{"owners":["1","2","3","4","5"]}`, `413 {"error":"too-large","text":"more than 4 owners"}`},
		{`{"owners":["` + strings.Repeat("x", 5*bytesAnOwner) + `"]}`, `413 {"error":"too-large","text":"a body of more than 24672 bytes"}`},
		{`{"owners":["` + strings.Repeat("x", 1025) + `"]}`, `400 {"error":"bad-body","text":"an owner of more than 1024 bytes"}`},
		{`{"tokens":["b64=!"]}`, `400 {"error":"bad-body","text":"token \"b64=!\": not a token of ours"}`},
		{"{\"owners\":[\"\xff\"]}", `400 {"error":"bad-body","text":"not UTF-8; send such owners as tokens"}`},
		{``, `400 {"error":"bad-body","text":"expected {\"owners\":[…],\"tokens\":[…]}: unexpected end of JSON input"}`},
	} {
		if got := doortest.Read(askWith(r, "POST", "/v1/locations", c.body)); got != c.want {
			t.Errorf("%.40s:\n got %s\nwant %s", c.body, got, c.want)
		}
	}
	if got := doortest.Read(ask(r, "GET", "/v1/locations"), "Allow"); got != `405 Allow=POST {"error":"method","text":"allowed: POST"}` {
		t.Error(got)
	}
}

const secret, other = "0123456789abcdef", "fedcba9876543210"

func TestWhoMayComeIn(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*Options)
		headers []string
		want    int
	}{
		{"loopback", func(*Options) {}, nil, 307},
		{"loopback by name", func(*Options) {}, []string{"Host", "localhost"}, 307},
		{"loopback of IPv6", func(*Options) {}, []string{"Host", "[::1]:8090"}, 307},
		{"a page that resolves to loopback", func(*Options) {}, []string{"Host", "evil.example"}, 403},
		{"public", func(o *Options) { o.Public = true }, []string{"Host", "evil.example"}, 307},
		{"public with a token", func(o *Options) { o.Public, o.Tokens = true, []string{secret} }, nil, 307},
		{"no token", func(o *Options) { o.Tokens = []string{secret} }, nil, 401},
		{"another token", func(o *Options) { o.Tokens = []string{secret} }, []string{"Authorization", "Bearer " + other}, 401},
		{"a part of the token", func(o *Options) { o.Tokens = []string{secret} }, []string{"Authorization", "Bearer " + secret[:15]}, 401},
		{"no bearer", func(o *Options) { o.Tokens = []string{secret} }, []string{"Authorization", secret}, 401},
		{"the token", func(o *Options) { o.Tokens = []string{secret} }, []string{"Authorization", "Bearer " + secret, "Host", "x"}, 307},
		{"the second token", func(o *Options) { o.Tokens = []string{other, secret} }, []string{"Authorization", "Bearer " + secret}, 307},
	} {
		r, _, _ := setup(t, c.change)
		res := ask(r, "GET", "/r/ann/x", c.headers...)
		if res.Code != c.want || (c.want == 401) != (res.Header().Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %d", c.name, res.Code)
		}
		if res.Code >= 400 && res.Header().Get("Location") != "" {
			t.Errorf("%s: told %s", c.name, res.Header().Get("Location"))
		}
	}
}

func TestRates(t *testing.T) {
	asked := func(t *testing.T, r *Redirector, want string, headers ...string) {
		t.Helper()
		got := doortest.Read(ask(r, "GET", "/r/ann/x", headers...), "Retry-After")
		if cut := strings.Index(got, ` {"error"`); cut >= 0 {
			got = got[:cut]
		}
		if got != want {
			t.Errorf("%v: %s, expected %s", headers, got, want)
		}
	}
	t.Run("address", func(t *testing.T) {
		r, _, c := setup(t, func(o *Options) {
			o.Rate, o.Burst, o.Trusted = 0.5, 2, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		})
		asked(t, r, "307 Retry-After=")
		asked(t, r, "307 Retry-After=")
		asked(t, r, "429 Retry-After=2")
		asked(t, r, "429 Retry-After=2") // being refused costs nothing
		if n := testutil.ToFloat64(r.metrics.limited.WithLabelValues(door.ByClient)); n != 2 {
			t.Errorf("%v limited", n)
		}
		asked(t, r, "307 Retry-After=", "From", "192.0.2.1:99")
		asked(t, r, "307 Retry-After=", "From", "192.0.2.1:98", "X-Forwarded-For", "1.2.3.4") // not trusted
		asked(t, r, "429 Retry-After=2", "From", "192.0.2.1:97")
		asked(t, r, "307 Retry-After=", "From", "10.0.0.1:1", "X-Forwarded-For", "9.9.9.9, 1.2.3.4,10.1.1.1")
		asked(t, r, "307 Retry-After=", "From", "10.0.0.1:1", "X-Forwarded-For", "8.8.8.8", "X-Forwarded-For", "1.2.3.4:80")
		asked(t, r, "429 Retry-After=2", "From", "1.2.3.4:5")
		asked(t, r, "307 Retry-After=", "From", "10.0.0.1:1", "X-Forwarded-For", "1.2.3.4, junk")
		asked(t, r, "307 Retry-After=", "From", "[2001:db8:1:2::1]:5")
		asked(t, r, "307 Retry-After=", "From", "[2001:db8:1:2:ffff::2]:5")
		asked(t, r, "429 Retry-After=2", "From", "[2001:db8:1:2::3]:5")
		asked(t, r, "307 Retry-After=", "From", "[2001:db8:1:3::1]:5")
		c.Advance(2 * time.Second)
		asked(t, r, "307 Retry-After=")
		asked(t, r, "429 Retry-After=2")
	})
	t.Run("token", func(t *testing.T) {
		r, _, _ := setup(t, func(o *Options) { o.Rate, o.Burst, o.Tokens = 1, 1, []string{secret, other} })
		asked(t, r, "307 Retry-After=", "Authorization", "Bearer "+secret, "From", "192.0.2.1:1")
		asked(t, r, "429 Retry-After=1", "Authorization", "Bearer "+secret, "From", "192.0.2.2:1")
		asked(t, r, "307 Retry-After=", "Authorization", "Bearer "+other, "From", "192.0.2.1:1")
	})
	t.Run("total", func(t *testing.T) {
		r, _, c := setup(t, func(o *Options) { o.TotalRate, o.Rate, o.Burst, o.Batch = 2, 1, 2, 2 })
		asked(t, r, "307 Retry-After=", "From", "192.0.2.1:1")
		asked(t, r, "307 Retry-After=", "From", "192.0.2.2:1")
		asked(t, r, "429 Retry-After=1", "From", "192.0.2.3:1")
		if n := testutil.ToFloat64(r.metrics.limited.WithLabelValues(door.ByTotal)); n != 1 {
			t.Errorf("%v limited by the total", n)
		}
		c.Advance(time.Second)
		asked(t, r, "307 Retry-After=", "From", "192.0.2.3:1") // was not charged before
		asked(t, r, "307 Retry-After=", "From", "192.0.2.3:1")
	})
	t.Run("batch", func(t *testing.T) {
		r, _, _ := setup(t, func(o *Options) { o.Rate, o.Burst = 1, 3 })
		if got := doortest.Read(askWith(r, "POST", "/v1/locations", `{"owners":["1","2","3","4"]}`)); got != `413 {"error":"too-large","text":"more than 3 owners"}` {
			t.Error(got)
		}
		if got := askWith(r, "POST", "/v1/locations", `{"owners":["1","2"]}`).Code; got != http.StatusOK {
			t.Error(got)
		}
		asked(t, r, "429 Retry-After=1")
	})
}
