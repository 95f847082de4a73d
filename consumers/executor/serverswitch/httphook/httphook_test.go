package httphook_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"penstock/consumers/executor/serverswitch"
	"penstock/consumers/executor/serverswitch/httphook"
	"penstock/consumers/executor/serverswitch/switchtest"
	"penstock/infra/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// provider is who turns servers on and off when it is called.
type provider struct {
	t    *testing.T
	http *httptest.Server

	mu     sync.Mutex
	on     map[string]bool
	down   bool
	first  []int // status codes of the next answers
	after  string
	bodies []string
	keys   []string
	tokens []string
	status string // the whole answer about a server, if it isn't empty
}

func newProvider(t *testing.T, on ...string) *provider {
	t.Helper()
	p := &provider{t: t, on: map[string]bool{}}
	for _, name := range on {
		p.on[name] = true
	}
	p.http = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.http.Close)
	return p
}

func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		panic(http.ErrAbortHandler)
	}
	p.tokens = append(p.tokens, r.Header.Get("Authorization"))
	if r.Method == http.MethodGet {
		if p.status != "" {
			_, _ = io.WriteString(w, p.status)
			return
		}
		_, _ = fmt.Fprintf(w, `{"power":%q}`, map[bool]string{true: "on", false: "off"}[p.on[r.URL.Query().Get("server")]])
		return
	}
	b, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Type") != "application/json" {
		p.t.Errorf("%v, %v", err, r.Header)
	}
	p.bodies, p.keys = append(p.bodies, string(b)), append(p.keys, r.Header.Get("Idempotency-Key"))
	if len(p.first) > 0 {
		code := p.first[0]
		p.first = p.first[1:]
		if p.after != "" {
			w.Header().Set("Retry-After", p.after)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "no\nroom")
		return
	}
	var c struct{ Action, Server string }
	if err := json.Unmarshal(b, &c); err != nil {
		p.t.Error(err)
	}
	p.on[c.Server] = c.Action == "on"
	w.WriteHeader(http.StatusAccepted)
}

