package servers

import (
	"math"
	"slices"

	"penstock/consumers/decider/servers/switching"
	"penstock/schemas/window"
)

// stale is the age from which on a gauge is not used, µs (DESIGN §4.3).
const stale = 3_000_000

// pacePart is the weight of a window in the number of gauges a second.
const pacePart = 0.2

// learned is what one window said.
type learned struct {
	bad     int64
	unknown map[string]int64 // rows by site
	sites   []siteLearned
}

type siteLearned struct {
	rows     int64
	unlisted map[string]int64 // rows by server
	turned   int64            // requests that no server got
	zones    []switching.Load
	gauges   []gauged // by server
}

type gauged struct {
	count                        int64
	queued, inService, potential float64 // sums
}

// row is a row of service, by the names of its columns.
type row struct{ requests, errors, served, service, overdue, gauges, queued, inService, potential int64 }

// sane reports whether a row's numbers can be: none below 0, no more served or failed than
// there were.
func (r *row) sane() bool {
	return min(r.requests, r.errors, r.served, r.service, r.overdue, r.gauges, r.queued, r.inService, r.potential) >= 0 && r.served <= r.requests && r.errors <= r.requests
}

// learn adds the rows of a window up by site, and takes gauges in.
func (t *Policy) learn(tables map[string]*window.Table) *learned {
	l := &learned{unknown: map[string]int64{}, sites: make([]siteLearned, len(t.rules))}
	for i := range l.sites {
		l.sites[i] = siteLearned{
			unlisted: map[string]int64{}, zones: make([]switching.Load, len(t.config.Sites[i].Zones)), gauges: make([]gauged, len(t.names[i])),
		}
	}
	if x := tables[window.Service.Name]; x != nil {
		t.rows(x, l)
	}
	for i := range l.sites {
		if l.sites[i].rows > 0 {
			t.state.sites[i].seen = t.state.now
		}
		t.gauge(i, l.sites[i].gauges)
	}
	return l
}

func (t *Policy) rows(x *window.Table, l *learned) {
	sites, servers, classes := x.Key("site"), x.Key("server"), x.Key("class")
	columns := [...][]int64{
		x.Column("requests"), x.Column("errors"), x.Column("served"), x.Column("service_us"), x.Column("overdue_us"),
		x.Column("gauges"), x.Column("queued"), x.Column("in_service"), x.Column("potential_us"),
	}
	for n := range x.Len() {
		r := row{columns[0][n], columns[1][n], columns[2][n], columns[3][n], columns[4][n], columns[5][n], columns[6][n], columns[7][n], columns[8][n]}
		if !r.sane() {
			l.bad++
			continue
		}
		i, ok := t.index[sites.At(n)]
		if !ok {
			l.unknown[sites.At(n)]++
			continue
		}
		s := &l.sites[i]
		s.rows++
		name := servers.At(n)
		if name == "" {
			t.turnedAway(s, classes.At(n), &r)
			continue
		}
		j, ok := t.servers[i][name]
		if !ok {
			if !slices.Contains(t.config.Coders, name) {
				s.unlisted[name]++
			}
			continue
		}
		s.gauges[j].add(&r)
		zone := &s.zones[t.options[i].Servers[j].Zone]
		zone.Requests += r.requests
		if r.served > 0 { // Of requests whose time is not known the others' mean is taken.
			zone.Service += float64(r.service) / 1e6 * float64(r.requests) / float64(r.served)
		}
		zone.Penalty += float64(r.overdue) / 1e6 * t.penalty(classes.At(n))
	}
}

// turnedAway adds up requests that no server got, over all zones.
func (t *Policy) turnedAway(s *siteLearned, class string, r *row) {
	s.turned += r.errors
	limit := 1.0
	if c, ok := t.classes[class]; ok {
		limit = seconds(c.Limit)
	}
	late := float64(r.overdue)/1e6 + float64(float64(r.errors)*limit)
	each := late * t.penalty(class) / float64(len(s.zones))
	for z := range s.zones {
		s.zones[z].Penalty += each
	}
}

// penalty of a class, in cost units per second of lateness.
func (t *Policy) penalty(class string) float64 {
	if c, ok := t.classes[class]; ok {
		return max(0, c.Penalty)
	}
	return t.config.Penalty
}

func (g *gauged) add(r *row) {
	g.count += r.gauges
	g.queued += float64(r.queued)
	g.inService += float64(r.inService)
	g.potential += float64(r.potential) / 1e6
}

// gauge takes the gauges of a site's servers in. Each dispatcher sends one a second, but
// not one in each second: what a window has of a server is a mean, times the number of
// dispatchers.
func (t *Policy) gauge(i int, gauges []gauged) {
	s := &t.state.sites[i]
	var sum, of float64
	for j := range gauges {
		if gauges[j].count > 0 || s.servers[j].fresh(t.state.now) {
			sum, of = sum+float64(gauges[j].count), of+1
		}
	}
	if of > 0 {
		pace := sum / of / seconds(t.config.Window)
		if s.pace == 0 {
			s.pace = pace
		}
		s.pace += float64(pacePart * (pace - s.pace))
	}
	dispatchers := max(1, math.Round(s.pace))
	for j := range gauges {
		if g := &gauges[j]; g.count > 0 {
			x, each := &s.servers[j], dispatchers/float64(g.count)
			x.gauged, x.queued, x.inService, x.potential = t.state.now, g.queued*each, g.inService*each, g.potential*each
		}
	}
}

// fresh reports whether a server's last gauge can still be used.
func (x *server) fresh(now int64) bool { return x.gauged != noTime && now-x.gauged < stale }

// observation is what the rule of a site goes by: what zones did, to which queues are added,
// and what servers do.
func (t *Policy) observation(i int, zones []switching.Load) switching.Observation {
	s := &t.state.sites[i]
	o := switching.Observation{At: t.state.now * 1000, Zones: zones, Servers: make([]switching.State, len(s.servers))}
	for j := range s.servers {
		x := &s.servers[j]
		if o.Servers[j] = x.state; x.state == switching.Failed && x.wanted {
			o.Servers[j] = switching.Trying // by the server switch, by the table in force
		}
		if !x.fresh(t.state.now) {
			continue
		}
		o.Gauged = true
		zone := &o.Zones[t.options[i].Servers[j].Zone]
		zone.Queued += x.queued
		zone.InService += x.inService
		zone.Potential += x.potential
	}
	return o
}
