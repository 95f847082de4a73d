package servers

import (
	"fmt"
	"strings"
	"time"

	"penstock/consumers/executor/serverswitch"
	"penstock/schemas/control"
)

// scene is what there is to be seen at one moment: by the metrics of entry points, the
// server switch's word and the tables on the bus, and the script of the day.
type scene struct {
	since   string // the beginning
	phase   string
	fault   string
	servers []serverScene
	sites   [2]siteScene
	table   string
}

// serverScene is a server behind dispatchers.
type serverScene struct {
	number                    int
	state                     string
	queued, inService, places float64
	share                     float64 // of the requests started in the last seconds
	estimated, took           float64 // ms, of those answered in the last seconds; below 0: none
	failure                   float64 // mean relative error of estimates
	wait                      float64 // ms, expected
}

// siteScene is a site.
type siteScene struct {
	on        int
	perSecond float64 // requests answered in the last seconds
	mean      float64 // ms, of them; below 0: none
	running   float64
	// Of the site with dispatchers, a second: late answers, and penalties; and what servers
	// and penalties have cost so far.
	late, penalty         float64
	serverCost, penalties float64
	failed                float64
}

// recent is the time that rates and means of a scene are about.
const recent = 4 * time.Second

// scene looks at everything.
func (s *show) scene() *scene {
	now := s.clock.Now().Sub(s.start)
	c := &scene{since: since(now), table: "no table yet"}
	p := &s.phases[phaseAt(s.phases, now)]
	c.phase = fmt.Sprintf("%s: %.0f requests a second at each site", p.Name, s.Rate*p.rate(min(now, p.to)))
	if f := s.fault.Load(); f != nil {
		c.fault = *f
	}
	if t := s.world.seer.table(); t != nil {
		c.table = tableText(t, s.start.Add(now))
	}
	all := s.seen()
	if len(all) == 0 {
		return c
	}
	last := all[len(all)-1]
	before := all[0]
	for i := len(all) - 1; i >= 0 && last.at-all[i].at <= recent; i-- {
		before = all[i]
	}
	c.compare(before, last)
	return c
}

// compare fills in what is to be seen of two looks.
func (c *scene) compare(before, last *look) {
	span := max((last.at - before.at).Seconds(), 1e-3)
	started := 0.0
	for i := range last.servers {
		started += last.servers[i].started - before.servers[i].started
	}
	for i := range last.servers {
		a, b := &before.servers[i], &last.servers[i]
		x := serverScene{number: i + 1, state: stateText(b), queued: b.queued, inService: b.inService, places: b.places, estimated: -1, took: -1, failure: b.failure, wait: 1000 * b.wait}
		if started > 0 {
			x.share = (b.started - a.started) / started
		}
		if n := b.answers - a.answers; n > 0 && b.took > a.took {
			x.estimated, x.took = 1000*(b.estimated-a.estimated)/n, 1000*(b.took-a.took)/n
		}
		if b.on() {
			c.sites[0].on++
		}
		c.servers = append(c.servers, x)
	}
	c.sites[1].on = len(last.sites[1].attempts)
	for i := range c.sites {
		a, b, x := &before.sites[i], &last.sites[i], &c.sites[i]
		x.perSecond, x.mean, x.running, x.failed = (b.requests-a.requests)/span, -1, b.running, b.failed
		if n := b.requests - a.requests; n > 0 {
			x.mean = 1000 * (b.seconds - a.seconds) / n
		}
	}
	x := &c.sites[0]
	x.late, x.penalty = (last.late-before.late)/span, (last.penalty-before.penalty)/span
	x.serverCost, x.penalties = cost*last.seconds, last.penalty
}

// stateText is the state of a server in words.
func stateText(s *serverLook) string {
	switch s.phase {
	case serverswitch.Warming:
		return "starting"
	case serverswitch.Stopping:
		return "draining"
	}
	return string(s.phase)
}

// tableText is a table in words.
func tableText(c *control.Command, now time.Time) string {
	on := 0
	if c.Servers != nil {
		on = len(c.Servers.On)
	}
	return fmt.Sprintf("table %d, %.0f s ago, %d on; %s", c.Epoch, max(0, now.Sub(c.Window.End).Seconds()), on, reasonText(&c.Reason))
}

const barWidth = 2 * workers

// bar shows what is in service, and what waits behind it.
func bar(inService, queued float64) string {
	full := min(workers, max(0, int(inService+0.5)))
	waits := min(barWidth-workers, max(0, int(queued+0.5)))
	return strings.Repeat("█", full) + strings.Repeat("·", workers-full) + strings.Repeat("▒", waits) + strings.Repeat(" ", barWidth-workers-waits)
}

// picture draws a scene.
func (c *scene) picture() []string {
	out := []string{"", fmt.Sprintf("  %s   %s", c.since, c.phase)}
	if c.fault != "" {
		out = append(out, "          "+c.fault)
	}
	out = append(out, "", fmt.Sprintf("  %-6s %-9s %-*s %10s %6s %7s %11s %9s %7s %9s", "server", "state", barWidth, "load", "in service", "queue", "share", "estimated", "took", "error", "wait"))
	for _, s := range c.servers {
		failure, wait := percent(s.failure), fmt.Sprintf("%.0f ms", s.wait)
		if s.state == string(serverswitch.Off) || s.places == 0 {
			failure, wait = "–", "–"
		}
		out = append(out, fmt.Sprintf("  %-6d %-9s %s %10s %6.0f %7s %11s %9s %7s %9s", s.number, s.state, bar(s.inService, s.queued),
			fmt.Sprintf("%.0f of %.0f", s.inService, s.places), s.queued, percent(s.share), millis(s.estimated), millis(s.took), failure, wait))
	}
	a, b := &c.sites[0], &c.sites[1]
	out = append(out, "",
		fmt.Sprintf("  %-9s %d of %d on  %6.1f/s  mean %8s  late %5.1f/s  penalties %6.2f/s  servers %.0f/s", dispatched, a.on, len(slowness), a.perSecond, millis(a.mean), a.late, a.penalty, cost*float64(a.on)),
		fmt.Sprintf("  %-9s %d of %d on  %6.1f/s  mean %8s  in service %4.0f  %31s", plain, b.on, len(slowness), b.perSecond, millis(b.mean), b.running, fmt.Sprintf("servers %.0f/s", cost*float64(b.on))),
		fmt.Sprintf("  cost so far of %s: servers %.0f + penalties %.1f", dispatched, a.serverCost, a.penalties),
		"  "+c.table, "")
	for i := range out {
		out[i] = strings.TrimRight(out[i], " ")
	}
	return out
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

func millis(v float64) string {
	if v < 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f ms", v)
}

// line is the scene in short.
func (c *scene) line() string {
	var servers []string
	for _, s := range c.servers {
		if s.state != string(serverswitch.Off) && s.state != string(serverswitch.Unknown) {
			servers = append(servers, fmt.Sprintf("%d %s %.0f+%.0f %s %s/%s", s.number, s.state, s.inService, s.queued, percent(s.share), millis(s.estimated), millis(s.took)))
		}
	}
	a, b := &c.sites[0], &c.sites[1]
	text := fmt.Sprintf("%s  %s; %s; %s %.1f/s, %s, penalties %.2f/s, cost %.0f + %.1f; %s %.1f/s, %s", c.since, c.phase, strings.Join(servers, ", "),
		dispatched, a.perSecond, millis(a.mean), a.penalty, a.serverCost, a.penalties, plain, b.perSecond, millis(b.mean))
	if c.fault != "" {
		text += "; " + c.fault
	}
	return text + "; " + c.table
}
