package serving

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"penstock/pipeline/experiment/serving/loads"
	"penstock/pipeline/experiment/serving/simservers"
	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/experiment/side"
)

// Options say how much of the experiment is run.
type Options struct {
	Params Params
	// Seeds is how many draws are made; at least 1.
	Seeds int
	// Quick runs no more than what is judged by itself: scenarios that are not held out.
	Quick bool
	// Data is a folder with azure-llm-2023 and nasa-19950801; "" leaves recorded arrivals
	// out.
	Data string
	// Workers is how many runs go at once; 0: one a processor.
	Workers int
	// Progress is told after each run how many of all are done; nil: nobody is.
	Progress func(done, all int)
}

// Result is what the experiment came to.
type Result struct {
	Version     int             `json:"version"`
	FirstSeed   uint64          `json:"first_seed"`
	HeldOutSeed uint64          `json:"held_out_seed"`
	Seeds       int             `json:"seeds"`
	Quick       bool            `json:"quick"`
	Verdicts    []sheet.Verdict `json:"verdicts"`
	Cells       []Cell          `json:"cells"`
	Courses     []Course        `json:"courses"`

	params *Params
}

// Serving runs the experiment. The error wraps ErrParams or ErrData, or is the context's.
func Serving(ctx context.Context, o Options) (*Result, error) {
	p := o.Params
	if err := p.check(); err != nil {
		return nil, err
	}
	if o.Seeds < 1 {
		return nil, fmt.Errorf("%w: %d seeds, expected at least 1", ErrParams, o.Seeds)
	}
	if o.Quick {
		p.Scenarios = slices.DeleteFunc(slices.Clone(p.Scenarios), func(s Scenario) bool { return s.HeldOut })
		p.Recorded = nil
	}
	recorded, err := recordings(o.Data)
	if err != nil {
		return nil, err
	}
	r := &Result{Version: 1, FirstSeed: p.FirstSeed, HeldOutSeed: p.HeldOutSeed, Seeds: o.Seeds, Quick: o.Quick, params: &p}
	if err := r.run(ctx, &o, p.trials(recorded)); err != nil {
		return nil, err
	}
	r.judge()
	return r, nil
}

// recordings are those of a folder, by kind.
func recordings(dir string) (map[string]*loads.Recording, error) {
	if dir == "" {
		return nil, nil
	}
	a, err := loads.Azure(filepath.Join(dir, "azure-llm-2023"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	n, err := loads.NASA(filepath.Join(dir, "nasa-19950801", "nasa_19950801.tsv.gz"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	return map[string]*loads.Recording{azure: a, nasa: n}, nil
}

// ran is what all policies came to in a trial with a seed, by mode and policy.
type ran struct {
	outs   [][]*simservers.Outcome
	bounds []float64 // by mode
	course []Course
}

// run runs all trials with all seeds.
func (r *Result) run(ctx context.Context, o *Options, trials []trial) error {
	all := make([]ran, len(trials)*r.Seeds)
	tell := side.Counter(o.Progress, len(all))
	if err := side.Run(ctx, o.Workers, len(all), func(i int) (err error) {
		t, seed := &trials[i/r.Seeds], i%r.Seeds
		all[i], err = r.params.seed(ctx, t, t.firstSeed+uint64(seed), seed == 0)
		tell()
		return err
	}); err != nil {
		return err
	}
	for i := range trials {
		r.add(&trials[i], all[i*r.Seeds:(i+1)*r.Seeds])
	}
	return nil
}

// seed runs all policies of a trial with a seed.
func (p *Params) seed(ctx context.Context, t *trial, seed uint64, first bool) (ran, error) {
	var out ran
	requests := t.load.Draw(seed)
	for _, mode := range modes {
		out.bounds = append(out.bounds, p.bound(t, mode, requests))
		var outs []*simservers.Outcome
		for k := range p.Policies {
			policy := &p.Policies[k]
			var c *Course
			if first {
				c = &Course{Scenario: t.name, Mode: mode, Policy: policy.Name}
			}
			o, err := p.run(ctx, t, policy, mode, seed, requests, c.watch())
			if err != nil {
				return out, err
			}
			outs = append(outs, o)
			if first {
				out.course = append(out.course, *c)
			}
		}
		out.outs = append(out.outs, outs)
	}
	return out, nil
}