func (p *provider) backend(t *testing.T, edit func(o *httphook.Options)) *httphook.Backend {
	t.Helper()
	o := httphook.Options{URL: p.http.URL + "/switch", StatusURL: p.http.URL + "/status?server={server}&site={site}&zone={zone}"}
	if edit != nil {
		edit(&o)
	}
	b, err := httphook.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSuite against a real server, with and without a status.
func TestSuite(t *testing.T) {
	t.Parallel()
	for _, sees := range []bool{true, false} {
		t.Run(fmt.Sprint(sees), func(t *testing.T) {
			t.Parallel()
			switchtest.Run(t, func(t *testing.T) switchtest.World {
				p := newProvider(t, "a&b", "b c")
				return switchtest.World{
					Sees: sees,
					Backend: p.backend(t, func(o *httphook.Options) {
						o.Tries = 1
						if !sees {
							o.StatusURL = ""
						}
					}),
					Servers: [2]serverswitch.Server{{Name: "a&b", Site: "east"}, {Name: "b c", Site: "east"}},
					On: func(server string) bool {
						p.mu.Lock()
						defer p.mu.Unlock()
						return p.on[server]
					},
					Cut: func() func() {
						p.mu.Lock()
						defer p.mu.Unlock()
						p.down = true
						return func() { p.mu.Lock(); defer p.mu.Unlock(); p.down = false }
					},
				}
			})
		})
	}
}

// TestWords: what is sent, with a token that is read again, and one key for all tries.
func TestWords(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("s-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.first = []int{503, 429}
	at := clock.NewManual(time.Unix(0, 0))
	b := p.backend(t, func(o *httphook.Options) { o.TokenFile, o.Clock = token, at })
	done := make(chan error, 1)
	order := serverswitch.Order{
		On: true, Epoch: 412, Key: "east/10.0.0.7:80/on/17",
		Server: serverswitch.Server{Name: "10.0.0.7:80", Site: "east", Zone: "z", URL: "http://10.0.0.7:80"},
	}
	go func() { done <- b.Switch(t.Context(), order) }()
	for i := range 2 {
		if err := at.Await(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(token, []byte(fmt.Sprint("s-", i+2)), 0o600); err != nil {
			t.Fatal(err)
		}
		at.Advance(time.Second)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	const body = `{"version":1,"action":"on","site":"east","server":"10.0.0.7:80","zone":"z","url":"http://10.0.0.7:80","epoch":412}`
	if !slices.Equal(p.bodies, []string{body, body, body}) || !slices.Equal(p.tokens, []string{"Bearer s-1", "Bearer s-2", "Bearer s-3"}) {
		t.Errorf("%q, %q", p.bodies, p.tokens)
	}
	key := `"east/10.0.0.7:80/on/17"`
	if !slices.Equal(p.keys, []string{key, key, key}) {
		t.Errorf("%q", p.keys)
	}
}

// TestFails: what is final, what is tried again, and how long.
func TestFails(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		codes []int
		after string
		pause time.Duration // that has to pass before each further try
		sent  int
		err   string
	}{
		"refused":     {codes: []int{403}, sent: 1, err: "HTTP hook: try 1: answered 403 Forbidden: no room"},
		"redirected":  {codes: []int{307}, sent: 1, err: "answered 307"},
		"overloaded":  {codes: []int{500, 502, 503}, pause: time.Second, sent: 3, err: "try 3: answered 503"},
		"later":       {codes: []int{429, 200}, after: "7", pause: 7 * time.Second, sent: 2},
		"some day":    {codes: []int{408, 425}, after: "Wed, 21 Oct 2026 07:28:00 GMT", pause: time.Second, sent: 3},
		"never again": {codes: []int{410}, after: "1", sent: 1, err: "410"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			p.first, p.after = x.codes, x.after
			at := clock.NewManual(time.Unix(0, 0))
			b := p.backend(t, func(o *httphook.Options) { o.Clock = at })
			done := make(chan error, 1)
			go func() { done <- b.Switch(t.Context(), serverswitch.Order{Key: "k"}) }()
			for range x.sent - 1 {
				if err := at.Await(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				at.Advance(x.pause)
			}
			err := <-done
			if (err == nil) != (x.err == "") || err != nil && (!errors.Is(err, httphook.ErrFailed) || !strings.Contains(err.Error(), x.err)) {
				t.Errorf("%v", err)
			}
			if len(p.bodies) != x.sent {
				t.Errorf("sent %d times", len(p.bodies))
			}
		})
	}
}

// TestHangs: a call has its time.
func TestHangs(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-free }))
	defer s.Close()
	defer close(free)
	b, err := httphook.New(httphook.Options{URL: s.URL, Timeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Switch(t.Context(), serverswitch.Order{}); !errors.Is(err, httphook.ErrFailed) || !strings.Contains(err.Error(), "no answer in 20ms") {
		t.Errorf("%v", err)
	}
}

// TestStatus that says something else, and options that can't work.
func TestStatus(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	b := p.backend(t, func(o *httphook.Options) { o.Tries = 1 })
	for answer, fails := range map[string]bool{`{"power":"booting"}`: false, `{}`: false, "on": true} {
		p.status = answer
		if got, err := b.Observe(t.Context(), serverswitch.Server{}); got != serverswitch.Unseen || (err != nil) != fails {
			t.Errorf("%s: %v, %v", answer, got, err)
		}
	}
	b = p.backend(t, func(o *httphook.Options) { o.Tries, o.TokenFile = 1, filepath.Join(t.TempDir(), "none") })
	if err := b.Switch(t.Context(), serverswitch.Order{}); !errors.Is(err, httphook.ErrFailed) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	for _, o := range []httphook.Options{{}, {URL: "ftp://x"}, {URL: "http://x", StatusURL: "x"}, {URL: "http://x", Tries: -1}} {
		if _, err := httphook.New(o); !errors.Is(err, httphook.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
