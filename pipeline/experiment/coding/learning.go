package coding

import (
	"context"
	"fmt"
	"time"

	"penstock/consumers/decider/coding/threshold"
	"penstock/pipeline/experiment/coding/simcoder"
	"penstock/pipeline/report"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Lesson is one window of the policy in the loop, begun from a wrong model, over all
// seeds.
type Lesson struct {
	Load    int     `json:"load_percent"`
	Seconds float64 `json:"seconds"` // of the window's end
	// Apart is by how much its thresholds of k and n differ from those that follow from
	// the true model, at most: threshold.Apart of the tables in force at the end.
	Apart Estimate `json:"apart"`
	// Model is the fit of the table in force, of the first seed.
	Model control.CodingDelay `json:"model"`
	// Mean is the delay of requests answered in the window, Told that of the coder that
	// was told the model.
	Mean Estimate `json:"mean_ms"`
	Told Estimate `json:"told_mean_ms"`
}

// kept is a table with the time from which it is in force.
type kept struct {
	at    time.Duration
	table *control.CodingTable
}

// learning runs the policy in the loop at the first store, beside the one that was told
// the model.
func (w *work) learning(ctx context.Context) error {
	for _, load := range w.params.Learned.Loads {
		if err := w.lessons(ctx, load); err != nil {
			return fmt.Errorf("learning: %w", err)
		}
	}
	return nil
}

func (w *work) lessons(ctx context.Context, load int) error {
	r := &w.Stores[0]
	arms := []*arm{r.site.arm(Taught), r.site.arm(TOFEC)}
	outs := make([]*simcoder.Outcome, len(arms)*w.Seeds)
	tables := make([][]kept, w.Seeds)
	width := window.Storage.Width
	if err := w.each(ctx, len(outs), 0, func(i int) error {
		a, seed := arms[i/w.Seeds], i%w.Seeds
		o, err := w.params.options(r.site, a, w.FirstSeed+uint64(seed))
		if err != nil {
			return err
		}
		o.Rate, o.Bin, o.Until = simcoder.Steady(float64(load)/100*r.site.capacity), width, time.Duration(w.params.Learned.Windows)*width
		if o.Loop != nil {
			tables[seed] = []kept{{0, &a.table}}
			install := o.Loop.Install
			o.Loop.Install = func(at time.Duration, t *control.CodingTable) error {
				tables[seed] = append(tables[seed], kept{at, t})
				return install(at, t)
			}
		}
		outs[i], err = simcoder.Run(ctx, o)
		return err
	}); err != nil {
		return err
	}
	told := codesOf(&arms[1].table, r.site.Op)
	for i := range w.params.Learned.Windows {
		end := time.Duration(i+1) * width
		x := Lesson{Load: load, Seconds: end.Seconds(), Mean: meanOf(outs[:w.Seeds], i), Told: meanOf(outs[w.Seeds:], i)}
		apart := make([]float64, w.Seeds)
		for seed := range apart {
			t := inForce(tables[seed], end)
			c := codesOf(t, r.site.Op)
			apart[seed] = threshold.Apart(threshold.Table{K: c.K, N: c.N}, threshold.Table{K: told.K, N: told.N})
			if seed == 0 {
				x.Model = modelOf(t, r.site.Op)
			}
		}
		x.Apart = estimate(apart)
		w.Learning = append(w.Learning, x)
	}
	return nil
}

// inForce is the table at a time.
func inForce(tables []kept, at time.Duration) *control.CodingTable {
	out := tables[0].table
	for _, t := range tables {
		if t.at <= at {
			out = t.table
		}
	}
	return out
}

func codesOf(t *control.CodingTable, op string) *control.CodingCodes {
	if op == "write" {
		return &t.Write
	}
	return &t.Read
}

func modelOf(t *control.CodingTable, op string) control.CodingDelay {
	if op == "write" {
		return t.Model.Write
	}
	return t.Model.Read
}

// meanOf is the mean delay of the requests answered in a bin.
func meanOf(outs []*simcoder.Outcome, bin int) Estimate {
	return over(outs, func(o *simcoder.Outcome) float64 {
		return o.Course[bin].Delay / float64(max(1, o.Course[bin].Answered))
	})
}

// Threshold is one of those that coders go by, of PAPERS §3.4 and of ours.
type Threshold struct {
	Name string `json:"name"` // K1…, N1…
	// Paper is the figure of PAPERS §3.4, ByPaper ours by its formulas, Corrected that
	// for the connections. The first is of the paper's setting only.
	Paper     report.Figure `json:"papers"`
	ByPaper   report.Figure `json:"uncorrected"`
	Corrected report.Figure `json:"corrected"`
}

// Figures of PAPERS §3.4 for the default read fit, 3 MB and 16 connections [D].
var (
	paperK = []float64{2.811, .869, .310, .120, .050}
	paperN = []float64{4.666, 2.205, 1.266, .798, .535, .375, .267, .198, .149, .115, .090}
)

// thresholds lists those of the first store.
func (r *Result) thresholds() error {
	s := r.Stores[0].site
	m := s.Law.Model()
	byPaper, err := threshold.Uncorrected(m, s.limits)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrParams, err)
	}
	corrected, err := threshold.Corrected(m, s.limits)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrParams, err)
	}
	papers := m == threshold.DefaultRead && s.limits == threshold.Limits{Connections: 16, SizeMB: 3, KMax: 6, NMax: 12, RMax: 2}
	add := func(name string, paper, by, ours []float64) {
		for i := range by {
			t := Threshold{Name: fmt.Sprintf("%s%d", name, i+1), Paper: report.Unknown(), ByPaper: rounded(by[i]), Corrected: rounded(ours[i])}
			if papers {
				t.Paper = report.Figure(paper[i])
			}
			r.Thresholds = append(r.Thresholds, t)
		}
	}
	add("K", paperK, byPaper.K, corrected.K)
	add("N", paperN, byPaper.N, corrected.N)
	return nil
}
