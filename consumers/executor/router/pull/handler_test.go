package pull

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"penstock/infra/clock"
	"penstock/infra/door"
	"penstock/infra/door/doortest"
	"penstock/infra/shares"
	"penstock/schemas/control"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// table is what web's calls from east to cart are split by.
func table(epoch uint64, east, west float64) shares.Table {
	return shares.Table{From: "web", Epoch: epoch, Rows: []shares.Row{
		{FromSite: "east", To: "cart", Ratios: []shares.Ratio{{Site: "east", Share: east}, {Site: "west", Share: west}}},
	}}
}

// setup is a server that isn't running, with a clock that stands.
func setup(t testing.TB, change func(*Options)) (*Server, *shares.Router, *clock.Manual) {
	t.Helper()
	r, c := shares.New(shares.Options{}), clock.NewManual(t0)
	o := Options{
		Clock: c, Listen: "127.0.0.1:0", Shares: r, Sites: []string{"north"},
		Components: map[string]map[string][]string{
			"cart":  {"east": {"http://10.0.0.1:8080", "http://10.0.0.2:8080"}, "west": {"http://10.1.0.1:8080"}},
			"a/b é": {"east": {"https://x.example/base"}},
		},
	}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	ok(t, err)
	t.Cleanup(s.Close)
	return s, r, c
}

func put(t testing.TB, r *shares.Router, tables ...shares.Table) {
	t.Helper()
	for _, each := range tables {
		_, err := r.Put(context.Background(), each)
		ok(t, err)
	}
}

// ask sends a request to the handler, as a server would.
func ask(s *Server, method, uri string, headers ...string) *httptest.ResponseRecorder {
	return doortest.Ask(s, httptest.NewRequest(method, uri, nil), headers...)
}

