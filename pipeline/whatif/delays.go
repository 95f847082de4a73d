package whatif

import (
	"math"

	"penstock/schemas/window"
)

// Delays is a distribution of latency delays: count, sum, and a dense
// log-linear histogram with the bins of the windows. The zero value is empty.
type Delays struct {
	Count, Sum int64 // requests; µs
	bins       []int64
}

const (
	delayBins = 4096
	// maxDelay keeps every bin inside the histogram: half an hour in µs.
	maxDelay = 1<<31 - 1
)

func (d *Delays) add(us, n int64) {
	if d.bins == nil {
		d.bins = make([]int64, delayBins)
	}
	d.Count += n
	d.Sum += us * n
	d.bins[window.Bin(min(us, maxDelay))] += n
}

// Merge adds another distribution.
func (d *Delays) Merge(o *Delays) {
	d.Count += o.Count
	d.Sum += o.Sum
	if o.bins == nil {
		return
	}
	if d.bins == nil {
		d.bins = make([]int64, delayBins)
	}
	for i, n := range o.bins {
		d.bins[i] += n
	}
}

// Mean is the mean in ms, NaN of none.
func (d *Delays) Mean() float64 {
	if d.Count == 0 {
		return math.NaN()
	}
	return float64(d.Sum) / float64(d.Count) / 1000
}

// Quantile is the middle of the bin of the q-quantile in ms, NaN of none.
func (d *Delays) Quantile(q float64) float64 {
	rank := int64(q*float64(d.Count-1)) + 1
	for i, n := range d.bins {
		if rank -= n; rank <= 0 && n > 0 {
			least, most := window.BinBounds(uint16(i))
			return float64(least+most) / 2000
		}
	}
	return math.NaN()
}
