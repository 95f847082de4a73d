package haproxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"penstock/consumers/executor/router/routertest"
	"penstock/infra/shares"
	"penstock/infra/testserver"
)

var second = shares.Link{From: routertest.Frontend, FromSite: routertest.East, To: "cart"}

// world is a real HAProxy in front of real servers: two at East, one at each
// other site.
type world struct {
	t         *testing.T
	proxy     *testserver.Program
	folder    string
	socket    string
	tcp       string // where the runtime API listens too
	target    *Target
	down      map[string]*atomic.Bool  // by site
	served    map[string]*atomic.Int64 // by site, health checks apart
	held      chan hold
	client    *http.Client
	stateFile string
}

type hold struct {
	site    string
	release chan struct{}
}

// settings are HAProxy's. Backends that end in -x are none of ours.
const settings = `global
  master-worker
  stats socket %[2]s/api mode 600 level admin expose-fd listeners
  stats socket ipv4@%[3]s level admin
  stats socket %[2]s/low mode 600 level operator
  server-state-file %[2]s/servers
  nbthread 2
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout check 10s
  load-server-state-from-file global
  option httpchk GET /health
  option idle-close-on-response
  default-server check inter 300ms fastinter 20ms downinter 20ms fall 2 rise 1
  balance roundrobin
frontend in
  bind %[1]s
  use_backend cart if { path_beg /cart }
  use_backend checkout if { path_beg /checkout }
  use_backend sticky if { path_beg /sticky }
  use_backend static-x if { path_beg /static }
  default_backend search
backend search
%[4]s
backend cart
%[4]s
backend checkout
%[4]s
backend static-x
  balance static-rr
%[4]s
backend sticky
  cookie at insert
%[5]s
backend other-x
%[4]s
`

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, down: map[string]*atomic.Bool{}, served: map[string]*atomic.Int64{}, held: make(chan hold, 16),
		client: &http.Client{Transport: &http.Transport{}},
	}
	t.Cleanup(w.client.CloseIdleConnections)
	var servers, cookies strings.Builder
	for _, site := range routertest.Sites {
		w.down[site], w.served[site] = &atomic.Bool{}, &atomic.Int64{}
		n := 1
		if site == routertest.East {
			n = 2
		}
		for i := range n {
			s := httptest.NewServer(w.handler(site))
			t.Cleanup(s.Close)
			line := fmt.Sprintf("  server %s-%d %s weight 100", site, i+1, strings.TrimPrefix(s.URL, "http://"))
			servers.WriteString(line + "\n")
			cookies.WriteString(line + fmt.Sprintf(" cookie %s-%d\n", site, i+1))
		}
	}
	w.proxy = testserver.HAProxy(t, func(address, folder string) string {
		w.folder, w.socket, w.tcp, w.stateFile = folder, filepath.Join(folder, "api"), testserver.FreeAddress(t), filepath.Join(folder, "servers")
		return fmt.Sprintf(settings, address, folder, w.tcp, servers.String(), cookies.String())
	})
	w.target = w.open(w.socket)
	w.await(func(map[string]map[string]*server) bool { return true }) // it listens for requests first
	return w
}

// open returns a target at an address of the runtime API.
func (w *world) open(address string) *Target {
	w.t.Helper()
	at := map[string][]string{"east": {"east-1", "east-2"}, "north": {"north-1"}, "west": {"west-1"}}
	checkout := shares.Link{From: routertest.Checkout, FromSite: routertest.East, To: routertest.Search}
	target, err := New(Options{
		Address: address, StateFile: w.stateFile, Timeout: 5 * time.Second,
		Backends: []Backend{
			{Name: "search", Link: routertest.Link, Servers: at},
			{Name: "cart", Link: second, Servers: at},
			{Name: "checkout", Link: checkout, Servers: at},
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return target
}

func (w *world) handler(site string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/health":
			if w.down[site].Load() {
				rw.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		case strings.HasSuffix(r.URL.Path, "/hold"):
			h := hold{site, make(chan struct{})}
			w.held <- h
			<-h.release
		case strings.HasSuffix(r.URL.Path, "/slow"):
			time.Sleep(2 * time.Millisecond)
		}
		w.served[site].Add(1)
		_, _ = io.WriteString(rw, site)
	}
}

// get asks the proxy, with a cookie if it isn't empty, and returns the site that
// answered and the cookie that it set.
func (w *world) get(path, cookie string) (site, set string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+w.proxy.Address+path, nil)
	if err != nil {
		w.t.Error(err)
		return "", ""
	}
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		w.t.Error(err)
		return "", ""
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		w.t.Errorf("%s: %d %s, %v", path, resp.StatusCode, b, err)
	}
	for _, c := range resp.Cookies() {
		set = c.Name + "=" + c.Value
	}
	return string(b), set
}