const (
	eastServers = `"servers":["http://10.0.0.1:8080","http://10.0.0.2:8080"]`
	westServers = `"servers":["http://10.1.0.1:8080"]`
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	s, r, _ := setup(t, nil)
	writes := table(7, 1, 0)
	writes.From, writes.Rows[0].WritesAt = "app", "north"
	put(t, r, table(412, 0.62, 0.38), writes)
	const known = `{"component":"cart","from":"web","from_site":"east","epoch":412,"known":true,"ratios":[{"site":"east","share":0.62,` + eastServers + `},{"site":"west","share":0.38,` + westServers + `}]}`
	for _, c := range []struct {
		method, uri string
		headers     []string
		want        string
	}{
		{"GET", "/v1/split/cart?from_site=east&from=web", nil, `200 ETag="412" Penstock-Age=0 Cache-Control=private, no-cache ` + known},
		{"HEAD", "/v1/split/cart?from_site=east&from=web", nil, `200 ETag="412" Penstock-Age=0 Cache-Control=private, no-cache`},
		{"GET", "/v1/split/cart?from_site=east&from=web", []string{"If-None-Match", `"412"`}, `304 ETag="412" Penstock-Age=0 Cache-Control=private, no-cache`},
		{"GET", "/v1/split/cart?from_site=east&from=web", []string{"If-None-Match", `"1", W/"412"`}, `304 ETag="412" Penstock-Age=0 Cache-Control=private, no-cache`},
		{"GET", "/v1/split/cart?from_site=east&from=web&wait=1m", []string{"If-None-Match", `"411"`}, `200 ETag="412" Penstock-Age=0 Cache-Control=private, no-cache ` + known},
		{"GET", "/v1/split/cart?from_site=east&from=web&wait=1m", nil, `200 ETag="412" Penstock-Age=0 Cache-Control=private, no-cache ` + known},
		{
			"GET", "/v1/split/cart?from_site=east&from=app", nil, `200 ETag="7" Penstock-Age=0 Cache-Control=private, no-cache ` +
				`{"component":"cart","from":"app","from_site":"east","epoch":7,"known":true,"ratios":[{"site":"east","share":1,` + eastServers + `},{"site":"west","share":0,` + westServers + `},{"site":"north","share":0,"servers":[]}],"writes_at":"north"}`,
		},
		{
			"GET", "/v1/split/cart?from_site=west", nil, `200 ETag="0" Penstock-Age=0 Cache-Control=private, no-cache ` +
				`{"component":"cart","from":"entry","from_site":"west","epoch":0,"known":false,"ratios":[{"site":"west","share":1,` + westServers + `}]}`,
		},
		{
			"GET", "/v1/split/cart?from_site=west&from=web", nil, `200 ETag="0" Penstock-Age=0 Cache-Control=private, no-cache ` + // the table has no row for it
				`{"component":"cart","from":"web","from_site":"west","epoch":0,"known":false,"ratios":[{"site":"west","share":1,` + westServers + `}]}`,
		},
		{
			"GET", "/v1/split/a%2Fb%20%C3%A9?from_site=north", nil, `200 ETag="0" Penstock-Age=0 Cache-Control=private, no-cache ` +
				`{"component":"a/b é","from":"entry","from_site":"north","epoch":0,"known":false,"ratios":[{"site":"north","share":1,"servers":[]}]}`,
		},
		{
			"GET", "/v1/split/basket?from_site=east", nil,
			`404 ETag= Penstock-Age= Cache-Control=no-store {"error":"unknown-component","text":"no component of that name is configured","components":["a/b é","cart"]}`,
		},
		{
			"GET", "/v1/split/cart?from_site=moon", nil,
			`404 ETag= Penstock-Age= Cache-Control=no-store {"error":"unknown-site","text":"from_site: no site of that name is configured","sites":["east","north","west"]}`,
		},
		{
			"GET", "/v1/split/cart", nil,
			`400 ETag= Penstock-Age= Cache-Control=no-store {"error":"bad-query","text":"from_site is needed: the site that calls come from","sites":["east","north","west"]}`,
		},
		{"GET", "/v1/split/cart?from_site=east&wiat=3s", nil, `400 ETag= Penstock-Age= Cache-Control=no-store {"error":"bad-query","text":"\"wiat\": expected from_site, from or wait"}`},
		{"GET", "/v1/split/cart?from_site=east&from_site=west", nil, `400 ETag= Penstock-Age= Cache-Control=no-store {"error":"bad-query","text":"\"from_site\": expected once"}`},
		{"GET", "/v1/split/cart?from_site=east&wait=30", nil, `400 ETag= Penstock-Age= Cache-Control=no-store {"error":"bad-query","text":"wait: got \"30\", expected a time such as 30s, at most 1m0s"}`},
		{"GET", "/v1/split/cart?from_site=east&wait=-1s", nil, `400 ETag= Penstock-Age= Cache-Control=no-store {"error":"bad-query","text":"wait: got \"-1s\", expected a time such as 30s, at most 1m0s"}`},
		{"GET", "/v1/split/cart?from_site=east&from=", nil, `400 ETag= Penstock-Age= Cache-Control=no-store {"error":"bad-query","text":"from: expected the name of a component, of 1 to 1024 bytes"}`},
		{"GET", "/v1/split/cart?from_site=east&from=%FF", nil, `400 ETag= Penstock-Age= Cache-Control=no-store {"error":"bad-query","text":"from: expected the name of a component, of 1 to 1024 bytes"}`},
		{"GET", "/v1/split/", nil, `404 ETag= Penstock-Age= Cache-Control=no-store {"error":"bad-path","text":"ask for /v1/split/COMPONENT?from_site=SITE"}`},
		{"GET", "/v1/split/cart/x?from_site=east", nil, `404 ETag= Penstock-Age= Cache-Control=no-store {"error":"bad-path","text":"ask for /v1/split/COMPONENT?from_site=SITE"}`},
		{"GET", "/", nil, `404 ETag= Penstock-Age= Cache-Control=no-store {"error":"bad-path","text":"ask for /v1/split/COMPONENT?from_site=SITE"}`},
		{"POST", "/v1/split/cart?from_site=east", nil, `405 ETag= Penstock-Age= Cache-Control=no-store {"error":"method","text":"allowed: GET, HEAD"}`},
	} {
		w := ask(s, c.method, c.uri, c.headers...)
		if got := doortest.Read(w, "ETag", "Penstock-Age", "Cache-Control"); got != c.want {
			t.Errorf("%s %s %v:\n got %s\nwant %s", c.method, c.uri, c.headers, got, c.want)
		}
		if w.Code == http.StatusOK && c.method == http.MethodGet {
			if _, err := control.DecodeSplitAnswer(w.Body.Bytes()); err != nil {
				t.Errorf("%s: %v", c.uri, err)
			}
		}
		if (w.Code == http.StatusOK || w.Code == http.StatusNotModified) != (w.Header().Get(control.HeaderSplitServers) != "") {
			t.Errorf("%s: digest of servers %q", c.uri, w.Header().Get(control.HeaderSplitServers))
		}
	}
}

