package switching

import "time"

// State is what a server does.
type State uint8

// The states. Draining is turned off by decision and still at work. Failed was to be on and
// is not; Trying is so too, and somebody goes on trying, so that the rule does not.
const (
	Off State = iota
	Starting
	On
	Draining
	Failed
	Trying
)

// failed reports whether a server was to be on and is not.
func (s State) failed() bool { return s == Failed || s == Trying }

// Load is what a zone did in a period.
type Load struct {
	// Requests that ended, and their times in service, summed, s.
	Requests int64
	Service  float64
	// Penalty accrued, in cost units.
	Penalty float64
	// Means over the period, from gauges: requests that wait and that are in service, and
	// the penalty that those that wait would have.
	Queued, InService, Potential float64
}

// Observation is a period of a site.
type Observation struct {
	// At is the end of the period, ns.
	At int64
	// Zones by number.
	Zones []Load
	// Servers in config order: what they do at the end of the period.
	Servers []State
	// Gauged: queues are known. Without, Queued, InService and Potential mean nothing.
	Gauged bool
}

// Code says what was decided, or why nothing was.
type Code string

// The codes of changes.
const (
	PenaltyAboveCost  Code = "PenaltyAboveCost"
	PotentialCritical Code = "PotentialCritical"
	PeakAhead         Code = "PeakAhead"
	BelowLeast        Code = "BelowLeast"
	AboveMost         Code = "AboveMost"
	Replaced          Code = "Replaced"
	IdleServer        Code = "IdleServer"
)

// The codes of what was not changed. Panic: every server that is to run has failed.
const (
	InsufficientSamples Code = "InsufficientSamples"
	WithinCost          Code = "WithinCost"
	Cooldown            Code = "Cooldown"
	AwaitingStart       Code = "AwaitingStart"
	CatchingUp          Code = "CatchingUp"
	NoServerLeft        Code = "NoServerLeft"
	HoldTime            Code = "HoldTime"
	BusyAhead           Code = "BusyAhead"
	Fixed               Code = "Fixed"
	Panic               Code = "Panic"
)

// Figures are what a decision went by.
type Figures struct {
	// Penalty per second, and Potential, in cost units; of the site.
	Penalty, Potential float64
	// Offered is the load in places, Capacity the places of what runs; Ceiling is how much
	// of them may be used when one is turned off.
	Offered, Capacity, Ceiling float64
	// On, Starting and Failed are how many servers are so.
	On, Starting, Failed int
	// Expected is the greatest load that is forecast, in places, while a server would start;
	// Forecasts says whether it counts. Error is that of the forecast, relative to the load.
	Expected, Error float64
	Forecasts       bool
}

// Decision is what a step comes to.
type Decision struct {
	// On and Off are servers to be turned on and off, ascending. Both are empty if nothing
	// changes.
	On, Off []int
	// Code says why, or why not.
	Code Code
	// Wanted says of each server whether it is to run after the decision.
	Wanted []bool
	// Weights of the zones: shares that add up to 1.
	Weights []float64
	Figures Figures
}

// Changes reports whether servers are turned on or off.
func (d *Decision) Changes() bool { return len(d.On)+len(d.Off) > 0 }

// noTime is before every time.
const noTime = int64(-1) << 62

// Rule decides for one site. It is used by one goroutine.
type Rule struct {
	opts  Options
	zones int
	m     Memory
}

// New makes a rule in its first state. The error wraps ErrOptions and lists every fault.
func New(o Options) (*Rule, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	r := &Rule{opts: o}
	for _, s := range o.Servers {
		r.zones = max(r.zones, s.Zone+1)
	}
	r.m = newMemory(&o, r.zones)
	return r, nil
}

// Step takes a period in, decides, and takes the decision as carried out.
func (r *Rule) Step(o Observation) Decision {
	r.Observe(o)
	d := r.Decide(o)
	r.Applied(d)
	return d
}

// Observe takes a period in. Periods come in the order of their ends; an observation that
// does not fit the options (its zones or servers are not as many) is left out.
func (r *Rule) Observe(o Observation) {
	if !r.fits(&o) || o.At <= r.m.now {
		return
	}
	m := &r.m
	if m.now != noTime && o.At-m.now > 2*int64(r.opts.Period) {
		m.history, m.quiet = m.history[:0], 0 // What happened between is not known.
	}
	m.now = o.At
	m.remember(&o, r.opts.Hold)
	for i, s := range o.Servers {
		switch {
		case !s.failed():
			m.servers[i].failed = noTime
		case m.servers[i].failed == noTime:
			m.servers[i].failed = o.At
		}
	}
	f := r.figures(&o)
	r.learn(&o, &f)
	m.figures, m.figured = f, true
}

// Decide says what is to be done at the end of the period that was observed last, whose
// servers are in those states. It changes nothing.
func (r *Rule) Decide(o Observation) Decision {
	if !r.fits(&o) {
		return Decision{Code: InsufficientSamples, Wanted: make([]bool, len(r.opts.Servers)), Weights: r.shares()}
	}
	d := r.decide(&o)
	d.Weights = r.without(&o, d.Off)
	d.Wanted = make([]bool, len(o.Servers))
	for i, s := range o.Servers {
		// If all have failed, all are tried, again and again (P31).
		d.Wanted[i] = s == On || s == Starting || s.failed() && d.Code == Panic
	}
	for _, i := range d.On {
		d.Wanted[i] = true
	}
	for _, i := range d.Off {
		d.Wanted[i] = false
	}
	return d
}

// Applied takes a decision as carried out: a change starts the cooldown.
func (r *Rule) Applied(d Decision) {
	if !d.Changes() {
		return
	}
	m := &r.m
	for _, list := range [][]int{d.On, d.Off} {
		for _, i := range list {
			m.servers[i].switched = m.now
		}
	}
	m.quiet = 0
	if d.Code == Replaced {
		return
	}
	m.want = 0
	for _, w := range d.Wanted {
		if w {
			m.want++
		}
	}
	m.changed = m.now
	if d.Code == PenaltyAboveCost || d.Code == PotentialCritical {
		r.blame(&d.Figures)
	}
}

func (r *Rule) fits(o *Observation) bool {
	return len(o.Zones) == r.zones && len(o.Servers) == len(r.opts.Servers)
}

// cools says whether a change is too recent for another.
func (r *Rule) cools(since int64) bool {
	return since != noTime && r.m.now-since < int64(max(0, r.opts.Cooldown))
}

func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }
