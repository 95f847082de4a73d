package topology

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/xds"
	"penstock/infra/clock"
	"penstock/infra/shares"
	"penstock/infra/telemetry"
	"penstock/infra/testserver"
	"penstock/pipeline/config"
)

const routerExamples = "../../infra/examples/router/"

// exampleRouter is a process with the example's configuration, of which nothing runs.
func exampleRouter(t *testing.T) *alone {
	t.Helper()
	cfg, err := config.Load(routerExamples + "penstock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := telemetry.New(prometheus.NewRegistry(), clock.System())
	if err != nil {
		t.Fatal(err)
	}
	return &alone{Alone: &Alone{Config: cfg, State: t.TempDir(), Name: "one", Logger: zerolog.Nop()}, metrics: m}
}

// exampleTable splits the calls of both components of the example, writes of search
// apart.
func exampleTable(epoch uint64) shares.Table {
	ratios := []shares.Ratio{{Site: "us-east", Share: 0.25}, {Site: "us-west", Share: 0.75}}
	return shares.Table{From: "web", Epoch: epoch, Rows: []shares.Row{
		{FromSite: "us-east", To: "search", WritesAt: "us-east", Ratios: ratios}, {FromSite: "us-east", To: "cart", Ratios: ratios},
	}}
}

// TestExampleOfHAProxy starts a real one with the example's configuration, and steers
// it by the example's section router.
func TestExampleOfHAProxy(t *testing.T) {
	t.Parallel()
	v := exampleRouter(t)
	c := v.Config.Router.HAProxy[0]
	text, err := os.ReadFile(routerExamples + "haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	testserver.HAProxy(t, func(address, folder string) string {
		paths := strings.NewReplacer(c.Address, filepath.Join(folder, "api"), c.StateFile, filepath.Join(folder, "servers"), "127.0.0.1:8000", address)
		c.Address, c.StateFile = filepath.Join(folder, "api"), filepath.Join(folder, "servers")
		// Nobody listens at its servers: without checks they are up.
		return strings.Replace(paths.Replace(string(text)), "default-server check", "default-server", 1)
	})
	target, err := haproxyTarget(v, &c)
	if err != nil {
		t.Fatal(err)
	}
	n, err := target.Put(t.Context(), exampleTable(1))
	for late := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(late); n, err = target.Put(t.Context(), exampleTable(1)) {
		time.Sleep(10 * time.Millisecond) // it listens for requests first
	}
	if err != nil || n == 0 {
		t.Fatalf("%d changes, %v", n, err)
	}
	rows, err := target.Observe(t.Context(), "web")
	if err != nil || len(rows) != 1 || math.Abs(rows[0].Ratios[0].Share-0.25) > 1./256 {
		t.Errorf("shows %v, %v", rows, err)
	}
	if state, err := os.ReadFile(c.StateFile); err != nil || !strings.Contains(string(state), "search-writes") {
		t.Errorf("the state file holds %q, %v", state, err)
	}
}

// TestExampleOfEnvoy is served, with the splits of the example's section router.
func TestExampleOfEnvoy(t *testing.T) {
	t.Parallel()
	v := exampleRouter(t)
	c := v.Config.Router.XDS[0]
	c.Base = routerExamples + "envoy.yaml"
	o, err := xdsOptions(v, &c)
	if err != nil {
		t.Fatal(err)
	}
	target, err := xds.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := target.Put(t.Context(), exampleTable(1)); n != 2 || err != nil { // a route configuration and endpoints
		t.Errorf("%d changes, %v", n, err)
	}
	rows, err := target.Observe(t.Context(), "web")
	if err != nil || len(rows) != 2 || rows[0].Ratios[1].Share != 0.75 || rows[1].Ratios[1].Share != 0.75 {
		t.Errorf("shows %v, %v", rows, err)
	}
	c.Base = routerExamples + "haproxy.cfg"
	if _, err := xdsOptions(v, &c); !errors.Is(err, xds.ErrInvalid) {
		t.Errorf("a base that is none: %v", err)
	}
}

// TestExampleOfGateway is opened in a cluster only, since it names no URL.
func TestExampleOfGateway(t *testing.T) {
	v := exampleRouter(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	c := v.Config.Router.Gateway[0]
	if _, err := gatewayTarget(v, &c); err == nil || !strings.Contains(err.Error(), "this is no pod") {
		t.Errorf("outside: %v", err)
	}
	c.URL = "http://127.0.0.1:1"
	if target, err := gatewayTarget(v, &c); err != nil || target.Name() != "cluster-east" {
		t.Errorf("with a URL: %v, %v", target, err)
	}
}

// TestRouterWithNothingToDo does not start.
func TestRouterWithNothingToDo(t *testing.T) {
	t.Parallel()
	v := exampleRouter(t)
	bare := func(c *config.Config) Alone {
		return Alone{Config: c, Name: "one", State: t.TempDir(), NATS: "nats://127.0.0.1:1"}
	}
	split := &config.Config{Components: []config.Component{{Name: "web"}}}
	for says, r := range map[string]*Router{
		`no target "edge-west": the configuration has edge-east, `:                               {Alone: *v.Alone, Targets: []string{"edge-east", "edge-west"}},
		`no target "nope": no targets are configured in the section router: `:                    {Alone: bare(&config.Config{}), Targets: []string{"nope"}},
		"nothing is left to do: the section router names no target, and there are no components": {Alone: bare(&config.Config{})},
		"nothing is left to do: the section router names no target, and the pull API is off":     {Alone: bare(split), Listen: "off"},
	} {
		if err := r.Run(t.Context()); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), says) {
			t.Errorf("expected %q, got %v", says, err)
		}
	}
}

