package simcoder

import (
	"math"
	"slices"
)

// Figures are what the delays of requests come to, in ms.
type Figures struct {
	Mean, SD, P50, P90, P99 float64
}

// figuresOf sorts delays (ms) and sums them up. Sums are in order of size, so that they
// do not hang on the order in which requests ended.
func figuresOf(delays []float64) Figures {
	n := float64(len(delays))
	if n == 0 {
		return Figures{}
	}
	slices.Sort(delays)
	var sum float64
	for _, d := range delays {
		sum += d
	}
	f := Figures{Mean: sum / n}
	var squares float64
	for _, d := range delays {
		squares += float64((d - f.Mean) * (d - f.Mean))
	}
	f.SD = math.Sqrt(squares / n)
	f.P50, f.P90, f.P99 = quantile(delays, 0.5), quantile(delays, 0.9), quantile(delays, 0.99)
	return f
}

// quantile is that of sorted delays: the least that a share q does not exceed.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, int(math.Ceil(q*float64(len(sorted))))-1)]
}