// TestConfiguredWrites: writes have their site where no table says it, with a tag that
// is another when the site is; what a table says itself counts before.
func TestConfiguredWrites(t *testing.T) {
	t.Parallel()
	at := "west"
	start := func() (*Server, *shares.Router) {
		s, r, _ := setup(t, func(o *Options) { o.WritesAt = map[string]string{"cart": at} })
		return s, r
	}
	s, r := start()
	named := table(8, 1, 0)
	named.From, named.Rows[0].WritesAt = "app", "north"
	put(t, r, table(412, 1, 0), named)
	tags := map[string]bool{}
	for uri, want := range map[string]string{
		"cart?from_site=east":           `"epoch":0,"known":false,"ratios":[{"site":"east","share":1,` + eastServers + `},{"site":"west","share":0,` + westServers + `}],"writes_at":"west"}`,
		"cart?from_site=west":           `"epoch":0,"known":false,"ratios":[{"site":"west","share":1,` + westServers + `}],"writes_at":"west"}`,
		"cart?from_site=east&from=web":  `"epoch":412,"known":true,"ratios":[{"site":"east","share":1,` + eastServers + `},{"site":"west","share":0,` + westServers + `}],"writes_at":"west"}`,
		"cart?from_site=east&from=app":  `"epoch":8,"known":true,"ratios":[{"site":"east","share":1,` + eastServers + `},{"site":"west","share":0,` + westServers + `},{"site":"north","share":0,"servers":[]}],"writes_at":"north"}`,
		"a%2Fb%20%C3%A9?from_site=east": `"epoch":0,"known":false,"ratios":[{"site":"east","share":1,"servers":["https://x.example/base"]}]}`,
	} {
		w := ask(s, "GET", "/v1/split/"+uri)
		if got := w.Body.String(); !strings.HasSuffix(got, want+"\n") {
			t.Errorf("%s:\n got %s\nwant …%s", uri, got, want)
		}
		if _, err := control.DecodeSplitAnswer(w.Body.Bytes()); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
		if uri == "cart?from_site=east" {
			tags[w.Header().Get("ETag")] = true
		}
	}
	at = "north"
	s, _ = start()
	tags[ask(s, "GET", "/v1/split/cart?from_site=east").Header().Get("ETag")] = true
	if len(tags) != 2 || tags[`"0"`] {
		t.Errorf("tags %v", tags)
	}
}

