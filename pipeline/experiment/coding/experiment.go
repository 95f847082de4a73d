package coding

import (
	"context"
	"fmt"

	"penstock/pipeline/experiment/coding/sizes"
)

// Options say how much of the experiment is run.
type Options struct {
	Params Params
	// Seeds is how many draws are made; at least 1.
	Seeds int
	// Quick runs less: judged stores only, at the judged loads, with fewer requests.
	Quick bool
	// Sizes is a file of sizes of requests, see package sizes; "" leaves runs with
	// recorded sizes out.
	Sizes string
	// Workers is how many runs go at once; 0: one a processor.
	Workers int
	// Progress is told after each run how many of all are done; nil: nobody is.
	Progress func(done, all int)
}

// Result is what the experiment came to.
type Result struct {
	Version    int           `json:"version"`
	FirstSeed  uint64        `json:"first_seed"`
	Seeds      int           `json:"seeds"`
	Quick      bool          `json:"quick"`
	Verdicts   []Verdict     `json:"verdicts"`
	Stores     []StoreResult `json:"stores"`
	Steps      []StepResult  `json:"steps"`
	Ramp       []Moment      `json:"ramp"`
	Learning   []Lesson      `json:"learning"`
	Thresholds []Threshold   `json:"thresholds"`

	params *Params
}

// StoreResult is what policies came to at a store.
type StoreResult struct {
	Name   string  `json:"name"`
	Text   string  `json:"text"`
	SizeMB float64 `json:"mean_size_mb"`
	// PerSecond is what (1,1) carries by the law of delays: loads are per cents of it.
	PerSecond  float64    `json:"full_load_per_second"`
	Capacities []Capacity `json:"capacities"`
	Points     []Point    `json:"points"`
	// Alone is each static code where requests never meet; of judged stores only.
	Alone []Alone `json:"alone,omitempty"`

	site *site
}

// Capacity is the most requests a second that a policy carries: those of a coder that
// always has some waiting.
type Capacity struct {
	Policy    string   `json:"policy"`
	PerSecond Estimate `json:"per_second"`
	// Formula is L/U of PAPERS §3.3; 0 where it does not hold.
	Formula float64 `json:"formula_per_second,omitempty"`
}

// quick runs less.
func (p *Params) quick() {
	p.Loads, p.Requests, p.Warm, p.Course.Seeds = p.Judged, min(p.Requests, 8000), min(p.Warm, 2000), min(p.Course.Seeds, 10)
	var judged []Store
	for _, s := range p.Stores {
		if s.Judged {
			judged = append(judged, s)
		}
	}
	p.Stores = judged
}

// Coding runs the experiment. The error wraps ErrParams or ErrSizes, or is the
// context's.
func Coding(ctx context.Context, o Options) (*Result, error) {
	p := o.Params
	if err := p.check(); err != nil {
		return nil, err
	}
	if o.Seeds < 1 {
		return nil, fmt.Errorf("%w: %d seeds, expected at least 1", ErrParams, o.Seeds)
	}
	if o.Quick {
		p.quick()
	}
	var recorded []int64
	if o.Sizes != "" {
		var err error
		if recorded, err = sizes.Load(o.Sizes); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSizes, err)
		}
	}
	r := &Result{Version: 1, FirstSeed: p.FirstSeed, Seeds: o.Seeds, Quick: o.Quick, params: &p}
	if err := r.run(ctx, &o, recorded); err != nil {
		return nil, err
	}
	r.judge()
	return r, nil
}

// run runs all parts: capacities first, for they say which static codes keep up.
func (r *Result) run(ctx context.Context, o *Options, recorded []int64) error {
	all, err := r.params.sites(recorded)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrParams, err)
	}
	r.Stores = make([]StoreResult, len(all))
	for i := range all {
		s := &all[i]
		r.Stores[i] = StoreResult{Name: s.Name, Text: s.Text, SizeMB: float64(rounded(s.sizeMB)), PerSecond: float64(rounded(s.capacity)), site: s}
	}
	w := &work{Result: r, workers: o.Workers, tell: o.Progress}
	for _, part := range []func(context.Context) error{w.capacities, w.points, w.alone, w.courses, w.learning} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return r.thresholds()
}
