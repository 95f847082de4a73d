package splitting

import (
	"context"
	"fmt"

	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/experiment/side"
	"penstock/pipeline/report"
)

// Options say how much of the experiment is run.
type Options struct {
	Params Params
	// Seeds is how many draws are made; at least 1.
	Seeds int
	// Quick runs less: natural runs are short, the random application meets two
	// faults.
	Quick bool
	// Data is the folder that holds azure-llm-2023 and nasa-19950801; "" leaves runs
	// with recorded arrivals out.
	Data string
	// Workers is how many runs go at once; 0: one a processor.
	Workers int
	// Progress is told after each run how many of all are done; nil: nobody is.
	Progress func(done, all int)
}

// Result is what the experiment came to.
type Result struct {
	Version   int               `json:"version"`
	FirstSeed uint64            `json:"first_seed"`
	Seeds     int               `json:"seeds"`
	Quick     bool              `json:"quick"`
	Runs      []Run             `json:"runs"`
	Optimum   Optimum           `json:"greedy_against_optimum"`
	Verdicts  []sheet.Verdict   `json:"verdicts"`
	Recorded  map[string]Source `json:"recorded,omitempty"`

	params *Params
}

// Run is what one policy came to under one fault with one seed.
type Run struct {
	Application string `json:"application"`
	Fault       string `json:"fault"`
	Arrivals    string `json:"arrivals"` // Made, or the name of a recording
	Policy      string `json:"policy"`
	Seed        uint64 `json:"seed"`
	// All are the requests that entered during the fault, Entering those of them
	// that entered at the affected site. Of a natural run both are of the whole run.
	All      Latency `json:"all"`
	Entering Latency `json:"entering_at_affected_site"`
	// Moved is the share of calls that went to another site than their caller's,
	// Bytes what went between sites meanwhile, USD what it costs.
	Moved float64 `json:"share_moved"`
	Bytes int64   `json:"bytes_between_sites"`
	USD   float64 `json:"usd"`
	// Probes is the share of calls that were copies. Tables changed a share, Repeated
	// came again or had other probes.
	Probes   float64 `json:"probes"`
	Tables   int     `json:"tables"`
	Repeated int     `json:"tables_repeated"`
	// Course is over time, by window, of the first seed only.
	Course *Course `json:"course,omitempty"`
}

// Latency is a distribution, in ms; requests that failed count as the deadline.
type Latency struct {
	Requests int           `json:"requests"`
	Failed   int           `json:"failed"`
	P50      report.Figure `json:"p50_ms"`
	P90      report.Figure `json:"p90_ms"`
	P99      report.Figure `json:"p99_ms"`
}

// Course is how a run went, by window.
type Course struct {
	// P90 is of the requests that entered at the affected site, ms.
	P90 []report.Figure `json:"p90_ms"`
	// Share is the part of the calls from the affected site to the component in
	// question that stayed there.
	Share []report.Figure `json:"share"`
}

// Made are arrivals that are made up.
const Made = "made up"

// Split runs the experiment. The error wraps ErrParams or ErrData, or is the
// context's.
func Split(ctx context.Context, o Options) (*Result, error) {
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
	r := &Result{Version: 1, FirstSeed: p.FirstSeed, Seeds: o.Seeds, Quick: o.Quick, params: &p}
	trials, err := p.trials(o.Seeds)
	if err != nil {
		return nil, err
	}
	if o.Data != "" {
		more, err := r.recordedTrials(o.Data, o.Seeds)
		if err != nil {
			return nil, err
		}
		trials = append(trials, more...)
	}
	progress := side.Counter(o.Progress, len(trials))
	r.Runs = make([]Run, len(trials))
	if err := side.Run(ctx, o.Workers, len(trials), func(i int) error {
		defer progress()
		run, err := trials[i].run(ctx, &p)
		if err != nil {
			return fmt.Errorf("%s: %w", trials[i].name(), err)
		}
		r.Runs[i] = run
		return nil
	}); err != nil {
		return nil, err
	}
	if r.Optimum, err = p.Instances.against(ctx); err != nil {
		return nil, err
	}
	r.judge()
	return r, nil
}
