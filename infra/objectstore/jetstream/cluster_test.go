package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/objectstore"
	"penstock/infra/testserver"
)

// startCluster runs three NATS servers as one cluster.
func startCluster(t *testing.T) (servers []*server.Server, urls string) {
	t.Helper()
	const n = 3
	var routes []*url.URL
	var all []string
	opts := make([]*server.Options, n)
	for i := range opts {
		opts[i] = &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT,
			NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 40,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: freePort(t)},
		}
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: fmt.Sprintf("127.0.0.1:%d", opts[i].Cluster.Port)})
	}
	for _, o := range opts {
		o.Routes = routes
		s, err := server.NewServer(o)
		ok(t, err)
		servers = append(servers, s)
		s.Start()
		t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
	}
	for _, s := range servers {
		await(t, "the cluster", func() bool { return s.ReadyForConnections(time.Millisecond) && s.JetStreamIsCurrent() })
		all = append(all, s.ClientURL())
	}
	await(t, "all to know each other", func() bool {
		for _, s := range servers {
			if len(s.JetStreamClusterPeers()) == n {
				return true
			}
		}
		return false
	})
	return servers, strings.Join(all, ",")
}

func freePort(t *testing.T) int {
	t.Helper()
	at, err := netip.ParseAddrPort(testserver.FreeAddress(t))
	ok(t, err)
	return int(at.Port())
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func connect(t *testing.T, urls string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(urls, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectBufSize(-1))
	ok(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(2*time.Second))
	ok(t, err)
	return js
}

// TestCluster: with three replicas reads are the leader's, and what was
// acknowledged outlives the loss of the server that led.
func TestCluster(t *testing.T) {
	servers, urls := startCluster(t)
	o := Options{JS: connect(t, urls), Bucket: "x", Replicas: 3}
	// A question may have no answer in its two seconds, on a busy machine as after the loss.
	open := func() (s *Store) {
		await(t, "the buckets", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			var err error
			s, err = Open(ctx, o)
			return err == nil
		})
		return s
	}
	stream := func(name string) (st jetstream.Stream) {
		await(t, "stream "+name, func() bool {
			var err error
			st, err = o.JS.Stream(t.Context(), name)
			return err == nil
		})
		return st
	}
	s := open()
	defer func() { ok(t, s.Close()) }()
	for _, name := range []string{"KV_x", "OBJ_x"} {
		if c := stream(name).CachedInfo().Config; c.AllowDirect || c.Replicas != 3 {
			t.Errorf("%s: direct reads %v, %d replicas", name, c.AllowDirect, c.Replicas)
		}
	}
	o.JS = connect(t, urls)
	other := open()
	defer func() { ok(t, other.Close()) }()
	var acked [2]atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w, s := range []*Store{s, other} {
		wg.Go(func() {
			for n := int64(1); !stop.Load(); n++ {
				for {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					_, err := s.Put(ctx, "o", fmt.Sprint("w", w), strings.NewReader(fmt.Sprint(n)), objectstore.Mark{})
					cancel()
					if err == nil {
						break
					}
					time.Sleep(5 * time.Millisecond)
				}
				acked[w].Store(n)
				// What one has acknowledged the other reads.
				if got := read(t, []*Store{other, s}[w], fmt.Sprint("w", w)); got != fmt.Sprint(n) {
					t.Errorf("acknowledged was %d, the other process reads %s", n, got)
				}
			}
		})
	}
	await(t, "writes", func() bool { return acked[0].Load() > 10 && acked[1].Load() > 10 })
	leader := stream("KV_x").CachedInfo().Cluster.Leader
	for _, n := range servers {
		if n.Name() == leader {
			n.Shutdown()
		}
	}
	before := [2]int64{acked[0].Load(), acked[1].Load()}
	await(t, "writes after the loss", func() bool { return acked[0].Load() > before[0]+10 && acked[1].Load() > before[1]+10 })
	stop.Store(true)
	wg.Wait()
}

// read reads an object however long the cluster takes to find a leader.
func read(t *testing.T, s *Store, name string) (got string) {
	await(t, "a read", func() bool {
		r, err := s.Open(t.Context(), "o", name)
		if err != nil {
			return false
		}
		b, err := io.ReadAll(r)
		got = string(b)
		return errors.Join(err, r.Close()) == nil
	})
	return got
}