// TestTheServiceBehindEntryPointsIsTold by the pull API with the servers of its sites,
// listed or not; one without servers is not there.
func TestTheServiceBehindEntryPointsIsTold(t *testing.T) {
	t.Parallel()
	c := &config.Config{
		Sites:      []config.Site{{Name: "east", Servers: []string{"http://e"}}, {Name: "west", Servers: []string{"http://w"}}},
		Components: []config.Component{{Name: "cart", Sites: []string{"west"}, Servers: map[string][]string{"west": {"http://c"}}}},
		Entry:      config.Entry{Component: "web"},
	}
	if got := fmt.Sprint(told(c)); got != "map[cart:map[west:[http://c]] web:map[east:[http://e] west:[http://w]]]" {
		t.Error(got)
	}
	c.Components = append(c.Components, config.Component{Name: "web", WritesAt: "west"})
	if got := writesAt(c); len(got) != 1 || got["web"] != "west" {
		t.Errorf("writes at %v", got)
	}
	if got := told(c); len(got) != 2 || len(got["web"]) != 2 {
		t.Errorf("listed: %v", got)
	}
	c.Entry.Component = "other"
	c.Sites[0].Servers, c.Sites[1].Servers = nil, nil
	if got := told(c); len(got) != 2 || got["other"] != nil {
		t.Errorf("without servers: %v", got)
	}
}

// TestReadinessForEnvoys asks the URL of a site.
func TestReadinessForEnvoys(t *testing.T) {
	t.Parallel()
	var code atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(code.Load())) }))
	defer s.Close()
	here, gone, unasked := shares.Replica{Component: "cart", Site: "us-east"}, shares.Replica{Component: "cart", Site: "gone"}, shares.Replica{Component: "cart", Site: "us-west"}
	ready := readiness{here: s.URL, gone: "http://127.0.0.1:1/"}
	for status, want := range map[int64]error{200: nil, 204: nil, 301: router.ErrNotReady, 503: router.ErrNotReady} {
		code.Store(status)
		if err := ready.ask(t.Context(), here); !errors.Is(err, want) {
			t.Errorf("%d: %v", status, err)
		}
	}
	if err := ready.ask(t.Context(), gone); !errors.Is(err, router.ErrNotReady) {
		t.Errorf("nobody there: %v", err)
	}
	if err := ready.ask(t.Context(), unasked); err != nil {
		t.Errorf("without a URL: %v", err)
	}
}

// TestWhoMayFollowTheControlPlane: with tls.client_ca those alone whom it vouches
// for, with a token those who know it.
func TestWhoMayFollowTheControlPlane(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writePair(t, at("cert"), at("key"), 1)
	writePair(t, at("envoy"), at("envoy.key"), 2)
	writePair(t, at("stranger"), at("stranger.key"), 3)
	if err := os.WriteFile(at("token"), []byte("a token of Envoys"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := exampleRouter(t)
	base, err := xdsOptions(v, &config.RouterXDS{Base: routerExamples + "envoy.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	base.Splits = []xds.Split{{Link: shares.Link{From: "web", To: "search"}, RouteConfig: "main", Route: "search", Clusters: map[string]string{"us-east": "search-east"}}}
	target, err := xds.New(base)
	if err != nil {
		t.Fatal(err)
	}
	options, err := xdsServer(v, &config.RouterXDS{Name: "envoys", TokenFile: at("token"), TLS: config.RouterTLS{Cert: at("cert"), Key: at("key"), ClientCA: at("envoy")}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	target.Register(t.Context(), server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	for name, tc := range map[string]struct {
		pair, token string
		want        codes.Code
	}{
		"known":         {"envoy", "a token of Envoys", codes.OK},
		"another token": {"envoy", "a token of Envoy", codes.Unauthenticated},
		"a stranger":    {"stranger", "a token of Envoys", codes.Unavailable},
		"nobody":        {"", "a token of Envoys", codes.Unavailable},
	} {
		c := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // It is the server that is asked here.
		if tc.pair != "" {
			pair, err := tls.LoadX509KeyPair(at(tc.pair), at(tc.pair+".key"))
			if err != nil {
				t.Fatal(err)
			}
			c.Certificates = []tls.Certificate{pair}
		}
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(c)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+tc.token), 10*time.Second)
		stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
		if err == nil {
			_ = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: resource.RouteType, ResourceNames: []string{"main"}}) // Recv says why it fails.
			_, err = stream.Recv()
		}
		if status.Code(err) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		_ = conn.Close()
	}
	server.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	for name, c := range map[string]config.RouterTLS{"no pair": {Cert: at("x"), Key: at("x")}, "no CA": {Cert: at("cert"), Key: at("key"), ClientCA: at("token")}} {
		if _, err := xdsServer(v, &config.RouterXDS{TLS: c}); err == nil {
			t.Errorf("%s: there is a server", name)
		}
	}
}
