package pull

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"penstock/infra/clock"
	"penstock/infra/door"
	"penstock/infra/shares"
	"penstock/schemas/control"
)

func probe() shares.Probe {
	return shares.Probe{FromSite: "east", To: "cart", Site: "west", Share: 0.1}
}

// serving runs a server until stop, or the end of the test.
func serving(t testing.TB, s *Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	done := false
	stop = func() {
		if !done {
			done = true
			cancel()
			ok(t, <-ended)
		}
	}
	t.Cleanup(stop)
	return stop
}

// get asks over the network.
func get(t *testing.T, client *http.Client, s *Server, query, tag string) (status int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+"/v1/split/cart?from_site=east&from=web"+query, nil)
	ok(t, err)
	if tag != "" {
		req.Header.Set("If-None-Match", tag)
	}
	res, err := client.Do(req)
	ok(t, err)
	b, err := io.ReadAll(res.Body)
	ok(t, err)
	ok(t, res.Body.Close())
	return res.StatusCode, res.Header, string(b)
}

// system is a server with the machine's clock.
func system(t *testing.T) (*Server, *shares.Router, *http.Client) {
	t.Helper()
	s, r, _ := setup(t, func(o *Options) { o.Clock = clock.System() })
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return s, r, client
}

// TestOverTheNetwork: a change reaches a client that waits, over a real server, and
// a drain lets none wait longer.
func TestOverTheNetwork(t *testing.T) {
	t.Parallel()
	s, r, client := system(t)
	stop := serving(t, s)
	put(t, r, table(1, 1, 0))
	if status, h, body := get(t, client, s, "", ""); status != http.StatusOK || h.Get("ETag") != `"1"` || h.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s", status, h, body)
	}
	type result struct {
		status int
		body   string
	}
	results := make(chan result, 1)
	wait := func(tag string) {
		go func() {
			status, _, body := get(t, client, s, "&wait=60s", tag)
			results <- result{status, body}
		}()
		for s.waiting.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	wait(`"1"`)
	put(t, r, table(2, 0.5, 0.5))
	if got := <-results; got.status != http.StatusOK || !strings.Contains(got.body, `"epoch":2`) {
		t.Errorf("%+v", got)
	} else if _, err := control.DecodeSplitAnswer([]byte(got.body)); err != nil {
		t.Error(err)
	}
	wait(`"2"`)
	began := time.Now()
	stop()
	if got := <-results; got.status != http.StatusNotModified {
		t.Errorf("at the end: %+v", got)
	}
	if took := time.Since(began); took > 30*time.Second { // It would have waited for 60.
		t.Errorf("the end took %v", took)
	}
	if err := s.Run(t.Context()); !errors.Is(err, door.ErrClosed) {
		t.Errorf("a second run: %v", err)
	}
}

