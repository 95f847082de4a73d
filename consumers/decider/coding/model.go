package coding

import (
	"strings"

	"penstock/consumers/decider/coding/fit"
	"penstock/consumers/decider/coding/threshold"
)

// fits brings the models of a store up to date with its history.
func (w *decision) fits(i int) {
	name := w.t.config.Stores[i].Name
	for op := range ops {
		o := &w.t.state.stores[i].ops[op]
		cells := together(o.history)
		points := make([]fit.Point, len(cells))
		for j, c := range cells {
			points[j] = fit.Point{MB: float64(c.bytes) / float64(c.tasks) / 1e6, LeastMB: float64(max(c.smallest, 0)) / 1e6, Least: c.least, Done: c.done, Cancelled: c.cancelled}
		}
		r := fit.Fit(points, o.model, fit.Options{MinSamples: w.t.config.MinSamples})
		if r.Kept {
			if len(cells) > 0 {
				w.reasons.Add(InsufficientSamples, name, map[string]any{"op": opNames[op], "tasks": r.Done},
					"%ss: fewer than %d ended tasks in %d windows, or none of a size with enough; the last fit stands", opNames[op], w.t.config.MinSamples, w.t.config.History)
			}
			continue
		}
		o.take(r, cells)
		w.reasons.Add(Fitted, name, fitEvidence(op, o, &r), "%ss: %d ended and %d cancelled tasks", opNames[op], r.Done, r.Cancelled)
		if len(r.Untold) > 0 {
			w.reasons.Add(Untold, name, map[string]any{"op": opNames[op]}, "%ss: sizes are too alike to tell %s apart: the last fit stands for what they leave open", opNames[op], strings.Join(r.Untold, ", "))
		}
	}
}

// take keeps a fit, and the mean size of a request: a task is one of n of a request of
// k times its bytes.
func (o *operation) take(r fit.Result, cells []cell) {
	m := r.Model
	o.model = threshold.Model{Delta: rounded(m.Delta), DeltaPerMB: rounded(m.DeltaPerMB), Psi: rounded(m.Psi), PsiPerMB: rounded(m.PsiPerMB)}
	o.fitted, o.untold, o.samples = true, r.Untold, r.Done+r.Cancelled
	for i, x := range r.Intervals {
		o.intervals[i] = fit.Interval{Low: rounded(x.Low), High: rounded(x.High)}
	}
	var requests, bytes float64
	for _, c := range cells {
		requests += float64(c.tasks) / float64(c.n)
		bytes += float64(float64(c.bytes) / float64(c.n) * float64(c.k))
	}
	if requests > 0 && bytes > 0 {
		o.size = min(max(rounded(bytes/requests/1e6), 1e-6), 1e6)
	}
}

func fitEvidence(op int, o *operation, r *fit.Result) map[string]any {
	m := o.model
	return map[string]any{
		"op": opNames[op], "delta_ms": m.Delta, "delta_ms_per_mb": m.DeltaPerMB, "psi_ms": m.Psi, "psi_ms_per_mb": m.PsiPerMB,
		"intervals": o.intervals, "size_mb": o.size, "outliers": r.Outliers,
	}
}
