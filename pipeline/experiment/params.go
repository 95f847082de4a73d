package experiment

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml"

	"penstock/infra/examples"
	"penstock/producers/workload"
)

// Params say what the experiment of placement runs.
type Params struct {
	Version int `yaml:"version"`
	// FirstSeed is the seed from which they are counted.
	FirstSeed uint64 `yaml:"first_seed"`
	// Standard names the friend model by which targets are judged.
	Standard string  `yaml:"standard"`
	Models   []Model `yaml:"models"`
	Cases    []Case  `yaml:"cases"`
	Alpha    float64 `yaml:"alpha"`
	Beta     float64 `yaml:"beta"`

	// Advice is the headroom with which our policies are played once more.
	Advice float64 `yaml:"advice"`

	Sensitivity Sensitivity `yaml:"sensitivity"`
	Clouds      Clouds      `yaml:"clouds"`
}

// Model is a friend model: circles in place of the workload's own.
type Model struct {
	Name    string            `yaml:"name"`
	Text    string            `yaml:"text"`
	Circles []workload.Circle `yaml:"circles,omitempty"`
}

// Case is a set of capacities.
type Case struct {
	Name string `yaml:"name"`
	// Capacity in bytes an hour, in the order of the workload's sites.
	Capacity []int64 `yaml:"capacity"`
	// Target is the least median reduction of execution delay in percent; 0: none.
	Target float64 `yaml:"target,omitempty"`
	// Hours are those in which the paper balances, for people.
	Hours string `yaml:"hours,omitempty"`
}

// Sensitivity is what is varied, one at a time.
type Sensitivity struct {
	Alpha    []float64 `yaml:"alpha"`
	Headroom []float64 `yaml:"headroom"`
	Hours    []int     `yaml:"hours"` // of a unit of time
}

// Clouds are the sites of the run on measured round trips.
type Clouds struct {
	Share   float64  `yaml:"share"`
	Least   float64  `yaml:"least"`
	Regions []string `yaml:"regions"`
}

// Default returns the parameters that the project comes with.
func Default() (Params, error) {
	return Decode(examples.PlacementExperiment)
}

// Decode reads parameters and checks them; unknown fields are faults. The error
// wraps ErrParams.
func Decode(data []byte) (Params, error) {
	var p Params
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&p); err != nil {
		return p, fmt.Errorf("%w: %w", ErrParams, err)
	}
	return p, p.check()
}

func (p *Params) check() error {
	fault := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrParams}, args...)...)
	}
	if p.Version != 1 {
		return fault("version: got %d, expected 1", p.Version)
	}
	found := false
	for _, m := range p.Models {
		found = found || m.Name == p.Standard
	}
	if !found {
		return fault("standard: got %q, expected the name of one of models", p.Standard)
	}
	for _, c := range p.Cases {
		if len(c.Capacity) == 0 {
			return fault("cases: %s has no capacity", c.Name)
		}
	}
	if p.Alpha < 0 || p.Beta < 0 || p.Alpha+p.Beta == 0 {
		return fault("alpha, beta: got %v and %v, expected two numbers of at least 0, not both 0", p.Alpha, p.Beta)
	}
	if p.Advice < 0 || p.Advice >= 1 {
		return fault("advice: got %v, expected a share of at least 0 and below 1", p.Advice)
	}
	for _, h := range p.Sensitivity.Hours {
		if h < 1 || 24%h != 0 {
			return fault("sensitivity.hours: got %d, expected hours that divide a day", h)
		}
	}
	if p.Clouds.Share <= 0 || p.Clouds.Least < 0 {
		return fault("clouds: got shares of %v and %v, expected more than 0, and at least 0", p.Clouds.Share, p.Clouds.Least)
	}
	return nil
}

// day returns the workload of a model and seed.
func (m *Model) day(base workload.Params, seed uint64) workload.Params {
	base.Seed = seed
	if m.Circles != nil {
		base.Friends.Circles = m.Circles
	}
	return base
}
