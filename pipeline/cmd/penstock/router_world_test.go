package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// conductor stands for the decider: it sends split tables over the bus, and hears the
// outcomes.
type conductor struct {
	t        *testing.T
	client   *bus.Client
	outcomes *bus.Reader
}

func conduct(t *testing.T, url string) *conductor {
	t.Helper()
	c := &conductor{t: t, client: connect(t, url, "")}
	var err error
	if c.outcomes, err = c.client.Read(t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf("split")}, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.outcomes.Close)
	return c
}

// send sends a table of calls from web at east, to one component.
func (c *conductor) send(epoch uint64, to string, parts map[string]float64) {
	c.t.Helper()
	row := control.SplitRow{FromSite: "east", To: to}
	for _, site := range frontSites {
		if part, has := parts[site]; has {
			row.Ratios = append(row.Ratios, control.SplitRatio{Site: site, Share: part})
		}
	}
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	body, err := control.Encode(&control.Command{
		Version: 1, Kind: control.Split, Scope: "web", Epoch: epoch, Mode: control.Act, TTL: "10m",
		Window: control.Window{Start: end.Add(-10 * time.Second), End: end}, Reason: control.Reason{Code: "LowerDelay"},
		Split: &control.SplitTable{Table: []control.SplitRow{row}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.client.Publish(c.t.Context(), bus.Msg{Subject: subject.Commands("split", "web"), Data: body}); err != nil {
		c.t.Fatal(err)
	}
}

// answered waits for the outcomes of n targets, by target.
func (c *conductor) answered(epoch uint64, n int) map[string]*control.Outcome {
	c.t.Helper()
	all := map[string]*control.Outcome{}
	for len(all) < n {
		o, err := control.DecodeOutcome(bustest.Take(c.t, c.outcomes, 1)[0].Data)
		if err != nil {
			c.t.Fatal(err)
		}
		if o.Epoch == epoch {
			all[o.Target] = o
		}
	}
	return all
}

// balancer is a real HAProxy in front of real servers, one at each site. Its backend
// search is ours; static-x and other-x are none of ours.
type balancer struct {
	t       *testing.T
	proxy   *testserver.Program
	socket  string
	state   string
	served  map[string]*atomic.Int64
	held    chan heldRequest
	holding chan struct{} // closed when hold holds one
}

// heldRequest is one that runs at a site until it is released.
type heldRequest struct {
	site    string
	release chan struct{}
}

const balancerSettings = `global
  master-worker
  stats socket %[2]s/api mode 600 level admin expose-fd listeners
  server-state-file %[2]s/servers
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout check 10s
  load-server-state-from-file global
  option httpchk GET /health
  option idle-close-on-response
  default-server check inter 500ms fastinter 50ms downinter 50ms fall 3 rise 1
  balance roundrobin
frontend in
  bind %[1]s
  use_backend other-x if { path_beg /other }
  default_backend search
backend search
%[3]s
backend other-x
%[3]s
backend static-x
  balance static-rr
%[3]s
`

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	b := &balancer{t: t, served: map[string]*atomic.Int64{}, held: make(chan heldRequest), holding: make(chan struct{})}
	var servers strings.Builder
	for _, site := range frontSites {
		n := &atomic.Int64{}
		b.served[site] = n
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/health":
				return
			case "/held":
				h := heldRequest{site, make(chan struct{})}
				b.held <- h
				<-h.release
			default:
				time.Sleep(4 * time.Millisecond)
				n.Add(1)
			}
			_, _ = io.WriteString(w, site)
		}))
		t.Cleanup(s.Close)
		fmt.Fprintf(&servers, "  server %s-1 %s weight 100\n", site, strings.TrimPrefix(s.URL, "http://"))
	}
	b.proxy = testserver.HAProxy(t, func(address, folder string) string {
		b.socket, b.state = filepath.Join(folder, "api"), filepath.Join(folder, "servers")
		return fmt.Sprintf(balancerSettings, address, folder, servers.String())
	})
	eventually(t, "HAProxy to answer", func() bool { return b.ask("show info") != "" })
	return b
}

