package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"penstock/infra/testserver"
	"penstock/schemas/control"
)

// envoy follows the routes of a control plane as an Envoy does, in the state-of-the-
// world variant, over one stream.
type envoy struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
	held   *routev3.RouteConfiguration
}

func newEnvoy(t *testing.T, at, token string) *envoy {
	t.Helper()
	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token))
	t.Cleanup(func() { cancel(); _ = conn.Close() })
	e := &envoy{t: t}
	if e.stream, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx); err != nil {
		t.Fatal(err)
	}
	err = e.stream.Send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "envoy-1"}, TypeUrl: resource.RouteType, ResourceNames: []string{"main"}})
	if err != nil && !errors.Is(err, io.EOF) { // Recv says why a stream has ended
		t.Fatal(err)
	}
	return e
}

// next takes the next response and acknowledges it.
func (e *envoy) next() error {
	r, err := e.stream.Recv()
	if err != nil {
		return err
	}
	e.held = &routev3.RouteConfiguration{}
	if err := r.GetResources()[0].UnmarshalTo(e.held); err != nil {
		return err
	}
	return e.stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResourceNames: []string{"main"}, ResponseNonce: r.GetNonce(), VersionInfo: r.GetVersionInfo()})
}

// until takes responses until the route search has weights.
func (e *envoy) until(east, west uint32) {
	e.t.Helper()
	want := fmt.Sprint([]uint32{east, west})
	for {
		if err := e.next(); err != nil {
			e.t.Fatal(err)
		}
		var got []uint32
		for _, c := range e.held.GetVirtualHosts()[0].GetRoutes()[0].GetRoute().GetWeightedClusters().GetClusters() {
			got = append(got, c.GetWeight().GetValue())
		}
		e.t.Logf("weights %v", got)
		if fmt.Sprint(got) == want {
			return
		}
	}
}

var envoysAt = regexp.MustCompile(`^(\S+), for envoys at (\S+)$`)

// TestRouterServesEnvoysAndThoseWhoAsk: a command on the bus reaches an Envoy and the
// pull API through penstock router; after a restart without the bus both are told
// what was in force, not what the file begins with. Who has no token is told nothing.
func TestRouterServesEnvoysAndThoseWhoAsk(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../infra/examples/router/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pull, plane := testserver.FreeAddress(t), testserver.FreeAddress(t)
	dir, config := routed(t, fmt.Sprintf(`
components: [{name: search, servers: {east: ["http://127.0.0.1:1"], west: ["http://127.0.0.1:2"]}}]
router:
  listen: %q
  xds:
    - name: envoys
      listen: %q
      base: envoy.yaml
      token_file: token
      splits: [{from: web, from_site: east, to: search, route_config: main, route: search, clusters: {east: search-east, west: search-west}}]
`, pull, plane))
	text = []byte(strings.ReplaceAll(string(text), "us-", ""))
	base, token := filepath.Join(dir, "envoy.yaml"), filepath.Join(dir, "token")
	writeFile(t, base, string(text))
	writeFile(t, token, "a token of Envoys\n")
	b, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, config, strings.NewReplacer("base: envoy.yaml", "base: "+base, "token_file: token", "token_file: "+token).Replace(string(b)))
	at := testserver.FreeAddress(t)
	bus := serve(t, "--config", configure(t, dir, settings{partitions: 2, alpha: 0.3}), "--state", filepath.Join(dir, "state"), "--listen", at, "--name", "core")
	r, said := route(t, config, "nats://"+at, filepath.Join(dir, "router"))
	if m := envoysAt.FindStringSubmatch(said); m == nil || m[1] != pull || m[2] != plane {
		t.Fatalf("it says that it is at %s", said)
	}
	r.awaitReady(true)
	stranger := newEnvoy(t, plane, "another")
	if err := stranger.next(); status.Code(err) != grpccodes.Unauthenticated {
		t.Errorf("without the token: %v", err)
	}
	e := newEnvoy(t, plane, "a token of Envoys")
	e.until(10000, 0)
	before := proto.Clone(e.held).(*routev3.RouteConfiguration)
	c := conduct(t, "nats://"+at)
	c.send(1, "search", map[string]float64{"east": 0.62, "west": 0.38})
	e.until(6200, 3800)
	for target, o := range c.answered(1, 2) {
		if o.Status != control.Done || target != "envoys" && target != "pull" {
			t.Errorf("%s: %+v", target, o)
		}
	}
	for i, clusters := range [][]*routev3.WeightedCluster_ClusterWeight{
		before.GetVirtualHosts()[0].GetRoutes()[0].GetRoute().GetWeightedClusters().GetClusters(),
		e.held.GetVirtualHosts()[0].GetRoutes()[0].GetRoute().GetWeightedClusters().GetClusters(),
	} {
		for _, c := range clusters {
			c.Weight = nil
		}
		if i == 1 && !proto.Equal(before, e.held) {
			t.Error("something else than weights was changed")
		}
	}
	told(t, pull, 1, 0.62)

	kept(t, dir, "envoys", 1)
	kept(t, dir, "pull", 1)
	bus.kill()
	r.kill()
	r, _ = route(t, config, "nats://"+at, filepath.Join(dir, "router"))
	e = newEnvoy(t, plane, "a token of Envoys")
	if err := e.next(); err != nil {
		t.Fatal(err)
	}
	if got := e.held.GetVirtualHosts()[0].GetRoutes()[0].GetRoute().GetWeightedClusters().GetClusters()[1].GetWeight().GetValue(); got != 3800 {
		t.Errorf("after a restart without the bus Envoys are told a weight of %d", got)
	}
	told(t, pull, 1, 0.62)
	r.stop()
}

// told asks the pull API.
func told(t *testing.T, at string, epoch uint64, east float64) {
	t.Helper()
	var a control.SplitAnswer
	eventually(t, "an answer of the pull API", func() bool {
		resp, err := http.Get("http://" + at + "/v1/split/search?from=web&from_site=east")
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		return resp.StatusCode == http.StatusOK && json.NewDecoder(resp.Body).Decode(&a) == nil && a.Epoch == epoch
	})
	if len(a.Ratios) != 2 || a.Ratios[0].Site != "east" || a.Ratios[0].Share != east || len(a.Ratios[0].Servers) != 1 {
		t.Errorf("the pull API tells %+v", a)
	}
}
