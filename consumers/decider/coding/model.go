package coding

import (
	"strings"

	"penstock/consumers/decider/coding/fit"
	"penstock/consumers/decider/coding/threshold"
	"penstock/schemas/control"
)

// fits brings the models of a coder's stores up to date with their histories.
func (w *decision) fits(i int) {
	x, s := &w.t.config.Coders[i], &w.t.state.coders[i]
	for op := range ops {
		var all []cell
		fitted := false
		for j, store := range x.members() {
			switch w.shifted(x, store, op, &s.members[j].ops[op]) {
			case suspect:
				continue
			case another:
				s.shifted = true
			case asBefore:
			}
			cells := together(s.members[j].ops[op].history)
			all = append(all, cells...)
			fitted = w.fit(x, store, op, s.sizes[op], &s.members[j].ops[op], cells) || fitted
		}
		if fitted {
			s.resize(op, all)
		}
	}
}

// fit brings the model of an operation at a store up to date; false if the last fit
// stands. Requests have that size (MB) so far.
func (w *decision) fit(x *Coder, store string, op int, size float64, o *operation, cells []cell) bool {
	name := x.Name
	points := pointsOf(cells)
	prior := o.model
	doubts := w.t.doubts(x, o, cells, size)
	if doubts {
		prior = doubted(prior, size, 1/float64(2+o.doubts))
	}
	r := fit.Fit(points, prior, fit.Options{MinSamples: w.t.config.MinSamples})
	if r.Kept {
		if len(cells) > 0 {
			w.reasons.Add(InsufficientSamples, name, map[string]any{"store": store, "op": opNames[op], "tasks": r.Done},
				"%ss: fewer than %d ended tasks in %d windows, or none of a size with enough; the last fit stands", opNames[op], w.t.config.MinSamples, w.t.config.History)
		}
		return false
	}
	o.take(r)
	if doubts && !o.told {
		o.doubts = min(o.doubts+1, mostDoubts)
	}
	w.reasons.Add(Fitted, name, fitEvidence(store, op, o, &r), "%ss: %d ended and %d cancelled tasks", opNames[op], r.Done, r.Cancelled)
	if len(r.Untold) > 0 {
		w.reasons.Add(Untold, name, map[string]any{"store": store, "op": opNames[op]}, "%ss: sizes are too alike to tell %s apart: the last fit stands for what they leave open", opNames[op], strings.Join(r.Untold, ", "))
	}
	return true
}

// pointsOf are the tasks of cells as package fit takes them.
func pointsOf(cells []cell) []fit.Point {
	points := make([]fit.Point, len(cells))
	for j, c := range cells {
		points[j] = fit.Point{MB: float64(c.bytes) / float64(c.tasks) / 1e6, LeastMB: float64(max(c.smallest, 0)) / 1e6, Least: c.least, Done: c.done, Cancelled: c.cancelled}
	}
	return points
}

// mostDoubts is where doubt ends.
const mostDoubts = 18

// doubts reports whether what is believed of the delays keeps a coder from learning
// better: no samples have told yet how they divide into what grows with the size and
// what does not, and tasks are of more than half a request. Who believes that chunks do
// not pay asks for none, sees one size only, and keeps the belief. With smaller tasks
// there is no need: where the queue grows, larger ones are taken in any case.
func (t *Policy) doubts(x *Coder, o *operation, cells []cell, size float64) bool {
	if o.told || t.config.Policy != control.CodingTOFEC || x.spread() {
		return false
	}
	var tasks, bytes float64
	for _, c := range cells {
		tasks += float64(c.tasks)
		bytes += float64(c.bytes)
	}
	return bytes > float64(tasks*size*1e6/2)
}

// doubted is a belief by which no more than a share of the delay of a whole request, of mb
// megabytes, does not grow with the size. The share falls with each window that has
// told nothing: small chunks are tried at a greater and greater backlog, until there are
// two sizes, which tell.
func doubted(m threshold.Model, mb, share float64) threshold.Model {
	hold := func(base, slope *float64) {
		if at := *base + float64(*slope*mb); *base > at*share {
			*base, *slope = at*share, at*(1-share)/mb
		}
	}
	hold(&m.Delta, &m.DeltaPerMB)
	hold(&m.Psi, &m.PsiPerMB)
	return m
}

// take keeps a fit.
func (o *operation) take(r fit.Result) {
	m := r.Model
	o.model = threshold.Model{Delta: rounded(m.Delta), DeltaPerMB: rounded(m.DeltaPerMB), Psi: rounded(m.Psi), PsiPerMB: rounded(m.PsiPerMB)}
	o.fitted, o.untold, o.samples = true, r.Untold, r.Done+r.Cancelled
	o.told = o.told || len(r.Untold) == 0
	for i, x := range r.Intervals {
		o.intervals[i] = fit.Interval{Low: rounded(x.Low), High: rounded(x.High)}
	}
}

// resize keeps the mean size of a request: a task is one of n of a request of k times
// its bytes.
func (s *coder) resize(op int, cells []cell) {
	all, _ := requests(cells)
	var bytes float64
	for _, c := range cells {
		bytes += float64(float64(c.bytes) / float64(c.n) * float64(c.k))
	}
	if all > 0 && bytes > 0 {
		s.sizes[op] = min(max(rounded(bytes/all/1e6), 1e-6), 1e6)
	}
}

// model is that of a coder's tasks: the mean of its stores' by the samples of their last
// fits. Stores without a fit count only if none has one.
func (s *coder) model(op int) threshold.Model {
	var sum threshold.Model
	var all float64
	fitted := s.fitted(op)
	for j := range s.members {
		o := &s.members[j].ops[op]
		if fitted && !o.fitted {
			continue
		}
		weight := float64(max(o.samples, 1))
		all += weight
		sum.Delta += float64(weight * o.model.Delta)
		sum.DeltaPerMB += float64(weight * o.model.DeltaPerMB)
		sum.Psi += float64(weight * o.model.Psi)
		sum.PsiPerMB += float64(weight * o.model.PsiPerMB)
	}
	return threshold.Model{Delta: rounded(sum.Delta / all), DeltaPerMB: rounded(sum.DeltaPerMB / all), Psi: rounded(sum.Psi / all), PsiPerMB: rounded(sum.PsiPerMB / all)}
}

// fitted says whether any store of the coder has a fit.
func (s *coder) fitted(op int) bool {
	for j := range s.members {
		if s.members[j].ops[op].fitted {
			return true
		}
	}
	return false
}

// samples are those of the last fits of the coder's stores.
func (s *coder) samples(op int) (n int64) {
	for j := range s.members {
		n += s.members[j].ops[op].samples
	}
	return n
}

func fitEvidence(store string, op int, o *operation, r *fit.Result) map[string]any {
	m := o.model
	return map[string]any{
		"store": store, "op": opNames[op], "delta_ms": m.Delta, "delta_ms_per_mb": m.DeltaPerMB, "psi_ms": m.Psi, "psi_ms_per_mb": m.PsiPerMB,
		"intervals": o.intervals, "outliers": r.Outliers,
	}
}