// section is the section router of a configuration that tends it.
func (b *balancer) section() string {
	return fmt.Sprintf(`
router:
  listen: ""
  look: 200ms
  haproxy:
    - name: edge
      address: %q
      state_file: %q
      backends: [{name: search, from: web, from_site: east, to: search, servers: {east: [east-1], west: [west-1], north: [north-1]}}]
`, b.socket, b.state)
}

// ask asks the runtime API; empty if it can't be reached.
func (b *balancer) ask(command string) string {
	b.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(b.t.Context(), "unix", b.socket)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, command+"\n"); err != nil {
		return ""
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return ""
	}
	return string(answer)
}

// weights are those of the backend search, by site.
func (b *balancer) weights() map[string]int {
	b.t.Helper()
	all := map[string]int{}
	for line := range strings.Lines(b.ask("show servers state search")) {
		f := strings.Fields(line)
		if len(f) > 7 && f[1] == "search" {
			n := 0
			if _, err := fmt.Sscan(f[7], &n); err != nil {
				b.t.Fatal(err)
			}
			all[strings.TrimSuffix(f[3], "-1")] = n
		}
	}
	return all
}

// exact says whether weights are as near to shares as whole weights of 256 at most
// can be.
func exact(weights map[string]int, parts map[string]float64) bool {
	sum := 0
	for _, n := range weights {
		sum += n
	}
	for site, part := range parts {
		if n := weights[site]; sum == 0 || (n == 0) != (part == 0) || math.Abs(float64(n)-part*float64(sum)) >= 1 {
			return false
		}
	}
	return len(weights) == len(parts)
}

// foreign is what HAProxy shows of the servers that are none of ours, but for times
// and what checks count.
func (b *balancer) foreign() string {
	var kept []string
	for line := range strings.Lines(b.ask("show servers state")) {
		f := strings.Fields(line)
		if len(f) > 12 && f[1] != "search" && f[0] != "#" {
			kept = append(kept, strings.Join(append(f[:9:9], f[17:]...), " "))
		}
	}
	return strings.Join(kept, "\n")
}

// process is the process of HAProxy that answers.
func (b *balancer) process() string {
	for line := range strings.Lines(b.ask("show info")) {
		if strings.HasPrefix(line, "Pid:") {
			return line
		}
	}
	return ""
}

// reload has HAProxy read its configuration in a new process, and returns when that
// one answers.
func (b *balancer) reload() {
	b.t.Helper()
	before := b.process()
	pid, err := b.proxy.PID()
	if err != nil {
		b.t.Fatal(err)
	}
	var sent time.Time // a signal that comes while HAProxy is still at its last reload is lost
	eventually(b.t, "HAProxy to reload", func() bool {
		if now := b.process(); now != before && now != "" {
			return true
		}
		if time.Since(sent) > 700*time.Millisecond {
			sent = time.Now()
			if err := syscall.Kill(pid, syscall.SIGUSR2); err != nil {
				b.t.Fatal(err)
			}
		}
		return false
	})
}

// parts waits for some requests and returns each site's part of them.
func (b *balancer) parts() map[string]float64 {
	b.t.Helper()
	before, all := map[string]int64{}, map[string]float64{}
	for site, n := range b.served {
		before[site] = n.Load()
	}
	eventually(b.t, "requests", func() bool {
		sum := 0.0
		for site, n := range b.served {
			all[site] = float64(n.Load() - before[site])
			sum += all[site]
		}
		for site := range all {
			all[site] /= max(sum, 1)
		}
		return sum >= 300
	})
	return all
}

// load has wrk ask HAProxy until end is called, which returns what it measured.
func (b *balancer) load() (end func() testserver.Loaded) {
	var all testserver.Loaded
	ctx, stop := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			l := testserver.Wrk(b.t, testserver.Load{URL: "http://" + b.proxy.Address + "/search", Threads: 1, Connections: 4, Duration: time.Second})
			all = testserver.Loaded{Requests: all.Requests + l.Requests, Failed: all.Failed + l.Failed, P99: max(all.P99, l.P99)}
		}
	}()
	b.t.Cleanup(stop)
	return func() testserver.Loaded {
		stop()
		<-done
		return all
	}
}
