package serving

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"penstock/consumers/decider/servers/switching"
	"penstock/consumers/executor/dispatcher/pool"
	"penstock/pipeline/experiment/serving/loads"
	"penstock/pipeline/experiment/serving/simservers"
)

// Mode is who turns servers on and off.
type Mode string

// The modes.
const (
	AllOn    Mode = "all on"
	Switched Mode = "switched"
)

var modes = []Mode{AllOn, Switched}

// drawer draws the requests of a seed.
type drawer interface {
	Draw(seed uint64) []loads.Request
}

// trial is a scenario, ready to run.
type trial struct {
	name, text          string
	overloaded, heldOut bool
	firstSeed           uint64
	length              time.Duration
	load                drawer
	servers             []simservers.Server
}

// trials are the scenarios, and the recordings if there are any.
func (p *Params) trials(recorded map[string]*loads.Recording) []trial {
	var out []trial
	for i := range p.Scenarios {
		s := &p.Scenarios[i]
		t := trial{name: s.Name, text: s.Text, overloaded: s.Overloaded, heldOut: s.HeldOut, firstSeed: p.firstSeed(s.HeldOut), length: s.Length, servers: p.servers(p.speeds(s), s.Slow)}
		t.load = &loads.Made{
			Course: s.Course, Capacity: p.capacity(t.servers), Length: s.Length, Bursts: s.Bursts, Mix: s.Mix, Pages: p.Pages, Stations: &p.Stations,
		}
		out = append(out, t)
	}
	for i := range p.Recorded {
		r := &p.Recorded[i]
		rec := recorded[r.kind()]
		if rec == nil {
			continue
		}
		t := trial{name: r.Name, overloaded: r.Overloaded, heldOut: true, firstSeed: p.firstSeed(true), length: r.Length, servers: p.servers(p.System.Speeds, nil)}
		t.text = fmt.Sprintf("%s, %d rows, %g per cent of the capacity on average", rec.Name, len(rec.Rows), r.Load)
		replay := &loads.Replay{Recording: rec, Rate: r.Load / 100 * p.capacity(t.servers), Length: r.Length, Pages: p.Pages, Stations: &p.Stations}
		for _, name := range r.Pages {
			replay.Kinds = append(replay.Kinds, uint8(p.page(name)))
		}
		t.load = replay
		out = append(out, t)
	}
	return out
}

func (p *Params) firstSeed(heldOut bool) uint64 {
	if heldOut {
		return p.HeldOutSeed
	}
	return p.FirstSeed
}

// servers are those of all zones.
func (p *Params) servers(speeds []float64, slow *Slow) []simservers.Server {
	var out []simservers.Server
	for z := range p.System.Zones {
		for i, v := range speeds {
			s := simservers.Server{Name: string(rune('a'+z)) + strconv.Itoa(i+1), Zone: z, Speed: v}
			if slow != nil && z == 0 && i < slow.Servers {
				s.Slow = &simservers.Window{From: slow.From.Nanoseconds(), To: slow.To.Nanoseconds(), Factor: slow.Factor}
			}
			out = append(out, s)
		}
	}
	return out
}

// capacity is what servers carry, requests a second.
func (p *Params) capacity(servers []simservers.Server) float64 {
	sum := 0.0
	for i := range servers {
		sum += servers[i].Speed
	}
	return p.System.Carried * sum / p.Stations.Bottleneck(p.Pages)
}

// options of a run of a policy.
func (p *Params) options(t *trial, policy *Policy, mode Mode, seed uint64, requests []loads.Request) (simservers.Options, error) {
	o := simservers.Options{
		Requests: requests, Length: t.length.Nanoseconds(), Servers: append([]simservers.Server(nil), t.servers...), Databases: p.System.Databases, M: p.System.InService,
		Hop: p.System.Hop.Nanoseconds(), ByPenalty: p.System.FirstLevel == ByPenalty, Cost: p.ServerCost,
		Period: p.Switching.Period.Nanoseconds(), StartDelay: p.Switching.StartDelay.Nanoseconds(),
	}
	var classes []pool.Class
	for i := range p.Pages {
		x := &p.Pages[i]
		o.Classes = append(o.Classes, simservers.Class{Limit: x.Limit.Seconds(), Penalty: x.Penalty})
		classes = append(classes, pool.Class{Limit: x.Limit.Seconds(), Penalty: x.Penalty})
	}
	for i := range o.Servers {
		o.Servers[i].Weight = 1
		if policy.of() == pool.WRR { // The others are not told.
			o.Servers[i].Weight = o.Servers[i].Speed
		}
	}
	for z := range p.System.Zones {
		w, err := pool.New(pool.Options{
			Policy: policy.of(), Elapsed: policy.Elapsed, FreeFirst: policy.FreeFirst, Near: policy.Near, Abreast: policy.Abreast, Trial: policy.Trial,
			Classes: classes, Queue: len(requests) + 1, Ramp: p.System.Ramp, Seed: seed + uint64(z),
		})
		if err != nil {
			return o, fmt.Errorf("%w: %w", ErrParams, err)
		}
		o.Zones = append(o.Zones, w)
	}
	if mode == Switched {
		r, err := p.rule(t.servers)
		if err != nil {
			return o, fmt.Errorf("%w: %w", ErrParams, err)
		}
		o.Switcher = r
	}
	return o, nil
}

// ruled is the decider's rule in a simulation.
type ruled struct {
	rule *switching.Rule
	all  []int
	seen switching.Observation
}

func (p *Params) rule(servers []simservers.Server) (*ruled, error) {
	w := &p.Switching
	o := switching.Options{
		Cost: p.ServerCost, Critical: w.Critical, Hysteresis: w.Hysteresis, Utilisation: w.Utilisation, Hold: w.Hold,
		Period: w.Period, Cooldown: w.Cooldown, StartDelay: w.StartDelay, Least: w.Least,
	}
	r := &ruled{}
	for i := range servers {
		o.Servers = append(o.Servers, switching.Server{Zone: servers[i].Zone, Slots: p.System.InService})
		r.all = append(r.all, i)
	}
	var err error
	if r.rule, err = switching.New(o); err != nil {
		return nil, err
	}
	r.seen = switching.Observation{Zones: make([]switching.Load, p.System.Zones), Servers: make([]switching.State, len(servers)), Gauged: true}
	return r, nil
}

// First are all servers: a run begins with all of them on.
func (r *ruled) First() []int { return r.all }

// Step asks the rule.
func (r *ruled) Step(l *simservers.Look) (on, off []int) {
	r.seen.At = l.At
	for z, x := range l.Zones {
		r.seen.Zones[z] = switching.Load{
			Requests: int64(x.Requests), Service: x.Service, Penalty: x.Penalty, Queued: float64(x.Queued), InService: x.InService, Potential: x.Potential,
		}
	}
	for i, s := range l.Servers {
		r.seen.Servers[i] = states[s]
	}
	d := r.rule.Step(r.seen)
	return d.On, d.Off
}

// states of the rule by those of the simulation.
var states = [...]switching.State{
	simservers.Off: switching.Off, simservers.Starting: switching.Starting, simservers.On: switching.On, simservers.Draining: switching.Draining,
}

// run runs a policy.
func (p *Params) run(ctx context.Context, t *trial, policy *Policy, mode Mode, seed uint64, requests []loads.Request, watch func(*simservers.Look)) (*simservers.Outcome, error) {
	o, err := p.options(t, policy, mode, seed, requests)
	if err != nil {
		return nil, err
	}
	o.Watch = watch
	out, err := simservers.Run(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("%s, %s, %s: %w", t.name, policy.Name, mode, err)
	}
	return out, nil
}
