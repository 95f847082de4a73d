package window

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Least and greatest width of the windows of the group owners.
const (
	LeastWidth    = time.Second
	GreatestWidth = 24 * time.Hour
)

// Widths says how wide windows are on a bus. What a rollup is stands in
// [Rollups]; the width of the owners' windows is the bus's, as the number of
// partitions is, and whoever writes or reads panes takes it from there. The zero
// value is that of a bus which says nothing: each rollup has its own width.
type Widths struct {
	Owners time.Duration // of the group owners; 0 is the rollups' own
}

// CheckWidth says what is wrong with a width of the owners' windows: whole
// seconds that divide a day, so that every midnight UTC is a boundary.
func CheckWidth(d time.Duration) error {
	if d < LeastWidth || d > GreatestWidth || d%time.Second != 0 || GreatestWidth%d != 0 {
		return fmt.Errorf("windows of %s, expected whole seconds from 1s to 24h that divide a day: %w", d, ErrWidth)
	}
	return nil
}

// Of returns the width of a rollup's windows.
func (w Widths) Of(r *Rollup) time.Duration {
	if r.Group == Owners && w.Owners != 0 {
		return w.Owners
	}
	return r.Width
}

// Table returns an empty table of the rollup.
func (w Widths) Table(r *Rollup) *Table { return r.table(w.Of(r)) }

// Group returns the widths of a group's windows, each once, in the order of its
// rollups.
func (w Widths) Group(group string) []time.Duration {
	var out []time.Duration
	for _, r := range Of(group) {
		if d := w.Of(r); !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

// End returns the first time (µs) at which every window that holds time (µs) has
// ended, also one of the given width: what an end mark carries.
func (w Widths) End(time int64, width time.Duration) int64 {
	end := int64(math.MinInt64)
	for _, r := range Rollups {
		end = max(end, Start(time, w.Of(r))+w.Of(r).Microseconds())
	}
	if width > 0 {
		end = max(end, Start(time, width)+width.Microseconds())
	}
	return end
}
