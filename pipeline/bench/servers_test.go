package bench

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/infra/testserver"
)

const (
	// serversTakes is what a request takes at a server, slowTakes at the slow one;
	// each does serversSlots at once and lets the others wait. It is long beside what a
	// busy machine adds to it.
	serversTakes = 40 * time.Millisecond
	slowTakes    = 10 * serversTakes
	serversSlots = 8
	// serversRate is what is offered, in requests a second: 60 % of what all four can
	// do, which is 62 % of what the other three can.
	serversRate = 0.6 * serversSlots * (3/0.040 + 1/0.400)
	// serversLimit is the time limit of the requests' class: what the slow one takes is
	// late.
	serversLimit = 200 * time.Millisecond
	// serversRounds is how often each has its turn.
	serversRounds = 3
	serversTurn   = 3 * time.Second
	// serversWarm is a turn before, from which only the switches learn.
	serversWarm = time.Second
)

// switchboard is something in front of the four servers, and what it did.
type switchboard struct {
	name, address string
	seen          offered
}

// BenchmarkServers has the same requests, as many a second whatever becomes of them,
// go through the entry point with its dispatcher, by policy; the entry point that sends
// each request on at once to the server with the fewest; HAProxy by leastconn, as it is
// and with the servers' limit; and NGINX by least_conn. Behind all of them are the same
// four servers, one of which takes ten times as long.
func BenchmarkServers(b *testing.B) {
	machines, boards := startSwitchboards(b)
	slow := machines[len(machines)-1]
	for range b.N {
		for _, s := range boards {
			s.seen = offer(b, s.address, serversRate, serversWarm, 0)
			s.seen = offered{}
		}
		for round := range serversRounds {
			for _, s := range boards {
				s.seen.add(offer(b, s.address, serversRate, serversTurn, uint64(round+1)))
			}
		}
	}
	tab := newSheet(fmt.Sprintf("four servers, one of them 10 times slower, %.0f requests/s offered (60 %% of what they can do), %d turns of %v", float64(serversRate), serversRounds, serversTurn),
		"switch", "p50 ms", "p99 ms", "p99.9 ms", "of the slow one %", "requests/s", "errors")
	var plain, theirs *switchboard
	for _, s := range boards {
		switch s.name {
		case "entry, fewest":
			plain = s
		case "HAProxy leastconn":
			theirs = s
		}
	}
	for _, s := range boards {
		o := &s.seen
		tab.row(s.name, ms(o.quantile(0.5)), ms(o.quantile(0.99)), ms(o.quantile(0.999)), fmt.Sprintf("%.2f", 100*o.share(slow)),
			fmt.Sprintf("%.0f", o.perSecond()), fmt.Sprint(o.failed))
		b.ReportMetric(o.quantile(0.99).Seconds()*1e3, strings.NewReplacer(" ", "-", ",", "").Replace(s.name)+"-p99-ms")
		if policy, is := strings.CutPrefix(s.name, "entry, dispatcher "); is {
			results.add(line{
				name: "p99 with one slow server of four, " + policy, figure: 100 * o.quantile(0.99).Seconds() / theirs.seen.quantile(0.99).Seconds(), unit: "% of HAProxy leastconn's",
				lower: true, note: fmt.Sprintf("%s ms against %s, plain proxying %s", ms(o.quantile(0.99)), ms(theirs.seen.quantile(0.99)), ms(plain.seen.quantile(0.99))),
			})
		}
	}
	results.sheet(tab)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1e3) }

// TestTheServersBenchmarkWorks gives each a short turn.
func TestTheServersBenchmarkWorks(t *testing.T) {
	machines, boards := startSwitchboards(t)
	for _, s := range boards {
		o := offer(t, s.address, 100, 200*time.Millisecond, 1)
		if o.failed > 0 || len(o.delays) == 0 || o.perSecond() <= 0 || o.quantile(0.999) < o.quantile(0.5) || o.quantile(0.5) < serversTakes/2 {
			t.Errorf("%s: %d failed, %d delays, half of them within %v", s.name, o.failed, len(o.delays), o.quantile(0.5))
		}
		sum := 0.0
		for _, m := range machines {
			sum += o.share(m)
		}
		if sum < 0.999 {
			t.Errorf("%s: the servers have answered %v of all", s.name, sum)
		}
	}
}

