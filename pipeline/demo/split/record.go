package split

import (
	"fmt"
	"time"

	"penstock/consumers/panes"
	"penstock/pipeline/demo/load"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// link is the calls of a component at a site to another component. From is
// control.Outside for calls from outside.
type link struct{ from, site, to string }

// String says it in words.
func (l link) String() string { return fmt.Sprintf("%s at %s to %s", l.from, l.site, l.to) }

// shares is a row of a table, by site.
type shares map[string]float64

// order is a command: a table that the decider wants in force.
type order struct {
	window control.Window // that it was decided on
	scope  string
	epoch  uint64
	rows   map[link]shares
	probes map[link]shares
	reason control.Reason
	// applied is when the entry point of a site had it in force, by site.
	applied map[string]time.Time
}

// orderOf reads a command.
func orderOf(c *control.Command) order {
	o := order{window: c.Window, scope: c.Scope, epoch: c.Epoch, reason: c.Reason, rows: map[link]shares{}, probes: map[link]shares{}, applied: map[string]time.Time{}}
	if c.Split == nil {
		return o
	}
	for _, r := range c.Split.Table {
		row := shares{}
		for _, x := range r.Ratios {
			row[x.Site] = x.Share
		}
		o.rows[link{c.Scope, r.FromSite, r.To}] = row
	}
	for _, p := range c.Split.Probes {
		l := link{c.Scope, p.FromSite, p.To}
		if o.probes[l] == nil {
			o.probes[l] = shares{}
		}
		o.probes[l][p.Site] = p.Share
	}
	return o
}

// shot is what an answered request is told from others by.
type shot struct {
	site   int // at which it entered
	kind   int // of services.Kinds
	slowed int // the site that served the component that gets slower, −1 if none did
}

// calls are those of a link to a site in a window, by rows.
type calls struct {
	requests, errors   int64
	service, network   int64 // µs
	serviceN, networkN int64
}

// seen is a closed window, as rows make it.
type seen struct {
	start, end time.Time
	incomplete bool
	calls      map[link]map[string]calls // by the callee's site
}

// seenOf reads a window.
func seenOf(w *panes.Window) seen {
	span := w.Span()
	out := seen{start: span.Start, end: span.End, incomplete: len(w.Incomplete) > 0, calls: map[link]map[string]calls{}}
	t := w.Tables[window.Delay.Name]
	if t == nil {
		return out
	}
	key := func(name string, i int) string { return t.Key(name).At(i) }
	column := func(name string, i int) int64 { return t.Column(name)[i] }
	for i := range t.Len() {
		l := link{key("from_component", i), key("from_site", i), key("to_component", i)}
		if l.from == "" {
			l.from = control.Outside
		}
		by := out.calls[l]
		if by == nil {
			by = map[string]calls{}
			out.calls[l] = by
		}
		to := key("to_site", i)
		c := by[to]
		c.requests += column("requests", i)
		c.errors += column("errors", i)
		c.service += column("service_us", i)
		c.network += column("network_us", i)
		c.serviceN += t.HistColumn("service")[i].Count()
		c.networkN += t.HistColumn("network")[i].Count()
		by[to] = c
	}
	return out
}

// share is the part of a link's calls that went to a site; ok is false without
// calls.
func (s *seen) share(l link, site string) (share float64, ok bool) {
	var all int64
	for _, c := range s.calls[l] {
		all += c.requests
	}
	if all == 0 {
		return 0, false
	}
	return float64(s.calls[l][site].requests) / float64(all), true
}

// replica is the mean service time of a component at a site, in ms; ok is false
// without a sample.
func (s *seen) replica(component, site string) (ms float64, ok bool) {
	var sum, n int64
	for l, by := range s.calls {
		if l.to == component {
			sum += by[site].service
			n += by[site].serviceN
		}
	}
	if n == 0 {
		return 0, false
	}
	return float64(sum) / float64(n) / 1000, true
}

// record is what was seen of a world.
type record struct {
	policy  string
	sites   []string
	orders  []order // in the order of the bus
	windows []seen  // by end
	shots   []load.Sample[shot]
}

// force is the share of a site in a link at an instant, by the commands that the
// link's entry point had applied then and that were decided on windows which had
// ended by a time. Without any, calls stay at their site. since is from when on it
// was so; zero: from the beginning.
func (r *record) force(l link, site string, decided, at time.Time) (share float64, since time.Time) {
	if l.site == site {
		share = 1
	}
	for i := range r.orders {
		o := &r.orders[i]
		row := o.rows[l]
		applied := o.applied[l.site]
		if row == nil || applied.IsZero() || applied.After(at) || o.window.End.After(decided) {
			continue
		}
		if row[site] != share {
			share, since = row[site], applied
		}
	}
	return share, since
}

// sent is the share of a site in the answered requests of another that needed the
// component which gets slower and were due in [from, to), and how many there were.
func (r *record) sent(at, site string, from, to time.Time) (share float64, of int) {
	there := 0
	for i := range r.shots {
		s := &r.shots[i]
		if s.Of.slowed < 0 || r.sites[s.Of.site] != at || s.Due.Before(from) || !s.Due.Before(to) {
			continue
		}
		of++
		if r.sites[s.Of.slowed] == site {
			there++
		}
	}
	if of == 0 {
		return 0, 0
	}
	return float64(there) / float64(of), of
}

// rows is the share of a site in a link by the rows of the first whole window
// from an instant on; ok is false if there is none with calls.
func (r *record) rows(l link, site string, from time.Time) (share float64, ok bool) {
	for i := range r.windows {
		if !r.windows[i].start.Before(from) {
			return r.windows[i].share(l, site)
		}
	}
	return 0, false
}

// quantile is that of the latencies of requests that entered at a site and were due
// in [from, to), and how many there were.
func (r *record) quantile(q float64, at string, from, to time.Time) (time.Duration, int) {
	l := load.LatenciesOf(r.shots, func(s *load.Sample[shot]) bool {
		return r.sites[s.Of.site] == at && !s.Due.Before(from) && s.Due.Before(to)
	})
	return l.Quantile(q), len(l)
}

// reversals are the shares that went up and down again, or down and up, within a
// cooldown.
func (r *record) reversals(cooldown time.Duration) (out []string) {
	type place struct {
		link link
		site string
	}
	last := map[place]float64{}
	rose, fell := map[place]time.Time{}, map[place]time.Time{}
	for i := range r.orders {
		o := &r.orders[i]
		for l, row := range o.rows {
			for _, site := range r.sites {
				p := place{l, site}
				now := row[site]
				before, known := last[p]
				last[p] = now
				if !known || now == before {
					continue
				}
				same, other := rose, fell
				if now < before {
					same, other = fell, rose
				}
				if at, ok := other[p]; ok && o.window.End.Sub(at) < cooldown {
					out = append(out, fmt.Sprintf("%s: the share of %s went to %.2f %v after it had gone the other way", l, site, now, o.window.End.Sub(at)))
				}
				same[p] = o.window.End
			}
		}
	}
	return out
}
