package coding

import (
	"fmt"
	"time"

	"penstock/consumers/decider/coding"
	"penstock/consumers/decider/coding/threshold"
	"penstock/consumers/executor/coder/codes"
	"penstock/pipeline/experiment/coding/delays"
	"penstock/pipeline/experiment/coding/simcoder"
	"penstock/schemas/control"
)

// The names of policies, beside those of static codes and of hedges.
const (
	Greedy  = "greedy"
	TOFEC   = "tofec"
	Taught  = "tofec, learned"
	ByPaper = "tofec, the paper's"
	// ByArrivals smooths the backlog at arrivals, as the paper does, in place of time.
	ByArrivals = "tofec, by arrivals"
)

// arm is a policy at a store.
type arm struct {
	name   string
	static Code // (0,0): it is none
	// config is the decider's.
	config coding.Config
	// loop keeps the decider in the loop: config holds a wrong model.
	loop bool
	// byArrivals smooths the backlog at arrivals.
	byArrivals bool
	// table is the first in force: the decider's before anything was measured.
	table control.CodingTable
}

// site is a store with what is asked of it, ready to run.
type site struct {
	*Store
	bytes  []int64
	sizeMB float64 // mean
	limits threshold.Limits
	// capacity is that of (1,1): requests a second.
	capacity float64
	loads    []int
	arms     []arm
}

// sites are those of the parameters, and that of recorded sizes if there are any.
func (p *Params) sites(recorded []int64) ([]site, error) {
	var out []site
	for i := range p.Stores {
		s, err := p.site(&p.Stores[i], []int64{int64(p.SizeMB * 1e6)})
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	if len(recorded) == 0 {
		return out, nil
	}
	of := *p.store(p.Recorded.Store)
	of.Name, of.Whole, of.Judged = of.Name+"-recorded", false, p.Recorded.Judged
	of.Text = fmt.Sprintf("%s; sizes as recorded, %d of them", of.Text, len(recorded))
	s, err := p.site(&of, recorded)
	return append(out, s), err
}

// site makes a store ready for requests of these sizes.
func (p *Params) site(of *Store, bytes []int64) (site, error) {
	s := site{Store: of, bytes: bytes, loads: p.Judged}
	if of.Whole {
		s.loads = p.Loads
	}
	var mb, ms float64
	for _, b := range bytes {
		mb += float64(b) / 1e6
		ms += of.Law.Mean(float64(b) / 1e6)
	}
	n := float64(len(bytes))
	s.sizeMB = mb / n
	s.capacity = 1000 * float64(p.Connections) / (ms / n)
	s.limits = threshold.Limits{Connections: p.Connections, SizeMB: s.sizeMB, KMax: p.KMax, NMax: p.most(), RMax: p.RMax}
	for _, c := range p.statics() {
		s.arms = append(s.arms, arm{name: c.String(), static: c, config: p.config(&s, control.CodingStatic, c)})
	}
	s.arms = append(s.arms, arm{name: Greedy, config: p.config(&s, control.CodingGreedy, Code{})})
	told := s.model()
	for _, c := range p.Hedges {
		s.arms = append(s.arms, arm{name: "hedge " + c.String(), loop: !told, config: p.config(&s, control.CodingHedge, c)})
	}
	if told {
		byPaper := p.config(&s, control.CodingTOFEC, Code{})
		byPaper.Uncorrected = true
		s.arms = append(s.arms, arm{name: TOFEC, config: p.config(&s, control.CodingTOFEC, Code{})}, arm{name: ByPaper, config: byPaper, byArrivals: true})
		if of.Whole {
			s.arms = append(s.arms, arm{name: ByArrivals, config: p.config(&s, control.CodingTOFEC, Code{}), byArrivals: true})
		}
	}
	s.arms = append(s.arms, arm{name: Taught, loop: true, config: p.config(&s, control.CodingTOFEC, Code{})})
	for i := range s.arms {
		if err := s.arms[i].begin(p, &s); err != nil {
			return s, fmt.Errorf("%s, %s: %w", of.Name, s.arms[i].name, err)
		}
	}
	return s, nil
}

// model reports whether the store has a model that a decider could be told.
func (s *site) model() bool { return s.Law.Kind != delays.Lognormal }

// config is what the decider is told of a store, with its model.
func (p *Params) config(s *site, policy control.CodingPolicy, c Code) coding.Config {
	m := s.Law.Model()
	if !s.model() {
		m = p.Learned.Prior.model()
	}
	return coding.Config{
		Policy: policy, Coders: []coding.Coder{{Name: s.Name, Read: &m, Write: &m}},
		Connections: p.Connections, KMax: p.KMax, RMax: p.RMax, MaxRequests: p.most(), SizeMB: s.sizeMB, Code: coding.Code(c),
		Price: coding.Price{Read: p.Price.Read, Write: p.Price.Write},
	}
}

// begin asks the decider for the table that it begins with.
func (a *arm) begin(p *Params, s *site) (err error) {
	if a.loop {
		m := p.Learned.Prior.model()
		a.config.Coders = []coding.Coder{{Name: s.Name, Read: &m, Write: &m}}
	}
	a.table, _, err = coding.Default(a.config, s.Name)
	return err
}

// chooser makes one as a coder would have it, with the clock of its run, and, if it is in
// the loop, the decider's policy that sends it tables.
func (a *arm) chooser(p *Params, s *site) (*codes.Chooser, *simcoder.Clock, *simcoder.Loop, error) {
	at := simcoder.NewClock()
	o := codes.Options{Default: a.table, Over: codes.Over, Clock: at}
	if a.byArrivals {
		o.Over = 0
	}
	c, err := codes.New(o)
	if err != nil || !a.loop {
		return c, at, nil, err
	}
	policy, err := coding.New(a.config)
	if err != nil {
		return nil, nil, nil, err
	}
	epoch := uint64(0)
	loop := &simcoder.Loop{Policy: policy, Store: s.Name, Feedback: p.Feedback, Install: func(_ time.Duration, t *control.CodingTable) error {
		epoch++
		return c.Set(t, epoch, time.Time{})
	}}
	return c, at, loop, nil
}
