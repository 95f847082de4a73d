package decider

import (
	"time"

	"penstock/schemas/control"
)

const (
	// staleAfter is how many windows without a decision make the last one stale.
	staleAfter = 2
	// leastStale is the least age of a stale decision: windows of some seconds
	// come later than they last, by disorder, heartbeats and flushes.
	leastStale = 10 * time.Second
)

// Stale reports whether a decision is older than two windows, and 10 s: by stream time, up
// to a watermark of the windows that were read, or by wall time, from when its
// record came to the bus until now. Windows without traffic have no panes and
// nothing is decided for them (PROBLEMS P34): what was decided last is held, and
// not acted upon again. A zero time compares nothing, and so does a window that is
// not there.
func Stale(w control.Window, at, watermark, now time.Time) bool {
	width := w.End.Sub(w.Start)
	if width <= 0 {
		return false
	}
	limit := max(staleAfter*width, leastStale)
	if !watermark.IsZero() && watermark.Sub(w.End) > limit {
		return true
	}
	return !at.IsZero() && !now.IsZero() && now.Sub(at) > limit
}

// Stale reports whether the last decision is stale now; without one nothing is.
func (s Status) Stale(now time.Time) bool { return Stale(s.Window, s.At, s.Watermark, now) }
