package experiment

import (
	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/report"
)

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
func spreadOf(runs []*Run, figure func(*Run) report.Figure) sheet.Spread {
	values := make([]report.Figure, len(runs))
	for i, r := range runs {
		values[i] = figure(r)
	}
	return sheet.SpreadOf(values)
}

func reduction(r *Run) report.Figure { return r.Reduction }
func latency(r *Run) report.Figure   { return r.Latency.Mean }
