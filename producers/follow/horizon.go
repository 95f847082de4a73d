package follow

import "math"

// bound is what one stream says about the rows that are still to come of it.
type bound struct {
	// behind: it has lines that were not read. Then the greatest time that was
	// read binds, 0 if none was: nothing is known.
	behind bool
	last   int64
	// checked is when it was last seen to have nothing more, µs.
	checked int64
}

// horizonOf is the time (µs) before which no row is expected, less the disorder:
// what a file that is behind has read, and the clock for one that is read to its
// end, whichever is least; never before the horizon so far, and never beyond the
// clock less the disorder, whatever the rows say. It is pure.
//
// So lines that wait to be read hold the watermark back, and are not late because
// of other files.
func horizonOf(sofar, now, scanned, disorder int64, bounds []bound) int64 {
	least := min(now, scanned)
	for _, b := range bounds {
		switch {
		case !b.behind:
			least = min(least, b.checked)
		case b.last == 0:
			least = math.MinInt64
		default:
			least = min(least, b.last)
		}
	}
	if least < math.MinInt64+disorder {
		return sofar
	}
	return max(sofar, least-disorder)
}