// TestTags: a configured default has a tag of its own, and other servers another
// digest, of which the epoch says nothing.
func TestTags(t *testing.T) {
	t.Parallel()
	s, r, _ := setup(t, nil)
	const uri = "/v1/split/cart?from_site=east&from=web"
	seen := map[string]bool{}
	for _, each := range []shares.Table{table(0, 0.5, 0.5), table(0, 3, 1), table(0, 0, 1)} {
		put(t, r, each)
		tag := ask(s, "GET", uri).Header().Get("ETag")
		if seen[tag] || !strings.HasPrefix(tag, `"0-`) || !strings.HasSuffix(tag, `"`) {
			t.Errorf("%v has the tag %s", each.Rows[0].Ratios, tag)
		}
		seen[tag] = true
	}
	put(t, r, table(0, 3, 1)) // relative shares
	if got := doortest.Read(ask(s, "GET", uri)); !strings.Contains(got, `"share":0.75`) || !strings.Contains(got, `"share":0.25`) {
		t.Error(got)
	}
	other, r2, _ := setup(t, func(o *Options) { o.Components["cart"]["west"] = []string{"http://10.1.0.2:8080"} })
	put(t, r, table(5, 0.5, 0.5))
	put(t, r2, table(5, 0.5, 0.5))
	a, b := ask(s, "GET", uri), ask(other, "GET", uri, "If-None-Match", `"5"`)
	if a.Code != http.StatusOK || b.Code != http.StatusNotModified || a.Header().Get(control.HeaderSplitServers) == b.Header().Get(control.HeaderSplitServers) {
		t.Errorf("%d %v and %d %v", a.Code, a.Header(), b.Code, b.Header())
	}
}

// TestServersAreAskedFor: who says which servers it knows is told of others, though
// the epoch is the same.
func TestServersAreAskedFor(t *testing.T) {
	t.Parallel()
	s, r, _ := setup(t, nil)
	put(t, r, table(5, 0.5, 0.5))
	const uri = "/v1/split/cart?from_site=east&from=web"
	digest := ask(s, "GET", uri).Header().Get(control.HeaderSplitServers)
	for name, c := range map[string]struct {
		tag, digest string
		want        int
	}{
		"both":          {`"5"`, digest, 304},
		"no servers":    {`"5"`, "", 304},
		"other servers": {`"5"`, "0", 200},
		"another epoch": {`"4"`, digest, 200},
	} {
		if w := ask(s, "GET", uri+"&wait=0s", "If-None-Match", c.tag, control.HeaderSplitServers, c.digest); w.Code != c.want || w.Header().Get(control.HeaderSplitServers) != digest {
			t.Errorf("%s: %s", name, doortest.Read(w, control.HeaderSplitServers))
		}
	}
	if w := ask(s, "GET", uri+"&wait=1m", "If-None-Match", `"5"`, control.HeaderSplitServers, "0"); w.Code != 200 { // it does not wait
		t.Errorf("other servers, waiting: %s", doortest.Read(w))
	}
}

// TestAges: what was last known is told on without the bus, and says so.
func TestAges(t *testing.T) {
	t.Parallel()
	connected, ready := false, false
	s, r, c := setup(t, func(o *Options) {
		o.Connected, o.Ready = func() bool { return connected }, func() bool { return ready }
	})
	put(t, r, table(3, 1, 0))
	expect := func(what, want string) {
		t.Helper()
		got := doortest.Read(ask(s, "GET", "/v1/split/cart?from_site=east&from=web", "If-None-Match", `"3"`), "Penstock-Age", "Age", "Warning", "Retry-After")
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, want)
		}
	}
	expect("before the bus was read", `503 Penstock-Age= Age= Warning= Retry-After=1 {"error":"not-ready","text":"what is in force is still being read"}`)
	connected, ready = true, true
	c.Advance(time.Hour)
	expect("with the bus", "304 Penstock-Age=0 Age= Warning= Retry-After=")
	connected = false
	c.Advance(1500 * time.Millisecond)
	expect("without", `304 Penstock-Age=2 Age=2 Warning=112 - "Disconnected Operation" Retry-After=`)
	c.Advance(time.Hour)
	expect("for an hour", `304 Penstock-Age=3602 Age=3602 Warning=112 - "Disconnected Operation" Retry-After=`)
	connected = true
	expect("again", "304 Penstock-Age=0 Age= Warning= Retry-After=")
	if n := testutil.ToFloat64(s.metrics.stale); n != 2 {
		t.Errorf("%v stale answers", n)
	}
}

