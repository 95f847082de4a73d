package coding

import (
	"slices"

	"penstock/consumers/decider/coding/fit"
)

const (
	// shiftWindows is how many windows in a row must be off, in one direction, before a
	// store counts as another one. One may be a pause of the machine.
	shiftWindows = 2
	// shiftRatio is how far off, as fit.Against has it: less is left to History.
	shiftRatio = 1.5
	// shiftDeviations is by how many standard deviations of chance at least. Delays are not
	// as exponential as the model has them, and those of a window not as independent.
	shiftDeviations = 8
)

// What a window may say of a store.
type verdict uint8

const (
	asBefore verdict = iota // its tasks are of the delays of the fit, or there is none
	suspect                 // they are not: the next window tells
	another                 // nor were those of the window before
)

// shifted looks whether the tasks of the newest window are still those of the fit. If they
// are not, in two windows on end, the store has changed, and what came before tells
// nothing of it any more: it is forgotten, so that the fit is not a mixture of two stores
// until History windows have passed. One window alone is left out, for the same reason.
// Only sizes and codes count of which the history had some: where the fit leaves something
// open, others may well be off.
func (w *decision) shifted(x *Coder, store string, op int, o *operation) verdict {
	n := len(o.history)
	if !o.fitted || n < 2 || o.history[n-1].window != w.t.state.now/w.t.config.Window.Microseconds() {
		return asBefore
	}
	direction, ratio, tasks := o.direction()
	if o.off != 0 && direction == 0 {
		o.history = slices.Delete(o.history, n-2, n-1)
	}
	if direction*o.off <= 0 {
		o.off = 0
	}
	o.off += direction
	if o.off == 0 {
		return asBefore
	}
	evidence := map[string]any{"store": store, "op": opNames[op], "ratio": rounded(ratio), "tasks": tasks}
	if abs(o.off) < shiftWindows {
		w.reasons.Add(Suspect, x.Name, evidence, "%ss: the window is not of the delays of before; the last fit stands until the next one tells", opNames[op])
		return suspect
	}
	o.off = 0
	o.history = slices.Clone(o.history[n-shiftWindows:])
	w.reasons.Add(Shifted, x.Name, evidence, "%ss: %d windows on end are not of the delays of before, which are forgotten", opNames[op], shiftWindows)
	return another
}

// direction compares the newest window with the fit: 1 if it is slower, −1 if faster, 0 if it
// is neither by enough.
func (o *operation) direction() (direction int64, ratio float64, tasks int64) {
	n := len(o.history)
	known := together(o.history[:max(0, n-1-int(abs(o.off)))])
	cells := slices.DeleteFunc(slices.Clone(o.history[n-1].cells), func(c cell) bool {
		return !slices.ContainsFunc(known, func(k cell) bool { return compareCells(k, c) == 0 })
	})
	ratio, z, tasks := fit.Against(pointsOf(cells), o.model)
	switch {
	case ratio > shiftRatio && z > shiftDeviations:
		direction = 1
	case ratio < 1/shiftRatio && z < -shiftDeviations:
		direction = -1
	}
	return direction, ratio, tasks
}

func abs(v int64) int64 { return max(v, -v) }
