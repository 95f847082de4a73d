package switching

import (
	"cmp"
	"slices"
)

func (r *Rule) decide(o *Observation) Decision {
	d := Decision{Figures: r.latest(o)}
	f := &d.Figures
	running := f.On + f.Starting
	keep := max(int(r.m.want), r.opts.Least)
	switch {
	case len(r.m.history) == 0:
		d.Code = InsufficientSamples
	case running < keep && r.add(&d, o, min(keep, r.opts.Most)-running, true):
		// A number is kept: that is no change that a cooldown would be for.
		d.Code = Replaced
		if int(r.m.want) < r.opts.Least {
			d.Code = BelowLeast
		}
	case running == 0:
		d.Code = Panic
	case running > r.opts.Most && !r.cools(r.m.changed) && r.drop(&d, o):
		d.Code = AboveMost
	case r.opts.Fixed:
		d.Code = Fixed
	case len(r.m.history) < r.opts.Hold || r.thin():
		d.Code = InsufficientSamples
	default:
		if why := r.calls(f); why != "" {
			r.up(&d, o, why)
		} else {
			r.down(&d, o)
		}
	}
	return d
}

// latest is the figures of the period that was observed last; by the history, where the
// memory was read since: a snapshot has no figures, and without them nothing would seem to
// run.
func (r *Rule) latest(o *Observation) Figures {
	if r.m.figured {
		return r.m.figures
	}
	f := r.figures(o)
	if r.opts.Forecast && !r.thin() {
		f.Expected, f.Error, f.Forecasts = r.m.season.expect(r.lead())
	}
	return f
}

// calls says why another server is called for, "" if none is.
func (r *Rule) calls(f *Figures) Code {
	switch {
	case min(f.Penalty, r.m.pain) > r.nextCost():
		return PenaltyAboveCost
	case f.Potential > r.opts.Critical:
		return PotentialCritical
	case f.Forecasts && f.Expected > float64(f.Ceiling*f.Capacity):
		return PeakAhead
	}
	return ""
}

// nextCost is what the cheapest server costs per second.
func (r *Rule) nextCost() float64 {
	least := r.opts.Servers[0].Cost
	for _, s := range r.opts.Servers {
		least = min(least, s.Cost)
	}
	return least
}

// up turns servers on, or says why not.
func (r *Rule) up(d *Decision, o *Observation, why Code) {
	f := &d.Figures
	running := f.On + f.Starting
	switch {
	case running >= r.opts.Most:
		d.Code = NoServerLeft
	case r.cools(r.m.changed):
		d.Code = Cooldown
	case why != PeakAhead && r.enough(f) && f.Starting > 0:
		d.Code = AwaitingStart
	case why != PeakAhead && r.enough(f):
		d.Code = CatchingUp
	case r.add(d, o, min(r.lacking(f), r.opts.MostUp, r.opts.Most-running), false):
		d.Code = why
	default:
		d.Code = NoServerLeft
	}
}

// lacking is how many servers of a middling size the load asks for, at least 1.
func (r *Rule) lacking(f *Figures) int {
	running := f.On + f.Starting
	each := f.Capacity / float64(max(1, running))
	load := f.Offered
	if f.Forecasts {
		load = max(load, f.Expected)
	}
	if n := (load/f.Ceiling - f.Capacity) / each; n > 1 {
		return int(min(n, 4096)) // Rounded down: the rest follows if it is needed.
	}
	return 1
}

// enough says whether what runs and starts will do: it has room for the load, and until
// the queue is gone, what waits costs less than another server would until it could be
// turned off again. Without a queue and with nothing starting, penalties have another
// cause than too much work, and only more servers are known to help.
func (r *Rule) enough(f *Figures) bool {
	room := f.Capacity - f.Offered
	if !(room > 0) {
		return false
	}
	queued, each := r.queue()
	if f.Starting == 0 && !r.shrinks() {
		return false
	}
	took := queued * each / room // s until it is gone
	stays := seconds(max(r.opts.Cooldown, r.opts.Period))
	return float64(0.5*f.Penalty*took) < float64(r.nextCost()*stays)
}

// queue is how many requests wait, and what each takes in service, s.
func (r *Rule) queue() (queued, each float64) {
	var service, requests float64
	for z := range r.zones {
		s := r.sumsOf(z)
		queued += s.queued
		n := float64(max(1, s.requests))
		service += r.serviceTime(z, &s) * n
		requests += n
	}
	return queued, service / requests
}

// shrinks says whether there is a queue that is being worked off.
func (r *Rule) shrinks() bool {
	m := &r.m
	if !m.gauged() || len(m.history) < 2 || !m.history[0].gauged {
		return false
	}
	waits := func(p *period) (n float64) {
		for _, l := range p.zones {
			n += l.Queued
		}
		return n
	}
	first, last := waits(&m.history[0]), waits(&m.history[len(m.history)-1])
	return last >= 1 && last < first
}

// down turns a server off, or says why not.
func (r *Rule) down(d *Decision, o *Observation) {
	f := &d.Figures
	i := r.dearest(o)
	switch {
	case i < 0 || f.Starting > 0 || !r.fitsWithout(o, f, i):
		d.Code = WithinCost
	case r.cools(r.m.changed):
		d.Code = Cooldown
	case r.m.quiet < int64(r.opts.Hold):
		d.Code = HoldTime
	case r.busyAhead(o, i):
		d.Code = BusyAhead
	default:
		d.Off, d.Code = []int{i}, IdleServer
	}
}