func TestWhoMayComeIn(t *testing.T) {
	t.Parallel()
	const secret, other = "a secret of some length", "another one of length"
	for name, c := range map[string]struct {
		change  func(*Options)
		headers []string
		want    int
	}{
		"loopback":          {nil, nil, 200},
		"a page's own name": {nil, []string{"Host", "evil.example"}, 403},
		"no token":          {func(o *Options) { o.Tokens = []string{secret} }, nil, 401},
		"the token":         {func(o *Options) { o.Tokens = []string{secret, other} }, []string{"Host", "x", "Authorization", "Bearer " + other}, 200},
		"another":           {func(o *Options) { o.Tokens = []string{secret} }, []string{"Authorization", "Bearer " + other}, 401},
		"public":            {func(o *Options) { o.Public, o.Listen = true, "0.0.0.0:0" }, []string{"Host", "x"}, 200},
	} {
		s, _, _ := setup(t, c.change)
		w := ask(s, "GET", "/v1/split/cart?from_site=east", c.headers...)
		if w.Code != c.want || (c.want == 401) != (w.Header().Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	s, _, c := setup(t, func(o *Options) {
		o.Rate, o.Burst, o.Trusted = 0.5, 2, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	})
	expect := func(want string, headers ...string) {
		t.Helper()
		w := ask(s, "GET", "/v1/split/cart?from_site=east", headers...)
		if got := strconv.Itoa(w.Code) + " " + w.Header().Get("Retry-After"); got != want {
			t.Errorf("%v: %s, expected %s", headers, got, want)
		}
	}
	expect("200 ")
	expect("200 ")
	expect("429 2")
	expect("200 ", "From", "192.0.2.1:99")
	expect("200 ", "From", "10.0.0.1:99", "X-Forwarded-For", "203.0.113.9")
	c.Advance(2 * time.Second)
	expect("200 ")
	if n := testutil.ToFloat64(s.metrics.limited.WithLabelValues(door.ByClient)); n != 1 {
		t.Errorf("%v limited", n)
	}
}

// FuzzQuestion: whatever is asked for is answered, with an answer that can be read or
// a failure that says what it is.
func FuzzQuestion(f *testing.F) {
	for _, uri := range []string{
		"cart?from_site=east&from=web", "cart?from_site=east&from=%FF", "a%2Fb%20%C3%A9?from_site=north", "cart?from_site=east&wait=0s", "?", "%", "cart?%", "cart?from_site=east;x",
	} {
		path, query, _ := strings.Cut(uri, "?")
		f.Add(path, query, `"1"`)
	}
	s, r, _ := setup(f, nil)
	put(f, r, table(1, 0.62, 0.38))
	f.Fuzz(func(t *testing.T, path, query, tag string) {
		if values, err := url.ParseQuery(query); err != nil || values.Get("wait") != "" {
			query = strings.ReplaceAll(query, "wait", "wiat") // nobody would end it
		}
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		req.URL = &url.URL{Path: control.SplitPath + path, RawPath: control.SplitPath + path, RawQuery: query}
		req.Host, req.RemoteAddr = "127.0.0.1", "127.0.0.1:1"
		req.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		var failure Failure
		switch w.Code {
		case http.StatusOK:
			if _, err := control.DecodeSplitAnswer(w.Body.Bytes()); err != nil {
				t.Fatalf("%s: %v", w.Body, err)
			}
		case http.StatusNotModified:
		case http.StatusBadRequest, http.StatusNotFound:
			if err := json.Unmarshal(w.Body.Bytes(), &failure); err != nil || failure.Error == "" || failure.Text == "" {
				t.Fatalf("%d %s: %v", w.Code, w.Body, err)
			}
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	})
}
