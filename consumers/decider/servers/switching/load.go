package switching

import "math"

// Bounds of what is learned.
const (
	leastCeiling = 0.2
	// recovery is how long the ceiling takes to rise most of the way by itself, s.
	recovery = 12 * 3600.0
	// steadiness is the weight of a period in a zone's mean time in service.
	steadiness = 0.1
	// quick and calm are over how many cooldowns penalties and the load are smoothed, to be
	// turned on and off by: a burst that costs less than a server will is none to turn one
	// on for, and a lull that is shorter than it would be off none to turn one off in.
	quick, calm = 0.5, 1.0
)

// sums are what the history says of a zone.
type sums struct {
	requests                   int64
	service, penalty           float64 // of the requests, summed
	queued, inService, waiting float64 // means; waiting is potential penalty
	offered                    float64 // places
}

// spanned is the time that the history covers, s.
func (r *Rule) spanned() float64 { return float64(len(r.m.history)) * seconds(r.opts.Period) }

// gauged reports whether queues are known of the history's last period.
func (m *Memory) gauged() bool { return len(m.history) > 0 && m.history[len(m.history)-1].gauged }

// sumsOf adds the history of a zone up.
func (r *Rule) sumsOf(zone int) (s sums) {
	m := &r.m
	if len(m.history) == 0 {
		return s
	}
	gauges := 0.0
	first, last := math.NaN(), 0.0
	for i := range m.history {
		l := &m.history[i].zones[zone]
		s.requests += l.Requests
		s.service += l.Service
		s.penalty += l.Penalty
		if !m.history[i].gauged {
			continue
		}
		gauges++
		s.queued += l.Queued
		s.inService += l.InService
		s.waiting += l.Potential
		if last = l.Queued + l.InService; math.IsNaN(first) {
			first = last
		}
	}
	took := r.spanned()
	if gauges == 0 {
		s.inService = s.service / took // Little's law
		s.offered = s.inService
		return s
	}
	s.queued /= gauges
	s.inService /= gauges
	s.waiting /= gauges
	// What came is what went and what there is more of now; each takes a place for as long
	// as it is in service.
	rate := float64(s.requests) / took
	if gauges > 1 {
		rate += (last - first) / float64((gauges-1)*seconds(r.opts.Period))
	}
	s.offered = s.inService
	if each := r.serviceTime(zone, &s); each > 0 {
		s.offered = max(0, rate*each)
	}
	return s
}

// serviceTime is what a request of a zone takes in service, s; 0 if nobody knows.
func (r *Rule) serviceTime(zone int, s *sums) float64 {
	if s.requests >= r.opts.MinSamples {
		return s.service / float64(s.requests)
	}
	return r.m.zones[zone].service
}

// figures adds the site up.
func (r *Rule) figures(o *Observation) Figures {
	f := Figures{Ceiling: r.m.ceiling, Capacity: r.capacity(o, -1)}
	took := max(r.spanned(), seconds(r.opts.Period)) // There may be no history.
	for z := range r.zones {
		s := r.sumsOf(z)
		f.Penalty += s.penalty / took
		f.Potential += s.waiting
		f.Offered += s.offered
	}
	for _, s := range o.Servers {
		switch s {
		case On:
			f.On++
		case Starting:
			f.Starting++
		case Failed, Trying:
			f.Failed++
		}
	}
	return f
}

// capacity is the places of the servers that are on or starting, without one; −1: of all.
func (r *Rule) capacity(o *Observation, without int) (places float64) {
	for i, s := range o.Servers {
		if (s == On || s == Starting) && i != without {
			places += float64(r.opts.Servers[i].Slots)
		}
	}
	return places
}

