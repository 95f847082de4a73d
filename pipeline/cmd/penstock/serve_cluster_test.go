package main

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"penstock/infra/bus"
	"penstock/infra/testserver"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// cluster is three NATS servers of the module's version, in this process.
type cluster struct {
	t       testing.TB
	opts    []*natsserver.Options
	servers []*natsserver.Server
	down    int // the one that was taken down last
}

func startCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{t: t, servers: make([]*natsserver.Server, 3)}
	var routes []*url.URL
	for i := range c.servers {
		o := &natsserver.Options{
			ServerName: fmt.Sprintf("n%d", i), NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 40,
			Cluster: natsserver.ClusterOpts{Name: "c"},
		}
		o.Host, o.Port = free(t)
		o.Cluster.Host, o.Cluster.Port = free(t)
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: net.JoinHostPort(o.Cluster.Host, fmt.Sprint(o.Cluster.Port))})
		c.opts = append(c.opts, o)
	}
	for i, o := range c.opts {
		o.Routes = routes
		c.start(i)
	}
	c.whole()
	return c
}

func free(t testing.TB) (host string, port int) {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", testserver.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return a.IP.String(), a.Port
}

func (c *cluster) start(i int) {
	c.t.Helper()
	s, err := natsserver.NewServer(c.opts[i])
	if err != nil {
		c.t.Fatal(err)
	}
	c.servers[i] = s
	s.Start()
	c.t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
}

// whole waits until all three are there and know it, and tell their clients.
func (c *cluster) whole() {
	c.t.Helper()
	eventually(c.t, "the cluster to be whole", func() bool {
		peers := 0
		for _, s := range c.servers {
			if !s.ReadyForConnections(time.Millisecond) || !s.JetStreamIsCurrent() {
				return false
			}
			peers = max(peers, len(s.JetStreamClusterPeers()))
		}
		return peers == len(c.servers) && !slices.ContainsFunc(c.servers, func(s *natsserver.Server) bool { return tells(s) != len(c.servers)-1 })
	})
}

// tells is of how many others a server tells its clients.
func tells(s *natsserver.Server) int {
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		return -1
	}
	defer nc.Close()
	return len(nc.DiscoveredServers())
}

// address names one of the servers, or all.
func (c *cluster) address(only ...int) string {
	var urls []string
	for i, s := range c.servers {
		if len(only) == 0 || only[0] == i {
			urls = append(urls, s.ClientURL())
		}
	}
	return strings.Join(urls, ",")
}

// killLeader takes the leader of a stream down and brings it back after what is
// to happen without it, unless that is the end.
func (c *cluster) killLeader(stream string, w *crowd, last bool, during func()) {
	c.t.Helper()
	var leader int
	eventually(c.t, stream+" to have a leader", func() bool {
		s, err := w.c.JS.Stream(c.t.Context(), w.c.Stream(stream))
		if err != nil {
			return false
		}
		_, err = fmt.Sscanf(s.CachedInfo().Cluster.Leader, "n%d", &leader)
		return err == nil
	})
	// Nothing is cleared up on the way down but what a server owes its peers:
	// clients find their connections closed.
	c.down = leader
	c.servers[leader].Shutdown()
	during()
	c.servers[leader].WaitForShutdown()
	if last {
		return
	}
	c.start(leader)
	c.whole()
	// The next one must not be the second of three that lack the newest.
	for _, name := range subject.Streams {
		eventually(c.t, name+" to be in step", func() bool {
			s, err := w.c.JS.Stream(c.t.Context(), w.c.Stream(name))
			if err != nil || s.CachedInfo().Cluster.Leader == "" {
				return false
			}
			for _, r := range s.CachedInfo().Cluster.Replicas {
				if !r.Current || r.Offline {
					return false
				}
			}
			return len(s.CachedInfo().Cluster.Replicas) == 2
		})
	}
}

// TestServeOnACluster runs the loop on a cluster of three that `penstock init` has
// made streams on, and takes down the leaders of the streams one after another:
// nothing that was acknowledged is lost, nothing is decided or moved twice.
func TestServeOnACluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startCluster(t)
	if out := must(t, "init", "--nats", n.address(1), "--partitions", "2"); !strings.Contains(out, "3 replicas and 2 partitions") {
		t.Fatalf("init: %s", out)
	}
	cfg := configure(t, dir, settings{2, 0.3})
	s := serve(t, "--nats", n.address(0), "--config", cfg, "--state", filepath.Join(dir, "state"), "--name", "one")
	c := connect(t, n.address(), "")
	w := gather(t, c, 12)
	homes := stores(t, cfg)
	w.fill(homes)
	must(t, "mode", "placement", "act", "--nats", n.address())
	w.decision(w.send("east"))
	done := 0
	for i, stream := range []string{subject.EventsStream, subject.WindowsStream, subject.CommandsStream} {
		n.killLeader(stream, w, i == 2, func() {
			to := []string{"west", "north", "east"}[i]
			if d := w.decision(w.send(to)); moves(d) != 12 {
				t.Fatalf("without the leader of %s: %d moves, reasons %v", stream, moves(d), codes(d))
			}
			done += 12
			if got := w.outcomes(done); got[control.Done] != done {
				t.Errorf("without the leader of %s: outcomes %v", stream, got)
			}
			w.located()
		})
		w.check(homes, true)
	}
	s.awaitReady(true)
	settledRows(t, w)
	total := checkAudit(t, c)
	if total.Counted != w.rows || total.Received-total.Duplicate != w.rows || total.LostBatches != 0 {
		t.Errorf("account %+v, sent %d rows", total, w.rows)
	}
	decided := 0
	each(t, c, subject.CommandsStream, func(m bus.Msg) {
		if m.Subject == subject.Decisions(string(control.Placement)) {
			decided++
		}
	})
	if decided != w.window {
		t.Errorf("%d records of %d windows", decided, w.window)
	}
	if out := must(t, "locations", "verify", "--config", cfg, "--nats", n.address()); !strings.Contains(out, "12 with exactly one live copy") {
		t.Errorf("locations verify: %s", out)
	}

	// One server is down. Without a second one there is no majority: connections
	// stand, and nothing is answered.
	n.servers[(n.down+1)%3].Shutdown()
	eventually(t, "the bus to be found without a majority", func() bool {
		return strings.Contains(s.awaitReady(false), "nothing can be stored")
	})
	n.start(n.down)
	s.awaitReady(true)
	s.stop()
}
