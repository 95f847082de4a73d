package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/pipeline/config"
	"penstock/pipeline/topology"
	"penstock/producers/entry/upstream"
)

// plainProxy makes the test binary a process of another kind: the kind, and for a
// proxy the service's address and the bus's.
const plainProxy = "PENSTOCK_BENCH_PROXY"

// processCommand is how a process of the test binary is started. It writes "address HOST:PORT" when
// it listens and ends with its standard input.
func processCommand(t testing.TB, kind, service, nats string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run", "^TestPlainProxy$")
	cmd.Env = append(os.Environ(), plainProxy+"="+kind+" "+service+" "+nats)
	return cmd
}

// listening starts a command and waits until it says where it listens. It is
// ended with the test.
func listening(t testing.TB, cmd *exec.Cmd) (address string) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var rest sync.WaitGroup
	t.Cleanup(func() {
		_ = in.Close()
		rest.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", cmd, err)
		}
	})
	lines, said := bufio.NewReader(out), ""
	for {
		l, err := lines.ReadString('\n')
		if said += l; err != nil {
			t.Fatalf("%s ended before it listened: %v: %s", cmd, err, said)
		}
		if _, address, ok := strings.Cut(strings.TrimSpace(l), "address "); ok {
			rest.Go(func() { _, _ = io.Copy(io.Discard, lines) })
			return address
		}
	}
}

// TestPlainProxy is the process of a proxy where the environment says so; else it
// tests that one of each kind passes an answer on.
func TestPlainProxy(t *testing.T) {
	if how := strings.Fields(os.Getenv(plainProxy)); len(how) == 3 {
		serveProxy(t, how[0], how[1], how[2])
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Path", r.URL.Path)
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.Copy(w, r.Body)
	})}
	go func() { _ = service.Serve(l) }()
	defer func() { _ = service.Close() }()
	nats := listening(t, processCommand(t, "bus", "-", "-"))
	for _, kind := range []string{"ReverseProxy", "pool", "entry", "silent"} {
		address := listening(t, processCommand(t, kind, l.Addr().String(), nats))
		resp, err := http.Post("http://"+address+"/k", "text/plain", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(b) != "body" || resp.StatusCode != http.StatusTeapot || resp.Header.Get("X-Path") != "/k" {
			t.Errorf("%s: %d %q %v %v", kind, resp.StatusCode, b, resp.Header, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// serveProxy serves until the standard input ends.
func serveProxy(t *testing.T, kind, service, nats string) {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if policy, is := strings.CutPrefix(kind, "dispatch-"); is {
		// A site of its own, for entry points of one site share its servers' slots.
		site := "site" + policy
		serveEntry(ctx, t, site, dispatchConfig(site, policy, service, filepath.Join(t.TempDir(), "store")), nats, false)
		return
	}
	switch kind {
	case "entry", "silent":
		serveEntry(ctx, t, "here", fmt.Appendf(nil, entryConfig, service, filepath.Join(t.TempDir(), "store")), nats, kind == "silent")
		return
	case "machine":
		serveMachine(ctx, t, service)
		return
	case "redirector":
		serveRedirector(ctx, t, service, nats)
		return
	case "coder":
		serveCoder(ctx, t, service, nats)
		return
	case "bus":
		fmt.Printf("address %s\n", entryBus(t))
		<-ctx.Done()
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: proxyHandler(t, kind, service)}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Printf("address %s\n", l.Addr())
	_ = server.Serve(l) // ends when it is closed
}

// entryConfig is a site with one server, and owners in paths.
const entryConfig = `sites:
  - {name: here, lat: 37.4, lon: -79.8, capacity: 1TB/h, url: "http://127.0.0.1:1", servers: ["http://%s"], store: "dir:%s"}
entry:
  listen: 127.0.0.1:0
  owner: [{path: "/u/{owner}/**"}]
privacy: {user_key: "a key of thirty-two bytes or more, for tests"}
telemetry: {listen: ""}
`

// entryBus starts a bus that entry points publish to and returns its address.
func entryBus(t testing.TB) (url string) {
	return bustest.Start(t, func(o *bus.Options) {
		o.Listen, o.Sync, o.Partitions = "127.0.0.1:0", bus.SyncInterval, partitions
	}).URL()
}

// serveEntry is penstock entry. A silent one publishes no events.
func serveEntry(ctx context.Context, t *testing.T, site string, settings []byte, nats string, silent bool) {
	dir := t.TempDir()
	c, err := config.Read("entry.yaml", settings)
	if err != nil {
		t.Fatal(err)
	}
	e := topology.Entry{Site: site, Silent: silent, Alone: topology.Alone{
		Config: c, NATS: nats, Name: "bench", State: filepath.Join(dir, "state"), Logger: zerolog.New(os.Stderr).Level(zerolog.ErrorLevel),
		Started: func(address, _ string) { fmt.Printf("address %s\n", address) },
	}}
	if err := e.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func proxyHandler(t *testing.T, kind, service string) http.Handler {
	if kind == "ReverseProxy" {
		p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: service})
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 1024
		t.Cleanup(transport.CloseIdleConnections)
		p.Transport, p.BufferPool = transport, buffers{}
		return p
	}
	pool, err := upstream.New(upstream.Options{Servers: []upstream.Server{{URL: "http://" + service}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, _, err := pool.Do(r, nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		header := w.Header()
		for k, v := range resp.Header {
			if k != "Connection" && k != "Keep-Alive" {
				header[k] = v
			}
		}
		w.WriteHeader(resp.StatusCode)
		b := buffers{}.Get()
		_, _ = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{resp.Body}, b)
		buffers{}.Put(b)
	})
}

// buffers is a pool of copy buffers.
type buffers struct{}

var bufferPool = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

func (buffers) Get() []byte  { return *bufferPool.Get().(*[]byte) }
func (buffers) Put(b []byte) { bufferPool.Put(&b) }