// TestWaitsLongerThanReads: the limit for reading a request isn't one for waiting,
// and a client that leaves is seen.
func TestWaitsLongerThanReads(t *testing.T) {
	t.Parallel()
	s, r, client := system(t)
	s.server.HTTP.ReadTimeout = time.Second // Less and a busy machine reads too slowly.
	serving(t, s)
	put(t, r, table(1, 1, 0))
	for range 2 { // over one connection
		if status, h, _ := get(t, client, s, "&wait=1300ms", `"1"`); status != http.StatusNotModified || h.Get("ETag") != `"1"` {
			t.Errorf("%d %v", status, h)
		}
	}
	if n := testutil.ToFloat64(s.metrics.waits.WithLabelValues(endTime)); n != 2 {
		t.Errorf("%v waited to the end", n)
	}
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
	ok(t, err)
	_, err = io.WriteString(c, "GET /v1/split/cart?from_site=east&from=web&wait=60s HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: \"1\"\r\n\r\n")
	ok(t, err)
	for s.waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	ok(t, c.Close())
	for s.waiting.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestLimits of headers and of those who send none.
func TestLimits(t *testing.T) {
	t.Parallel()
	s, _, _ := system(t)
	serving(t, s)
	short, _, _ := system(t)
	short.server.HTTP.ReadHeaderTimeout = 100 * time.Millisecond
	serving(t, short)
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("x", 2*door.MaxHeader) + "\r\n\r\n": "HTTP/1.1 431",
		"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n":                                                         "",
		"GET /v1/split/cart HTTP/1.1\r\n\r\n":                                                           "HTTP/1.1 400",
		"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n":                            "HTTP/1.1 404",
	} {
		at := s
		if want == "" { // The header never ends, for which only this one doesn't wait.
			at = short
		}
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", at.Addr())
		ok(t, err)
		ok(t, c.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.WriteString(c, text)
		ok(t, err)
		b, err := io.ReadAll(c) // it may be reset under what was sent beyond the limit
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.40q: the connection stays", text)
		}
		if !strings.HasPrefix(string(b), want) {
			t.Errorf("%.40q: %.40q, expected %q", text, b, want)
		}
		ok(t, c.Close())
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	r := shares.New(shares.Options{})
	some := map[string]map[string][]string{"cart": {"east": {"http://x"}}}
	for name, c := range map[string]struct {
		o    Options
		want error
	}{
		"no shares":       {Options{Components: some}, ErrOptions},
		"no components":   {Options{Shares: r}, ErrOptions},
		"no port":         {Options{Shares: r, Components: some, Listen: "127.0.0.1"}, ErrOptions},
		"a negative rate": {Options{Shares: r, Components: some, Rate: -1}, ErrOptions},
		"negative wait":   {Options{Shares: r, Components: some, Waiting: -1}, ErrOptions},
		"everywhere":      {Options{Shares: r, Components: some, Listen: ":0"}, door.ErrToken},
		"an empty token":  {Options{Shares: r, Components: some, Tokens: []string{""}}, ErrOptions},
		"a nameless":      {Options{Shares: r, Components: map[string]map[string][]string{"": nil}}, ErrOptions},
		"a nameless site": {Options{Shares: r, Components: map[string]map[string][]string{"a": {"": nil}}}, ErrOptions},
		"no scheme":       {Options{Shares: r, Components: map[string]map[string][]string{"a": {"b": {"x:80"}}}}, ErrOptions},
		"a script":        {Options{Shares: r, Components: map[string]map[string][]string{"a": {"b": {"javascript:x"}}}}, ErrOptions},
		"writes of none":  {Options{Shares: r, Components: some, WritesAt: map[string]string{"basket": "east"}}, ErrOptions},
		"writes nowhere":  {Options{Shares: r, Components: some, WritesAt: map[string]string{"cart": ""}}, ErrOptions},
		"a password":      {Options{Shares: r, Components: map[string]map[string][]string{"a": {"b": {"http://u:p@x"}}}}, ErrOptions},
	} {
		if s, err := New(c.o); !errors.Is(err, c.want) || s != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	registry := prometheus.NewRegistry()
	s, err := New(Options{Shares: r, Components: some, Listen: "[::1]:0", Registerer: registry})
	ok(t, err)
	if _, err := New(Options{Shares: r, Components: some, Listen: s.Addr()}); err == nil || errors.Is(err, ErrOptions) {
		t.Errorf("an address in use: %v", err)
	}
	if _, err := New(Options{Shares: r, Components: some, Listen: "127.0.0.1:0", Registerer: registry}); err == nil {
		t.Error("metrics twice")
	}
	s.Close()
	s.Close()
	if err := s.Run(t.Context()); !errors.Is(err, door.ErrClosed) {
		t.Errorf("run after close: %v", err)
	}
}

// BenchmarkAnswer makes an answer of two sites.
func BenchmarkAnswer(b *testing.B) {
	s, _, _ := setup(b, nil)
	t := table(1, 0.5, 0.5)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.answer(shares.Link{From: "web", FromSite: "east", To: "cart"}, t, true); err != nil {
			b.Fatal(err)
		}
	}
}
