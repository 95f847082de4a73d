package coding

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"penstock/consumers/decider/coding/threshold"
	"penstock/infra/examples"
	"penstock/pipeline/experiment/coding/delays"
)

// Params say what the experiment of coding runs; infra/examples/experiment/coding.yaml
// says what each is.
type Params struct {
	Version     int      `yaml:"version"`
	FirstSeed   uint64   `yaml:"first_seed"`
	Connections int      `yaml:"connections"`
	KMax        int      `yaml:"k_max"`
	RMax        float64  `yaml:"r_max"`
	SizeMB      float64  `yaml:"size_mb"`
	Loads       []int    `yaml:"loads"`  // per cent
	Judged      []int    `yaml:"judged"` // some of Loads
	Requests    int      `yaml:"requests"`
	Warm        int      `yaml:"warm"`
	Stable      float64  `yaml:"stable"`
	Feedback    duration `yaml:"feedback"`
	Learned     Learned  `yaml:"learned"`
	Hedges      []Code   `yaml:"hedges"`
	Price       Price    `yaml:"price"`
	Stores      []Store  `yaml:"stores"`
	Recorded    Recorded `yaml:"recorded"`
	Course      Course   `yaml:"course"`
	Targets     Targets  `yaml:"targets"`
}

type duration = time.Duration

// Code is n chunks asked for, k needed.
type Code struct {
	N int `yaml:"n" json:"n"`
	K int `yaml:"k" json:"k"`
}

func (c Code) String() string { return fmt.Sprintf("(%d,%d)", c.N, c.K) }

// Learned is how the policy in the loop begins.
type Learned struct {
	Prior Prior    `yaml:"prior"`
	Warm  duration `yaml:"warm"`
	// Loads (per cent) are those of the runs that show it window by window, for Windows
	// windows.
	Loads   []int `yaml:"loads"`
	Windows int   `yaml:"windows"`
}

// Prior is a delay model.
type Prior struct {
	Delta      float64 `yaml:"delta"`
	DeltaPerMB float64 `yaml:"delta_per_mb"`
	Psi        float64 `yaml:"psi"`
	PsiPerMB   float64 `yaml:"psi_per_mb"`
}

func (p Prior) model() threshold.Model {
	return threshold.Model{Delta: p.Delta, DeltaPerMB: p.DeltaPerMB, Psi: p.Psi, PsiPerMB: p.PsiPerMB}
}

// Price is US dollars for a million requests to the store.
type Price struct {
	Read  float64 `yaml:"read"`
	Write float64 `yaml:"write"`
}

// Store is a store and what is asked of it.
type Store struct {
	Name string `yaml:"name"`
	Text string `yaml:"text"`
	Op   string `yaml:"op"` // read or write
	// Whole is run at all loads, the others at the judged ones.
	Whole bool `yaml:"whole,omitempty"`
	// Judged has verdicts of its own.
	Judged bool       `yaml:"judged,omitempty"`
	Cancel duration   `yaml:"cancel,omitempty"`
	Law    delays.Law `yaml:"law"`
}

// Recorded is the store whose requests have the recorded sizes.
type Recorded struct {
	Store  string `yaml:"store"`
	Judged bool   `yaml:"judged"`
}

// Course is load over time.
type Course struct {
	Seeds int      `yaml:"seeds"`
	Bin   duration `yaml:"bin"`
	Near  float64  `yaml:"near"`
	Stays duration `yaml:"stays"`
	Steps []Step   `yaml:"steps"`
	Hold  duration `yaml:"hold"`
	Ramp  Ramp     `yaml:"ramp"`
}

// Step is two loads, per cent.
type Step struct {
	Low  int `yaml:"low" json:"low_percent"`
	High int `yaml:"high" json:"high_percent"`
}

// Ramp is a load that rises for a time, and falls for as long.
type Ramp struct {
	Low  int      `yaml:"low"`
	High int      `yaml:"high"`
	Over duration `yaml:"over"`
}

// Targets are the paper's figures, and those that were set beside them.
type Targets struct {
	Light      float64 `yaml:"light"`
	Heavy      float64 `yaml:"heavy"`
	Envelope   float64 `yaml:"envelope"`
	Neighbours float64 `yaml:"neighbours"`
	Deviation  float64 `yaml:"deviation"`
	Until      int     `yaml:"until"` // per cent of load
	Seconds    float64 `yaml:"seconds"`
}

// Default returns the parameters that the project comes with.
func Default() (Params, error) { return Decode(examples.CodingExperiment) }

// Decode reads parameters and checks them; unknown fields are faults. The error wraps
// ErrParams.
func Decode(data []byte) (Params, error) {
	var p Params
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&p); err != nil {
		return p, fmt.Errorf("%w: %w", ErrParams, err)
	}
	return p, p.check()
}

