package bench

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/infra/processor"
	"penstock/infra/testserver"
)

const (
	// entryRounds is how often each proxy has its turn; they take turns, so that a
	// busy minute slows all of them.
	entryRounds = 5
	entryTurn   = 4 * time.Second
	// entryUsers is how many connections send requests, one at a time each.
	entryUsers = 64
	answerSize = 1024
)

// proxy is a process between wrk and the service.
type proxy struct {
	name, address string
	pid           int
	turns         []turn
}

// turn is what one proxy did in one turn.
type turn struct {
	testserver.Loaded
	cpu time.Duration
}

// BenchmarkEntryBesideProxies has the same requests go through NGINX, HAProxy,
// Go's ReverseProxy with a large idle pool, net/http in front of our pool of
// servers and nothing else, and our entry point, without events and with, which
// it publishes to a bus. All are processes of their own in front of one NGINX that
// answers with 1 KB.
func BenchmarkEntryBesideProxies(b *testing.B) {
	proxies := startProxies(b)
	for range b.N {
		for _, p := range proxies {
			p.turns = nil
		}
		for range entryRounds {
			for _, p := range proxies {
				p.load(b, entryTurn)
			}
		}
	}
	theirs := proxies[0].cpu()
	tab := newSheet(fmt.Sprintf("1 KB through a proxy, %d connections, medians of %d turns of %v", entryUsers, entryRounds, entryTurn),
		"proxy", "requests/s", "p50 ms", "p99 ms", "CPU-s per 100,000", "of NGINX's")
	for _, p := range proxies {
		b.ReportMetric(p.cpu(), strings.ReplaceAll(p.name, " ", "-")+"-cpu-s/100k")
		tab.row(p.name, fmt.Sprintf("%.0f", p.median(perSecond)), fmt.Sprintf("%.1f", p.median(p50)), fmt.Sprintf("%.1f", p.median(p99)),
			fmt.Sprintf("%.2f", p.cpu()), fmt.Sprintf("%.2f", p.cpu()/theirs))
		if p.name == "entry" {
			// The figures: at most 6 CPU-s where NGINX takes 2.9, and ReverseProxy 9.8.
			results.add(line{
				name: "processor time of the entry against NGINX's", figure: p.cpu() / theirs, unit: "x",
				least: 9.8 / 2.9, aim: 6.0 / 2.9, lower: true, note: fmt.Sprintf("%.2f CPU-s per 100,000 against %.2f", p.cpu(), theirs),
			})
		}
	}
	results.sheet(tab)
}

// TestTheEntryBenchmarkWorks gives each proxy one short turn.
func TestTheEntryBenchmarkWorks(t *testing.T) {
	proxies := startProxies(t)
	for _, p := range proxies {
		if p.name == "NGINX" || p.name == "entry" {
			p.load(t, time.Second) // wrk's least
			if p.cpu() <= 0 {
				t.Errorf("%s used no processor", p.name)
			}
		}
	}
}

// load gives a proxy its turn.
func (p *proxy) load(t testing.TB, d time.Duration) {
	t.Helper()
	before := processorTime(t, p.pid)
	l := testserver.Wrk(t, testserver.Load{URL: "http://" + p.address + "/k", Threads: 1, Connections: entryUsers, Duration: d})
	if l.Failed > 0 || l.Requests == 0 {
		t.Fatalf("%s: %d requests failed of %d", p.name, l.Failed, l.Requests)
	}
	p.turns = append(p.turns, turn{l, processorTime(t, p.pid) - before})
}

func processorTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	used, err := processor.Time(pid)
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// median is that of a figure over the turns.
func (p *proxy) median(of func(turn) float64) float64 {
	var v []float64
	for _, t := range p.turns {
		v = append(v, of(t))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// cpu is the seconds of processor that 100,000 requests take.
func (p *proxy) cpu() float64 { return p.median(cpuPerRequests) }

func cpuPerRequests(t turn) float64 { return t.cpu.Seconds() / float64(t.Requests) * 1e5 }
func perSecond(t turn) float64      { return t.PerSecond() }
func p50(t turn) float64            { return t.P50.Seconds() * 1e3 }
func p99(t turn) float64            { return t.P99.Seconds() * 1e3 }

// startService starts the service behind the proxies.
func startService(t testing.TB) *testserver.Program {
	t.Helper()
	return testserver.NGINX(t, 1, func(address, folder string) string {
		if err := os.WriteFile(folder+"/k", []byte(strings.Repeat("k", answerSize)), 0o644); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("keepalive_requests 1000000000; open_file_cache max=16; server { listen %s; }", address)
	})
}

// startProxies starts the service and the proxies, NGINX first.
func startProxies(t testing.TB) (proxies []*proxy) {
	t.Helper()
	back := startService(t)
	nginx := testserver.NGINX(t, 2, func(address, _ string) string {
		return fmt.Sprintf(`keepalive_requests 1000000000;
	upstream service { server %s; keepalive 256; keepalive_requests 1000000000; }
	server { listen %s; location / { proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection ""; } }`, back.Address, address)
	})
	haproxy := testserver.HAProxy(t, func(address, _ string) string {
		return fmt.Sprintf(`global
  nbthread 2
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
listen all
  bind %s
  server service %s
`, address, back.Address)
	})
	for name, p := range map[string]*testserver.Program{"NGINX": nginx, "HAProxy": haproxy} {
		pid, err := p.PID()
		if err != nil {
			t.Fatal(err)
		}
		proxies = append(proxies, &proxy{name: name, address: p.Address, pid: pid})
	}
	slices.SortFunc(proxies, func(a, b *proxy) int { return -strings.Compare(a.name, b.name) })
	nats := listening(t, processCommand(t, "bus", "-", "-"))
	for _, name := range []string{"ReverseProxy", "pool", "silent", "entry"} {
		proxies = append(proxies, startProxy(t, name, back.Address, nats))
	}
	return proxies
}

// startProxy starts a proxy of Go. Silent is the entry point without events.
func startProxy(t testing.TB, kind, service, nats string) *proxy {
	t.Helper()
	cmd := processCommand(t, kind, service, nats)
	p := &proxy{name: kind, address: listening(t, cmd), pid: cmd.Process.Pid}
	if kind == "silent" {
		p.name = "entry without events"
	}
	return p
}