func (w *world) send(l shares.Link, n int) map[string]int {
	w.t.Helper()
	path := map[shares.Link]string{routertest.Link: "/search", second: "/cart"}[l]
	if l.From == routertest.Checkout {
		path = "/checkout"
	}
	got := map[string]int{}
	for range n {
		site, _ := w.get(path, "")
		got[site]++
	}
	return got
}

// hold sends a request that runs until it is released, and returns then.
func (w *world) hold(path string) (site string, release func()) {
	w.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.get(path+"/hold", "")
	}()
	h := <-w.held
	return h.site, func() { close(h.release); <-done }
}

// up changes the health of a site and waits until HAProxy has seen it.
func (w *world) up(site string, up bool) {
	w.t.Helper()
	w.down[site].Store(!up)
	w.await(func(all map[string]map[string]*server) bool {
		for _, servers := range all {
			for name, s := range servers {
				if strings.HasPrefix(name, site) && s.up != up {
					return false
				}
			}
		}
		return true
	})
}

// await waits for HAProxy to show what is expected.
func (w *world) await(as func(all map[string]map[string]*server) bool) {
	w.t.Helper()
	late := time.Now().Add(time.Minute)
	for {
		all, err := w.target.servers(context.Background(), w.target.of(func(*Backend) bool { return true }))
		if err == nil && as(all) {
			return
		}
		if time.Now().After(late) {
			text := ""
			for backend, servers := range all {
				for _, s := range servers {
					text += fmt.Sprintf("%s: %+v\n", backend, *s)
				}
			}
			w.t.Fatalf("HAProxy shows %v\n%s", err, text)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// foreign is what HAProxy shows of backends that aren't Frontend's, but for times
// and what checks count.
func (w *world) foreign() string {
	w.t.Helper()
	answer, err := w.target.client.ask(context.Background(), "show servers state")
	if err != nil {
		w.t.Fatal(err)
	}
	var kept []string
	var columns []string
	for line := range strings.Lines(answer) {
		fields := strings.Fields(line)
		if len(fields) > 2 && fields[0] == "#" {
			columns = fields[1:]
			continue
		}
		if len(fields) < 2 || fields[1] == "search" || fields[1] == "cart" {
			continue
		}
		for i, column := range columns {
			if column == "srv_time_since_last_change" || strings.HasPrefix(column, "srv_check_") {
				fields[i] = "."
			}
		}
		kept = append(kept, strings.Join(fields, " "))
	}
	return strings.Join(kept, "\n")
}

func (w *world) suite() routertest.World {
	return routertest.World{
		Target: w.target, Second: second, Resolution: 1. / 256, Send: w.send, Up: w.up, Foreign: w.foreign,
		Hold: func() (string, func()) { return w.hold("/search") },
		Cut: func() func() {
			if err := os.Rename(w.socket, w.socket+".away"); err != nil {
				w.t.Fatal(err)
			}
			return func() {
				if err := os.Rename(w.socket+".away", w.socket); err != nil {
					w.t.Fatal(err)
				}
			}
		},
	}
}

// TestHAProxyIsATarget runs the suite on a real HAProxy.
func TestHAProxyIsATarget(t *testing.T) {
	t.Parallel()
	routertest.Run(t, func(t *testing.T) routertest.World { return newWorld(t).suite() })
}
