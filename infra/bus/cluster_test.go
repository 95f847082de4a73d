package bus_test

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
	"penstock/schemas/subject"
)

// clusterOptions are those of three NATS servers that are one cluster.
func clusterOptions(t *testing.T) []*server.Options {
	t.Helper()
	var routes []*url.URL
	opts := make([]*server.Options, 3)
	for i := range opts {
		routesAt, err := net.ResolveTCPAddr("tcp", testserver.FreeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		opts[i] = &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT,
			NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 40,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: routesAt.Port},
		}
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: fmt.Sprintf("127.0.0.1:%d", opts[i].Cluster.Port)})
	}
	for _, o := range opts {
		o.Routes = routes
	}
	return opts
}

func startServer(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

// startCluster runs three NATS servers of the module's version as one cluster.
func startCluster(t *testing.T) []*server.Server {
	t.Helper()
	return startAll(t, clusterOptions(t))
}

func startAll(t *testing.T, opts []*server.Options) []*server.Server {
	t.Helper()
	var servers []*server.Server
	for _, o := range opts {
		servers = append(servers, startServer(t, o))
	}
	for _, s := range servers {
		waitFor(t, "the cluster", func() bool {
			return s.ReadyForConnections(time.Millisecond) && s.JetStreamIsCurrent() &&
				(servers[0].JetStreamIsLeader() || servers[1].JetStreamIsLeader() || servers[2].JetStreamIsLeader())
		})
	}
	waitFor(t, "all to know each other", func() bool {
		for _, s := range servers {
			if len(s.JetStreamClusterPeers()) > 0 {
				return len(s.JetStreamClusterPeers()) == len(servers)
			}
		}
		return false
	})
	// What a client is told comes over the routes, and may be later still.
	waitFor(t, "the first to tell of the others", func() bool { return told(servers[0]) == len(servers)-1 })
	return servers
}

// told is of how many others a server tells its clients.
func told(s *server.Server) int {
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		return -1
	}
	defer nc.Close()
	return len(nc.DiscoveredServers())
}

// TestCluster opens a cluster of three by one of its addresses: streams get
// three replicas, fences hold, and a reader survives the loss of the server
// that it is connected to.
func TestCluster(t *testing.T) {
	t.Parallel()
	servers := startCluster(t)
	b, err := bus.Open(testContext(t), bus.Options{URL: servers[0].ClientURL(), Logger: zerolog.Nop(), Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if b.Replicas() != 3 {
		t.Fatalf("%d replicas", b.Replicas())
	}
	if err := b.Init(testContext(t)); err != nil {
		t.Fatal(err)
	}
	c := bustest.Client(t, b)
	r, err := c.Read(t.Context(), subject.WindowsStream, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	write := func(who string, expect uint64) uint64 {
		t.Helper()
		var last uint64
		waitFor(t, "a write", func() bool {
			seq, err := c.PublishFenced(testContext(t), flush(who, 3), expect)
			if errors.Is(err, bus.ErrConflict) { // with an attempt that was not answered
				m, err := c.Last(testContext(t), subject.WindowsStream, "windows.fast.0")
				last = m.Seq
				return err == nil && m.Header["Penstock-Flush"][0] == who
			}
			last = seq
			return err == nil
		})
		return last
	}
	seq := write("one", 0)
	if _, err := c.PublishFenced(testContext(t), flush("two", 3), 0); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("stale: %v", err)
	}
	bustest.Take(t, r, 3)
	connected := c.NC.ConnectedServerId()
	for _, s := range servers {
		if s.ID() == connected {
			s.Shutdown()
		}
	}
	if last := write("three", seq); last != seq+3 {
		t.Errorf("the write after the loss ends at %d", last)
	}
	for i, m := range bustest.Take(t, r, 3) {
		if m.Seq != seq+uint64(i)+1 || string(m.Data) != fmt.Sprint("three ", i) {
			t.Errorf("message %d: %q", m.Seq, m.Data)
		}
	}
}

// TestClusterThatGathers: streams that are made while a cluster's third server has only
// just come, or is not told of yet, get three copies all the same.
func TestClusterThatGathers(t *testing.T) {
	t.Parallel()
	opts := clusterOptions(t)
	servers := startAll(t, opts)
	servers[2].Shutdown()
	servers[2].WaitForShutdown()
	waitFor(t, "two of three to go on", func() bool {
		return told(servers[0]) == 1 && (servers[0].JetStreamIsLeader() || servers[1].JetStreamIsLeader())
	})
	b, err := bus.Open(testContext(t), bus.Options{URL: servers[0].ClientURL(), Logger: zerolog.Nop(), Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if b.Replicas() != 1 {
		t.Fatalf("%d replicas on two servers", b.Replicas())
	}
	bus.SetGossip(b, time.Minute)
	done := make(chan error, 1)
	go func() { done <- b.Init(t.Context()) }()
	startServer(t, opts[2])
	// What is made before the third can store anything is refused, not made with less.
	late := testContext(t)
	for err = <-done; err != nil; err = b.Init(late) {
		select {
		case <-late.Done():
			t.Fatal(err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	if b.Replicas() != 3 {
		t.Errorf("%d replicas", b.Replicas())
	}
}
