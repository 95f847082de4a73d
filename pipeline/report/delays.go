package report

import (
	"encoding/json"
	"math"
	"strconv"

	"penstock/schemas/window"
)

// Delays adds up latency delays in µs: count, sum, and a dense log-linear
// histogram with the bins of the windows. The zero value is empty.
type Delays struct {
	count, sum int64
	bins       [4096]int64
}

// maxDelay keeps every bin inside the dense array: 2^31 µs is over half an
// hour, half the globe by the formula is below 0.5 s.
const maxDelay = 1<<31 - 1

// Add takes n requests with a delay of us microseconds each, at least 0.
func (d *Delays) Add(us, n int64) {
	us = min(us, maxDelay)
	d.count += n
	d.sum += us * n
	d.bins[window.Bin(us)] += n
}

// Figure is a number that may be unknown: NaN here, null in JSON, a dash for
// people. What is not known is not 0.
type Figure float64

// Unknown is the figure of which nothing is known.
func Unknown() Figure { return Figure(math.NaN()) }

// Known reports whether there is a number.
func (f Figure) Known() bool { return !math.IsNaN(float64(f)) }

// Text prints the figure with some digits after the point.
func (f Figure) Text(digits int) string {
	if !f.Known() {
		return "–"
	}
	return strconv.FormatFloat(float64(f), 'f', digits, 64)
}

// MarshalJSON writes a number or null.
func (f Figure) MarshalJSON() ([]byte, error) {
	if !f.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads a number or null.
func (f *Figure) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = Unknown()
		return nil
	}
	return json.Unmarshal(b, (*float64)(f))
}

// Delay is a distribution of latency delays in ms; unknown without a located
// request.
type Delay struct {
	Requests  int64  `json:"requests"`
	Mean      Figure `json:"mean"`
	P50       Figure `json:"p50"`
	P99       Figure `json:"p99"`
	Unlocated int64  `json:"unlocated"`
}

// Summary returns the mean and the quantiles; unlocated is how many requests had
// no place. That of nil, of which nothing is known, is that of no samples.
func (d *Delays) Summary(unlocated int64) Delay {
	out := Delay{Unlocated: unlocated, Mean: Unknown(), P50: Unknown(), P99: Unknown()}
	if d == nil || d.count == 0 {
		return out
	}
	out.Requests = d.count
	out.Mean = Figure(ms(float64(d.sum) / float64(d.count)))
	out.P50, out.P99 = d.quantile(0.5), d.quantile(0.99)
	return out
}

func (d *Delays) quantile(q float64) Figure {
	rank := int64(q*float64(d.count-1)) + 1
	for i, c := range d.bins {
		if rank -= c; rank <= 0 {
			least, most := window.BinBounds(uint16(i))
			return Figure(ms(float64(least+most) / 2))
		}
	}
	return Unknown()
}

// ms turns µs into ms with three digits after the point.
func ms(us float64) float64 { return float64(int64(us+0.5)) / 1000 }

// share returns a/b, 0 if b is 0.
func share(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
