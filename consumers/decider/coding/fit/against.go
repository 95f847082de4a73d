package fit

import (
	"math"

	"penstock/consumers/decider/coding/threshold"
)

// Against compares tasks with a model that other tasks have shown. ratio is the time that
// they spent beyond the fixed part for each that ended, over the exponential part that the
// model has: 1 if it is theirs, above it if they take longer, below it, or below 0, if they
// are faster. z is by how many standard deviations of chance it is off. Points with fewer
// than 20 ended tasks are passed over; n counts the ended tasks of the others. Delays are cut
// off as in Fit, so that a time-out does not look like another store.
func Against(points []Point, m threshold.Model) (ratio, z float64, n int64) {
	var ended, exposed float64
	for _, p := range points {
		count := p.Done.Count()
		if count < leastOfPoint || p.MB <= 0 {
			continue
		}
		n += count
		s := newSizes(p, m.DeltaPerMB)
		s.psi = max(m.Mean(s.mb), 1e-3)
		s.set(m.Fixed(s.low))
		end := s.delta + float64(cut*s.psi)
		for i, b := range s.done.Index {
			d, tasks := middle(b), float64(s.done.Counts[i])
			if d <= end {
				ended += tasks
			}
			// What is below the fixed part counts as it is: there should be none.
			exposed += float64(tasks * (min(d, end) - s.delta) / s.psi)
		}
		for i, b := range s.cancelled.Index {
			exposed += float64(float64(s.cancelled.Counts[i]) * (max(min(middle(b), end), s.floor) - s.delta) / s.psi)
		}
	}
	if n == 0 {
		return 1, 0, 0
	}
	ended = max(ended, 1)
	return exposed / ended, (exposed - ended) / math.Sqrt(ended), n
}