// startSwitchboards starts the servers, the slow one last, and what is in front of them.
func startSwitchboards(t testing.TB) (machines []string, boards []*switchboard) {
	t.Helper()
	for _, takes := range []time.Duration{serversTakes, serversTakes, serversTakes, slowTakes} {
		machines = append(machines, listening(t, processCommand(t, "machine", takes.String(), "-")))
	}
	all := strings.Join(machines, ",")
	nats := listening(t, processCommand(t, "bus", "-", "-"))
	for _, policy := range []string{"A1", "auto", "prequal"} {
		boards = append(boards, &switchboard{name: "entry, dispatcher " + policy, address: listening(t, processCommand(t, "dispatch-"+policy, all, nats))})
	}
	boards = append(boards, &switchboard{name: "entry, fewest", address: listening(t, processCommand(t, "dispatch-", all, nats))})
	for _, limit := range []int{0, serversSlots} {
		name, suffix := "HAProxy leastconn", ""
		if limit > 0 {
			name, suffix = fmt.Sprint(name, " maxconn ", limit), fmt.Sprintf(" maxconn %d", limit)
		}
		boards = append(boards, &switchboard{name: name, address: testserver.HAProxy(t, func(address, _ string) string {
			var b strings.Builder
			for i, m := range machines {
				fmt.Fprintf(&b, "  server s%d %s%s\n", i, m, suffix)
			}
			return fmt.Sprintf(`global
  nbthread 2
  maxconn 8192
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout queue 60s
  http-reuse always
listen all
  bind %s
  balance leastconn
%s`, address, b.String())
		}).Address})
	}
	boards = append(boards, &switchboard{name: "NGINX least_conn", address: testserver.NGINX(t, 2, func(address, _ string) string {
		return fmt.Sprintf(`keepalive_requests 1000000000;
	upstream service { zone service 256k; least_conn; server %s; keepalive 256; keepalive_requests 1000000000; }
	server { listen %s; location / { proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection ""; } }`,
			strings.Join(machines, "; server "), address)
	}).Address})
	for _, b := range boards {
		warm(t, b.address)
	}
	return machines, boards
}

// warm waits for the first answer: an entry point that has just come asks the others of
// its site for places before it sends anything on.
func warm(t testing.TB, address string) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	if _, err := ask(&http.Client{Transport: transport, Timeout: time.Minute}, address); err != nil {
		t.Fatal(err)
	}
}

// offered is what became of requests that were offered at a rate.
type offered struct {
	delays   []time.Duration // from when each was to be sent, of those that failed too
	answered map[string]int  // by server
	failed   int
	sorted   bool
	took     time.Duration
}

func (o *offered) add(more offered) {
	o.delays = append(o.delays, more.delays...)
	o.sorted = false
	o.failed += more.failed
	o.took += more.took
	if o.answered == nil {
		o.answered = map[string]int{}
	}
	for s, n := range more.answered {
		o.answered[s] += n
	}
}

// quantile of the delays.
func (o *offered) quantile(q float64) time.Duration {
	if len(o.delays) == 0 {
		return 0
	}
	if !o.sorted {
		slices.Sort(o.delays)
		o.sorted = true
	}
	return o.delays[min(int(q*float64(len(o.delays))), len(o.delays)-1)]
}

// share of the answers that a server gave.
func (o *offered) share(server string) float64 {
	return float64(o.answered[server]) / float64(max(len(o.delays)-o.failed, 1))
}

// perSecond is how many were answered a second.
func (o *offered) perSecond() float64 {
	return float64(len(o.delays)-o.failed) / max(o.took.Seconds(), 1e-9)
}
