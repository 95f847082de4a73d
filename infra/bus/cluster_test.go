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
	"penstock/schemas/subject"
)

// startCluster runs three NATS servers of the module's version as one cluster.
func startCluster(t *testing.T) []*server.Server {
	t.Helper()
	var routes []*url.URL
	opts := make([]*server.Options, 3)
	for i := range opts {
		opts[i] = &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT,
			NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 40,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: freePort(t)},
		}
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: fmt.Sprintf("127.0.0.1:%d", opts[i].Cluster.Port)})
	}
	servers := make([]*server.Server, len(opts))
	for i, o := range opts {
		o.Routes = routes
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		servers[i] = s
		s.Start()
		t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
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
	waitFor(t, "the first to tell of the others", func() bool {
		nc, err := nats.Connect(servers[0].ClientURL())
		if err != nil {
			return false
		}
		defer nc.Close()
		return len(nc.DiscoveredServers()) == len(servers)-1
	})
	return servers
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("address %v", l.Addr())
	}
	return addr.Port
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