// faults collects what is wrong.
type faults []error

func (f *faults) need(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// check names every fault.
func (p *Params) check() error {
	f := new(faults)
	f.need(p.Version == 1, "version: got %d, expected 1", p.Version)
	l := threshold.Limits{Connections: p.Connections, SizeMB: p.SizeMB, KMax: p.KMax, NMax: p.most(), RMax: p.RMax}
	if err := l.Validate(); err != nil {
		f.need(false, "limits: %w", err)
	}
	f.need(p.Requests > 0 && p.Warm >= 0, "requests: got %d after %d, expected at least 1", p.Requests, p.Warm)
	f.need(p.Stable > 0 && p.Stable < 1, "stable: got %v, expected a share of the capacity", p.Stable)
	f.need(p.Feedback >= 0 && p.Learned.Warm >= 0, "feedback: got %v, and %v to learn, expected 0 or more", p.Feedback, p.Learned.Warm)
	f.need(p.Learned.Prior.model().Validate() == nil, "learned.prior: got %+v, expected a model", p.Learned.Prior)
	f.need(p.Learned.Windows > 0 && !slices.ContainsFunc(p.Learned.Loads, func(l int) bool { return l < 1 || l > 99 }),
		"learned: got loads %v for %d windows, expected per cents for at least one", p.Learned.Loads, p.Learned.Windows)
	p.checkLoads(f)
	p.checkStores(f)
	p.checkCourse(f)
	if len(*f) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrParams, errors.Join(*f...))
}

func (p *Params) checkLoads(f *faults) {
	f.need(len(p.Loads) > 0 && slices.IsSorted(p.Loads) && p.Loads[0] > 0, "loads: got %v, expected per cents in order", p.Loads)
	f.need(len(p.Judged) > 0 && slices.IsSorted(p.Judged), "judged: got %v, expected some of the loads, in order", p.Judged)
	for _, l := range p.Judged {
		f.need(slices.Contains(p.Loads, l), "judged: got %d, expected one of the loads", l)
	}
	for _, h := range p.Hedges {
		f.need(1 <= h.K && h.K <= p.KMax && h.K < h.N && h.N <= p.most(), "hedges: got %v, expected more chunks than are needed, within the limits", h)
	}
}

func (p *Params) checkStores(f *faults) {
	f.need(len(p.Stores) > 0 && p.Stores[0].Judged && p.Stores[0].Whole, "stores: expected a first one that is judged, and whole")
	for i := range p.Stores {
		s := &p.Stores[i]
		f.need(s.Name != "" && p.store(s.Name) == s, "stores: got %q, expected a name of its own", s.Name)
		f.need(s.Op == "read" || s.Op == "write", "stores: %s: got op %q, expected read or write", s.Name, s.Op)
		f.need(s.Cancel >= 0, "stores: %s: got cancel %v, expected 0 or more", s.Name, s.Cancel)
		f.need(!s.Judged || s.Law.Kind != delays.Lognormal, "stores: %s: expected a model of one that is judged", s.Name)
		if err := s.Law.Validate(); err != nil {
			f.need(false, "stores: %s: %w", s.Name, err)
		}
	}
	f.need(p.store(p.Recorded.Store) != nil, "recorded.store: got %q, expected the name of one", p.Recorded.Store)
}

func (p *Params) checkCourse(f *faults) {
	c := &p.Course
	f.need(c.Seeds > 0 && c.Bin > 0 && c.Stays >= c.Bin && c.Hold > c.Stays && c.Near > 0, "course: got %+v", *c)
	f.need(len(c.Steps) > 0, "course.steps: expected at least one")
	for _, s := range c.Steps {
		f.need(0 < s.Low && s.Low < s.High && s.High < 100, "course.steps: got %+v, expected two loads in order", s)
	}
	f.need(0 < c.Ramp.Low && c.Ramp.Low < c.Ramp.High && c.Ramp.High < 100 && c.Ramp.Over > 0, "course.ramp: got %+v, expected two loads in order", c.Ramp)
}

// store is the one of that name, nil if there is none.
func (p *Params) store(name string) *Store {
	for i := range p.Stores {
		if p.Stores[i].Name == name {
			return &p.Stores[i]
		}
	}
	return nil
}

// most is the most chunks asked for.
func (p *Params) most() int { return p.top(p.KMax) }

// top is the most chunks asked for where k are needed.
func (p *Params) top(k int) int { return int(p.RMax * float64(k)) }

// statics lists the static codes.
func (p *Params) statics() []Code {
	var out []Code
	for k := 1; k <= p.KMax; k++ {
		for n := k; n <= p.top(k); n++ {
			out = append(out, Code{N: n, K: k})
		}
	}
	return out
}
