package report

import (
	"math"
	"time"

	"penstock/consumers/panes"
	"penstock/schemas/window"
)

// stepSums are the requests and queues of a site in a step of time.
type stepSums struct {
	requests, late, served int64
	service                float64 // s, of all requests
	penalties              float64
	gauges                 int64 // windows with gauges
	waiting                float64
}

// divide cuts the time that was decided into steps, no more of them than a line has
// points: windows of a second are many.
func (s *Servers) divide() {
	if s.report.Windows == 0 {
		return
	}
	span, width := s.report.Upto.Sub(s.report.From).Microseconds(), window.Service.Width.Microseconds()
	n := max(1, (span+width*maxPoints-1)/(width*maxPoints))
	s.step = n * width
	s.report.StepS = float64(s.step) / 1e6
	for _, x := range s.order {
		x.steps = make([]stepSums, (span+s.step-1)/s.step)
	}
}

// Watch takes in the requests and queues of a closed window of the group fast; it is for
// WriteMatrices.
func (s *Servers) Watch(w *panes.Window) {
	if s == nil {
		return
	}
	t := w.Tables[window.Service.Name]
	if t == nil {
		return
	}
	from := s.report.From.UnixMicro()
	sites, machines, classes := t.Key("site"), t.Key("server"), t.Key("class")
	requests, failed, served, service := t.Column("requests"), t.Column("errors"), t.Column("served"), t.Column("service_us")
	limited, overdue, late := t.Column("limited"), t.Column("overdue_us"), t.Column("late")
	gauges, potential, most := t.Column("gauges"), t.Column("potential_us"), t.Column("potential_most")
	for i := range t.Len() {
		x := s.sites[sites.At(i)]
		if x == nil {
			continue // The decision's reasons count them.
		}
		var beyond stepSums // of no step
		step := &beyond
		if n := t.Start[i] - from; s.step > 0 && n >= 0 && n/s.step < int64(len(x.steps)) {
			step = &x.steps[n/s.step]
		}
		lateness, turned := float64(overdue[i])/1e6, int64(0)
		class, known := s.classes[classes.At(i)]
		if machines.At(i) == "" && failed[i] > 0 {
			limit := 1.0 // as the policy has it
			if known {
				limit = class.Limit.Seconds()
			}
			turned = failed[i]
			lateness += float64(float64(turned) * limit)
		}
		each := s.penalty
		if known {
			each = max(0, class.Penalty)
		}
		x.serve(step, requests[i], served[i], service[i])
		x.Recorded.Turned += turned
		x.Recorded.Limited += limited[i]
		x.Recorded.Late += late[i]
		x.Recorded.Penalties += float64(lateness * each)
		step.late += late[i]
		step.penalties += float64(lateness * each)
		if gauges[i] > 0 {
			x.gauge(step, t.Start[i], potential[i], most[i])
		}
	}
}

// serve takes in requests that ended; of those whose time is not known, the others'
// mean is taken.
func (x *siteServers) serve(step *stepSums, n, served, us int64) {
	x.Recorded.Requests += n
	step.requests += n
	step.served += served
	if served > 0 {
		step.service += float64(us) / 1e6 * float64(n) / float64(served)
	}
}

// gauge takes in what a queue said in the window that starts then (µs). Everyone with a
// queue in front of a server sends one a second: the sum over windows, by their number, is
// the site's mean.
func (x *siteServers) gauge(step *stepSums, start, potential, most int64) {
	if start != x.gauged {
		x.gauged = start
		x.gauges++
		step.gauges++
	}
	x.waiting += float64(potential) / 1e6
	step.waiting += float64(potential) / 1e6
	if most != window.NullInt {
		x.mostWait = max(x.mostWait, most)
	}
}

// fill works the figures out, of the time between two instants (µs).
func (x *siteServers) fill(from, upto, step int64) {
	seconds := float64(upto-from) / 1e6
	all := spell{on: len(x.machines)}
	for _, name := range x.names {
		all.cost += x.machines[name].cost
	}
	x.On = ServersOn{Configured: all.on, Least: x.spells[0].on, Most: x.spells[0].on, Last: x.spells[len(x.spells)-1].on}
	for i := range x.spells {
		x.On.Least, x.On.Most = min(x.On.Least, x.spells[i].on), max(x.On.Most, x.spells[i].on)
	}
	on, _, cost := x.over(from, upto)
	x.Cost = ServersCost{Hours: rounded(on / 3600), ServerTime: rounded(cost), AllOn: rounded(all.cost * seconds)}
	if seconds > 0 {
		x.On.Mean = rounded(on / seconds)
	}
	r := &x.Recorded
	if r.LateShare = Unknown(); r.Limited > 0 {
		r.LateShare = Figure(rounded(float64(r.Late) / float64(r.Limited)))
	}
	r.Penalties = rounded(r.Penalties)
	if x.gauges > 0 {
		r.Potential = &PotentialSeen{Mean: rounded(x.waiting / float64(x.gauges)), Most: rounded(float64(x.mostWait) / 1e6)}
	}
	for i := range x.steps {
		start := from + int64(i)*step
		x.Series = append(x.Series, x.point(&x.steps[i], start, min(start+step, upto)))
	}
}

// point is a step of time, from an instant (µs) to another.
func (x *siteServers) point(s *stepSums, from, upto int64) ServersPoint {
	seconds := float64(upto-from) / 1e6
	on, places, cost := x.over(from, upto)
	p := ServersPoint{
		Start: time.UnixMicro(from).UTC(), On: rounded(on / seconds), Requests: s.requests, Late: s.late,
		Penalties: rounded(s.penalties), ServerTime: rounded(cost), Utilisation: Unknown(), Potential: Unknown(),
	}
	if places > 0 && (s.served > 0 || s.requests == 0) {
		p.Utilisation = Figure(rounded(s.service / places))
	}
	if s.gauges > 0 {
		p.Potential = Figure(rounded(s.waiting / float64(s.gauges)))
	}
	return p
}

// over adds up the servers that were on between two instants (µs): seconds of servers and
// of places, and cost units.
func (x *siteServers) over(from, upto int64) (on, places, cost float64) {
	for i := range x.spells {
		sp, end := &x.spells[i], int64(math.MaxInt64)
		if i+1 < len(x.spells) {
			end = x.spells[i+1].from
		}
		took := float64(min(end, upto)-max(sp.from, from)) / 1e6
		if took <= 0 {
			continue
		}
		on += float64(took * float64(sp.on))
		places += float64(took * sp.places)
		cost += float64(took * sp.cost)
	}
	return on, places, cost
}