// learn brings what is learned on by a period.
func (r *Rule) learn(o *Observation, f *Figures) {
	m := &r.m
	running := int64(f.On + f.Starting)
	if m.want == 0 && running > 0 {
		m.want = running
	}
	for z := range r.zones {
		l := &o.Zones[z]
		if l.Requests == 0 || !(l.Service > 0) {
			continue
		}
		each, zone := l.Service/float64(l.Requests), &m.zones[z]
		if zone.service == 0 {
			zone.service = each
			continue
		}
		part := min(1, float64(l.Requests)/float64(r.opts.MinSamples)) * steadiness
		zone.service += float64(part * (each - zone.service))
	}
	if r.thin() {
		r.weigh(o)
		return
	}
	if m.level < 0 {
		m.level = f.Offered
	}
	m.level += float64(r.part(calm) * (f.Offered - m.level))
	var accrued float64
	for z := range o.Zones {
		accrued += o.Zones[z].Penalty
	}
	m.pain += float64(r.part(quick) * (accrued/seconds(r.opts.Period) - m.pain))
	r.raise(o, f)
	f.Ceiling = m.ceiling
	if r.opts.Forecast {
		m.season.add(o.At, f.Offered)
		f.Expected, f.Error, f.Forecasts = m.season.expect(r.lead())
	}
	r.idle(o, f)
	r.weigh(o)
}

// part is the weight of a period in a mean over about so many cooldowns, or Hold periods if
// they are longer.
func (r *Rule) part(cooldowns float64) float64 {
	hold := float64(r.opts.Hold) * seconds(r.opts.Period)
	return min(1, seconds(r.opts.Period)/max(hold, cooldowns*seconds(r.opts.Cooldown)))
}

// raise lets the ceiling rise: by itself, and faster where it is passed without penalties.
func (r *Rule) raise(o *Observation, f *Figures) {
	m := &r.m
	part := min(1, seconds(r.opts.Period)/recovery)
	if on := r.capacityOn(o); on > 0 && f.Offered > float64(m.ceiling*on) && f.Penalty < float64(r.opts.Hysteresis*r.opts.Cost) && f.Potential < float64(r.opts.Hysteresis*r.opts.Critical) {
		part = max(part, 0.005)
	}
	m.ceiling += float64(part * (1 - m.ceiling))
}

// blame lowers the ceiling after penalties at a utilisation below it.
func (r *Rule) blame(f *Figures) {
	if f.Starting > 0 || !(f.Capacity > 0) {
		return // What ran did not yet carry the load.
	}
	if u := f.Offered / f.Capacity; u < r.m.ceiling {
		r.m.ceiling = max(leastCeiling, r.m.ceiling-float64(0.5*(r.m.ceiling-u)))
	}
}

// capacityOn is the places of the servers that are on.
func (r *Rule) capacityOn(o *Observation) (places float64) {
	for i, s := range o.Servers {
		if s == On {
			places += float64(r.opts.Servers[i].Slots)
		}
	}
	return places
}

// thin says that there is too little to decide by (P34): no gauges, and hardly a request.
func (r *Rule) thin() bool {
	if r.m.gauged() {
		return false
	}
	var n int64
	for i := range r.m.history {
		for _, l := range r.m.history[i].zones {
			n += l.Requests
		}
	}
	return n < r.opts.MinSamples
}

// idle counts the periods running in which a server could have been turned off.
func (r *Rule) idle(o *Observation, f *Figures) {
	if i := r.dearest(o); i >= 0 && f.Starting == 0 && r.fitsWithout(o, f, i) {
		r.m.quiet++
		return
	}
	r.m.quiet = 0
}

// fitsWithout says whether the load, as it is and as it was for a while, and the penalties
// allow to do without a server.
func (r *Rule) fitsWithout(o *Observation, f *Figures, i int) bool {
	h := r.opts.Hysteresis
	return f.Penalty < float64(h*r.opts.Servers[i].Cost) && f.Potential < float64(h*r.opts.Critical) &&
		max(f.Offered, r.m.level) < float64(min(r.m.ceiling, r.opts.Utilisation)*r.capacity(o, i))
}
