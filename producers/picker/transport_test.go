package picker

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"penstock/schemas/control"
)

// noted is what a server saw.
type noted struct {
	mu  sync.Mutex
	all []string
}

func (n *noted) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.all
	n.all = nil
	return all
}

// backend is a server that says its name and notes what it is asked.
func backend(t *testing.T, name string, seen *noted) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		seen.mu.Lock()
		seen.all = append(seen.all, strings.Join([]string{name, r.Method, r.Host, r.RequestURI, r.Header.Get(headerComponent), r.Header.Get(headerTo), string(body)}, " "))
		seen.mu.Unlock()
		if r.URL.Query().Get("broken") != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestTransport(t *testing.T) {
	t.Parallel()
	var seen noted
	east, west := backend(t, "east", &seen), backend(t, "west", &seen)
	gone := backend(t, "gone", &seen)
	gone.Close()
	a := told(1, 1, 0)
	a.WritesAt = "west"
	a.Ratios[0].Servers, a.Ratios[1].Servers = []string{east.URL + "/base/"}, []string{west.URL}
	p, cart, c := still(t, a)
	client := &http.Client{Transport: p.Transport(&http.Transport{})}
	t.Cleanup(client.CloseIdleConnections)
	do := func(ctx context.Context, method, url, body string) (string, error) {
		var reader io.Reader
		if body != "" {
			reader = strings.NewReader(body)
		}
		req, err := http.NewRequestWithContext(ctx, method, url, reader)
		ok(t, err)
		req.Header.Set(headerComponent, "somebody")
		res, err := client.Do(req)
		if req.Header.Get(headerComponent) != "somebody" || req.URL.String() != url {
			t.Errorf("the request of the caller was changed: %v", req)
		}
		if err != nil {
			return "", err
		}
		b, err := io.ReadAll(res.Body)
		ok(t, err)
		ok(t, res.Body.Close())
		return string(b), nil
	}
	for _, step := range []struct{ method, url, body, want string }{
		{"GET", "http://cart/a%2Fb//c?d=e", "", "east GET cart /base/a%2Fb//c?d=e web cart "},
		{"GET", "http://cart", "", "east GET cart /base web cart "},
		{"POST", "http://cart/x", "body", "west POST cart /x web cart body"},
		{"GET", west.URL + "/y", "", "west GET " + strings.TrimPrefix(west.URL, "http://") + " /y somebody  "}, // no component
	} {
		_, err := do(t.Context(), step.method, step.url, step.body)
		ok(t, err)
		if got := seen.take(); !slices.Equal(got, []string{step.want}) {
			t.Errorf("%s %s: %q, want %q", step.method, step.url, got, step.want)
		}
	}
	if _, err := do(t.Context(), "POST", "http://search/x", "body"); !errors.Is(err, ErrNoServer) {
		t.Errorf("no server: %v", err)
	}
	// One of two where nothing listens: every request is answered, bodies too.
	a = told(2, 1, 0)
	a.Ratios[0].Servers = []string{gone.URL, east.URL}
	ok(t, cart.apply(a, false))
	for range 4 {
		got, err := do(t.Context(), "POST", "http://cart/x", "body")
		ok(t, err)
		if got != "east" {
			t.Errorf("answered by %q", got)
		}
		c.Advance(p.o.MaxOut)
	}
	for _, got := range seen.take() {
		if got != "east POST cart /x web cart body" {
			t.Errorf("seen %q", got)
		}
	}
	// A site where nothing listens: the other one answers.
	a = told(3, 1, 1e-9)
	a.Ratios[0].Servers, a.Ratios[1].Servers = []string{gone.URL}, []string{west.URL}
	ok(t, cart.apply(a, false))
	if got, err := do(t.Context(), "GET", "http://cart/x", ""); got != "west" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	// Nowhere does anything listen.
	a = told(4, 1, 0)
	a.Ratios[0].Servers, a.Ratios[1].Servers = []string{gone.URL}, nil
	ok(t, cart.apply(a, false))
	if _, err := do(t.Context(), "GET", "http://cart/x", ""); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}

// TestTransportMarks servers that say that nobody is behind them, and none whose
// client went away.
func TestTransportMarks(t *testing.T) {
	t.Parallel()
	var seen noted
	one, two := backend(t, "one", &seen), backend(t, "two", &seen)
	a := told(1, 1, 0)
	a.Ratios[0].Servers, a.Ratios[1].Servers = []string{one.URL, two.URL}, nil
	p, cart, _ := still(t, a)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	transport := p.Transport(base)
	get := func(ctx context.Context, url string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		ok(t, err)
		res, err := transport.RoundTrip(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			ok(t, res.Body.Close())
		}
		return err
	}
	left, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if err := get(left, "http://cart/x"); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if s := cart.shown(); s.Out != 0 {
		t.Errorf("%d are out because clients left", s.Out)
	}
	for range 5 { // three of them at one
		ok(t, get(t.Context(), "http://cart/x?broken=1"))
	}
	if s := cart.shown(); s.Out != 1 {
		t.Errorf("%d are out", s.Out)
	}
	seen.take()
	// With a key, all at the same.
	ctx := WithKey(t.Context(), "session")
	for range 4 {
		ok(t, get(ctx, "http://cart/x"))
	}
	all := seen.take()
	if slices.Sort(all); len(all) != 4 || len(slices.Compact(all)) != 1 {
		t.Errorf("a session was at %q", all)
	}
}

// TestNamesOfComponents: a plain host of http is one.
func TestNamesOfComponents(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://cart/x": "cart", "http://cart": "cart", "https://cart/": "", "http://cart:80/": "", "http://cart.internal/": "",
		"http://localhost/": "", "http://[::1]/": "", "http://127.0.0.1/": "", "/x": "", "http://user@cart/": "cart",
	} {
		u, err := url.Parse(text)
		ok(t, err)
		if name, ours := component(u); name != want || ours != (want != "") {
			t.Errorf("%s: %q, %v", text, name, ours)
		}
	}
}

// closing notes that a body was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// TestBodiesAreClosed whatever comes of a request, as a RoundTripper has to.
func TestBodiesAreClosed(t *testing.T) {
	t.Parallel()
	p, cart, _ := still(t)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	for _, servers := range [][]string{nil, {"http://127.0.0.1:1"}, {"http://127.0.0.1:1", "http://127.0.0.1:2"}} {
		cart.p.o.Fallback = nil
		a := told(0, 1, 0)
		a.Ratios = []control.SplitSite{{Site: "east", Share: 1, Servers: servers}}
		ok(t, cart.apply(a, true))
		body := &closing{Reader: strings.NewReader("x")}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://cart/", body)
		ok(t, err)
		res, err := p.Transport(base).RoundTrip(req)
		if err == nil {
			ok(t, res.Body.Close())
			t.Error("an answer from nowhere")
		}
		if !body.closed {
			t.Errorf("%v: the body stays open after %v", servers, err)
		}
	}
}