// busyAhead says whether the forecast wants the server until it could be back.
func (r *Rule) busyAhead(o *Observation, i int) bool {
	if !r.opts.Forecast {
		return false
	}
	expected, _, counts := r.m.season.expect(r.lead() + int64(max(0, r.opts.Cooldown)))
	return counts && expected > float64(min(r.m.ceiling, r.opts.Utilisation)*r.capacity(o, i))
}

// lead is how far ahead a server has to be thought of, ns: until it has started and the
// next can follow.
func (r *Rule) lead() int64 {
	return int64(max(0, r.opts.StartDelay)) + int64(max(0, r.opts.Cooldown)) + int64(r.opts.Hold)*int64(r.opts.Period)
}

// add notes up to n servers to be turned on, best first; it reports whether there is one.
// Where a number is to be kept, one that failed long enough ago is tried again, and, if
// nothing runs at all, any.
func (r *Rule) add(d *Decision, o *Observation, n int, keeps bool) bool {
	for range n {
		i := r.best(o, d, false)
		if i < 0 {
			i = r.best(o, d, true)
		}
		if i < 0 && keeps && d.Figures.On+d.Figures.Starting+len(d.On) == 0 {
			i = r.any(o)
		}
		if i < 0 {
			break
		}
		d.On = append(d.On, i)
	}
	slices.Sort(d.On)
	return len(d.On) > 0
}

// best is the server to turn on next: one that is draining, for it is there; else one that
// is off; or, if failed, one that has failed and may be tried again; −1 if there is none.
func (r *Rule) best(o *Observation, d *Decision, failed bool) int {
	for _, z := range r.needy(o, d) {
		best, bestPlace := -1, 0.0
		bestDrains := false
		for i := range r.opts.Servers {
			s := &r.opts.Servers[i]
			if s.Zone != z || slices.Contains(d.On, i) || r.cools(r.m.servers[i].switched) || !r.may(o.Servers[i], i, failed) {
				continue
			}
			place, drains := s.Cost/float64(s.Slots), o.Servers[i] == Draining
			if best < 0 || drains && !bestDrains || drains == bestDrains && place < bestPlace {
				best, bestPlace, bestDrains = i, place, drains
			}
		}
		if best >= 0 {
			return best
		}
	}
	return -1
}

// may says whether a server in that state can be turned on.
func (r *Rule) may(s State, i int, failed bool) bool {
	if failed {
		return s == Failed && r.m.now-r.m.servers[i].failed >= int64(r.opts.Retry)
	}
	return s == Off || s == Draining
}

// any is the server that was switched longest ago of those that may run, whatever a
// cooldown says: where nothing runs, nothing can flap.
func (r *Rule) any(o *Observation) int {
	best := -1
	for i, s := range o.Servers {
		if s == Off || s == Draining {
			if best < 0 || r.m.servers[i].switched < r.m.servers[best].switched {
				best = i
			}
		}
	}
	return best
}

// needy is the zones in the order in which they get the next server: by penalty, then
// potential penalty, then utilisation; what was just given to a zone counts in the last.
func (r *Rule) needy(o *Observation, d *Decision) []int {
	zones := make([]int, r.zones)
	all := make([]sums, r.zones)
	places := r.places(o)
	for _, i := range d.On {
		places[r.opts.Servers[i].Zone] += float64(r.opts.Servers[i].Slots)
	}
	given := make([]float64, r.zones)
	for z := range zones {
		zones[z], all[z] = z, r.sumsOf(z)
	}
	for _, i := range d.On {
		given[r.opts.Servers[i].Zone]++
	}
	slices.SortStableFunc(zones, func(a, b int) int {
		x, y := &all[a], &all[b]
		return cmp.Or(
			cmp.Compare(nano(y.penalty/(1+given[b])), nano(x.penalty/(1+given[a]))),
			cmp.Compare(nano(y.waiting/(1+given[b])), nano(x.waiting/(1+given[a]))),
			cmp.Compare(nano(used(y.offered, places[b])), nano(used(x.offered, places[a]))),
		)
	})
	return zones
}

// dearest is the server to turn off next: of the zone with the lowest utilisation that has
// one, the dearest place; of equals the last in config order. −1 if there is none.
func (r *Rule) dearest(o *Observation) int {
	running := 0
	for _, s := range o.Servers {
		if s == On || s == Starting {
			running++
		}
	}
	if running <= r.opts.Least {
		return -1
	}
	best, bestUsed, bestPlace := -1, 0.0, 0.0
	places := r.places(o)
	use := make([]float64, r.zones)
	for z := range use {
		s := r.sumsOf(z)
		use[z] = nano(used(s.offered, places[z]))
	}
	for i, s := range o.Servers {
		if s != On || r.cools(r.m.servers[i].switched) {
			continue
		}
		x := &r.opts.Servers[i]
		place := x.Cost / float64(x.Slots)
		if u := use[x.Zone]; best < 0 || u < bestUsed || u == bestUsed && place >= bestPlace {
			best, bestUsed, bestPlace = i, u, place
		}
	}
	return best
}

// drop notes a server to be turned off; it reports whether there is one.
func (r *Rule) drop(d *Decision, o *Observation) bool {
	if i := r.dearest(o); i >= 0 {
		d.Off = []int{i}
	}
	return len(d.Off) > 0
}

// places is, by zone, the places of servers that are on or starting.
func (r *Rule) places(o *Observation) []float64 {
	out := make([]float64, r.zones)
	for i, s := range o.Servers {
		if s == On || s == Starting {
			out[r.opts.Servers[i].Zone] += float64(r.opts.Servers[i].Slots)
		}
	}
	return out
}

// used is a load over places; a load without a place is endlessly much, and none is none.
func used(load, places float64) float64 {
	switch {
	case places > 0:
		return load / places
	case load > 0:
		return 1e9
	}
	return 0
}
