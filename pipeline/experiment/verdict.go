package experiment

import (
	"slices"

	"penstock/pipeline/report"
)

// Verdict is one figure of the paper beside ours.
type Verdict struct {
	Figure string `json:"figure"`
	Paper  string `json:"paper"`
	Ours   string `json:"ours"`
	// Reached is "yes", "no", or "" where there is nothing to reach.
	Reached string `json:"reached"`
	Note    string `json:"note,omitempty"`
}

// Spread is the median and the range of a figure over days.
type Spread struct{ Median, Least, Most report.Figure }

// spread sorts what is known.
func spread(values []report.Figure) Spread {
	known := make([]float64, 0, len(values))
	for _, v := range values {
		if v.Known() {
			known = append(known, float64(v))
		}
	}
	if len(known) == 0 {
		return Spread{report.Unknown(), report.Unknown(), report.Unknown()}
	}
	slices.Sort(known)
	n := len(known)
	return Spread{report.Figure((known[(n-1)/2] + known[n/2]) / 2), report.Figure(known[0]), report.Figure(known[n-1])}
}

// Text prints median (least–most).
func (s Spread) Text(digits int) string {
	if !s.Median.Known() {
		return "–"
	}
	return s.Median.Text(digits) + " (" + s.Least.Text(digits) + "–" + s.Most.Text(digits) + ")"
}

// of are the runs of a model, case and strategy, in order of seeds.
func (r *Result) of(model, name, strategy string) []*Run {
	var out []*Run
	for i := range r.Runs {
		if x := &r.Runs[i]; x.Model == model && x.Case == name && x.Strategy == strategy {
			out = append(out, x)
		}
	}
	return out
}

// spreadOf is the spread of a figure of such runs.
func spreadOf(runs []*Run, figure func(*Run) report.Figure) Spread {
	values := make([]report.Figure, len(runs))
	for i, r := range runs {
		values[i] = figure(r)
	}
	return spread(values)
}

func reduction(r *Run) report.Figure { return r.Reduction }
func latency(r *Run) report.Figure   { return r.Latency.Mean }
