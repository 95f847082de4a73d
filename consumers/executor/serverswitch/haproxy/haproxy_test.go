package haproxy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"penstock/consumers/executor"
	"penstock/consumers/executor/haproxyapi"
	"penstock/consumers/executor/serverswitch"
	"penstock/consumers/executor/serverswitch/haproxy"
	"penstock/consumers/executor/serverswitch/switchtest"
	"penstock/infra/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// settings are HAProxy's; requests say in a header which server is to have them.
const settings = `global
  stats socket %[2]s/api mode 600 level admin
  stats socket %[2]s/low mode 600 level operator
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option idle-close-on-response
frontend in
  bind %[1]s
  use_backend sticky if { path_beg /sticky }
  default_backend web
backend web
  use-server one if { hdr(x-server) a }
  use-server two if { hdr(x-server) b }
  server one %[3]s
  server two %[4]s
backend sticky
  cookie at insert
  server one %[3]s cookie one
  server two %[4]s cookie two
`

// world is a real HAProxy in front of two real servers.
type world struct {
	t       *testing.T
	proxy   *testserver.Program
	socket  string
	held    chan chan struct{}
	servers [2]serverswitch.Server
	client  *http.Client
	api     haproxyapi.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, held: make(chan chan struct{}, 8), client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	for i, name := range []string{"a", "b"} {
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hold" {
				release := make(chan struct{})
				w.held <- release
				<-release
			}
		}))
		t.Cleanup(s.Close)
		w.servers[i] = serverswitch.Server{Name: name, Site: "east", URL: s.URL}
	}
	w.proxy = testserver.HAProxy(t, func(address, folder string) string {
		w.socket = filepath.Join(folder, "api")
		return fmt.Sprintf(settings, address, folder, strings.TrimPrefix(w.servers[0].URL, "http://"), strings.TrimPrefix(w.servers[1].URL, "http://"))
	})
	w.api = haproxyapi.Client{Network: "unix", Address: w.socket, Timeout: 10 * time.Second}
	for late := time.Now().Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) { // it listens for requests first
		if _, err := w.api.Ask(t.Context(), "show info"); err == nil {
			return w
		} else if time.Now().After(late) {
			t.Fatal(err)
		}
	}
}

func (w *world) backend(edit func(o *haproxy.Options)) *haproxy.Backend {
	w.t.Helper()
	o := haproxy.Options{Address: w.socket, Backend: "web", Timeout: 10 * time.Second}
	if edit != nil {
		edit(&o)
	}
	b, err := haproxy.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// shown is a server as HAProxy shows it.
func (w *world) shown(backend, server string) haproxyapi.Server {
	w.t.Helper()
	answer, err := w.api.Ask(context.Background(), "show servers state "+backend)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := haproxyapi.ParseServers(answer)
	for _, s := range all {
		if s.Name == server {
			return s
		}
	}
	w.t.Fatalf("no %s, %v", server, err)
	return haproxyapi.Server{}
}

// hold sends a request to a server that runs until it is released.
func (w *world) hold(server string) func() {
	w.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+w.proxy.Address+"/hold", http.NoBody)
		if err != nil {
			w.t.Error(err)
			return
		}
		r.Header.Set("X-Server", server)
		resp, err := w.client.Do(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			w.t.Errorf("%v, %v", resp, err)
			return
		}
		_ = resp.Body.Close()
	}()
	release := <-w.held
	return func() { close(release); <-done }
}

func (w *world) cut() func() {
	w.t.Helper()
	if err := os.Rename(w.socket, w.socket+".away"); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if err := os.Rename(w.socket+".away", w.socket); err != nil {
			w.t.Error(err)
		}
	}
}

// TestSuite on a real HAProxy, with servers found by their addresses and by names.
func TestSuite(t *testing.T) {
	t.Parallel()
	for _, names := range []map[string]string{nil, {"a": "one", "b": "two"}} {
		t.Run(fmt.Sprint(len(names)), func(t *testing.T) {
			t.Parallel()
			switchtest.Run(t, func(t *testing.T) switchtest.World {
				w := newWorld(t)
				return switchtest.World{
					Backend: w.backend(func(o *haproxy.Options) { o.Names = names }), Servers: w.servers, Sees: true, Cut: w.cut, Hold: w.hold,
					On: func(server string) bool {
						s := w.shown("web", map[string]string{"a": "one", "b": "two"}[server])
						return s.Admin&haproxyapi.AdminMaintenance == 0
					},
				}
			})
		})
	}
}

// TestStates that HAProxy's servers go through, of which those of other backends stay.
func TestStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, sticky := w.backend(nil), w.backend(func(o *haproxy.Options) { o.Backend = "sticky" })
	s := w.servers[1]
	is := func(what string, web, stuck int) {
		t.Helper()
		if a, b := w.shown("web", "two").Admin, w.shown("sticky", "two").Admin; a != web || b != stuck {
			t.Errorf("%s: states %#x, %#x; expected %#x, %#x", what, a, b, web, stuck)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	is("at first", 0, 0)
	do(b.Drain(t.Context(), s))
	is("drain", haproxyapi.AdminDrain, 0)
	do(b.Switch(t.Context(), serverswitch.Order{Server: s}))
	if w.shown("web", "two").Admin&1 == 0 {
		t.Error("not in maintenance")
	}
	do(b.Switch(t.Context(), serverswitch.Order{Server: s, On: true}))
	is("ready", 0, 0)
	do(sticky.Drain(t.Context(), s))
	is("sessions go elsewhere", 0, 1)
	do(sticky.Drain(t.Context(), s))
	do(sticky.Undrain(t.Context(), s))
	is("again", 0, 0)
}

// TestFails: servers and backends that aren't there, and a socket that may not.
func TestFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, x := range map[string]struct {
		edit func(o *haproxy.Options)
		s    serverswitch.Server
		want error
	}{
		"no such server":  {nil, serverswitch.Server{Name: "c", URL: "http://127.0.0.1:1"}, haproxy.ErrAbsent},
		"no such name":    {func(o *haproxy.Options) { o.Names = map[string]string{"a": "nine"} }, w.servers[0], haproxy.ErrAbsent},
		"no such backend": {func(o *haproxy.Options) { o.Backend = "nine" }, w.servers[0], nil},
		"may not":         {func(o *haproxy.Options) { o.Address = filepath.Dir(o.Address) + "/low" }, w.servers[0], haproxyapi.ErrRefused},
		"nobody there":    {func(o *haproxy.Options) { o.Address = "tcp:127.0.0.1:1" }, w.servers[0], executor.ErrAgain},
	} {
		b := w.backend(x.edit)
		if err := b.Switch(t.Context(), serverswitch.Order{Server: x.s}); err == nil || x.want != nil && !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, o := range []haproxy.Options{
		{},
		{Address: "x:1"},
		{Address: "x:1", Backend: "a b"},
		{Address: "x:1", Backend: "b", Timeout: -1},
		{Address: "x:1", Backend: "b", Names: map[string]string{"a": "no name"}},
		{Address: "unix:", Backend: "b"},
	} {
		if _, err := haproxy.New(o); !errors.Is(err, haproxy.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
