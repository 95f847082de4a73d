package report

import (
	"encoding/json"
	"math"
	"strconv"

	"penstock/schemas/sphere"
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

func (d *Delays) summary(unlocated int64) Delay {
	out := Delay{Requests: d.count, Unlocated: unlocated, Mean: Unknown(), P50: Unknown(), P99: Unknown()}
	if d.count == 0 {
		return out
	}
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

// geography answers how far places are from the sites. Places repeat, so each
// is worked out once; the memory is bounded by forgetting all when it is full.
type geography struct {
	sites []sphere.Vector
	index map[[2]float32]int32
	rtt   []int32 // µs, per place and site
	near  []int16 // nearest site per place, first in config order
}

const maxPlaces = 1 << 18

func newGeography(sites []Site) *geography {
	g := &geography{index: map[[2]float32]int32{}}
	for _, s := range sites {
		g.sites = append(g.sites, sphere.FromDegrees(s.Lat, s.Lon))
	}
	return g
}

// place returns the index of a place; it is valid until the next call.
func (g *geography) place(lat, lon float32) int32 {
	key := [2]float32{lat, lon}
	if i, ok := g.index[key]; ok {
		return i
	}
	if len(g.near) >= maxPlaces {
		clear(g.index)
		g.rtt, g.near = g.rtt[:0], g.near[:0]
	}
	v := sphere.FromDegrees(float64(lat), float64(lon))
	i, best := int32(len(g.near)), 0
	least := 0.0
	for s, at := range g.sites {
		km := sphere.Distance(v, at)
		if s == 0 || km < least {
			best, least = s, km
		}
		g.rtt = append(g.rtt, int32(sphere.RTT(km)*1000+0.5))
	}
	g.near = append(g.near, int16(best))
	g.index[key] = i
	return i
}

func (g *geography) delay(place int32, site int16) int64 {
	return int64(g.rtt[int(place)*len(g.sites)+int(site)])
}

// share returns a/b, 0 if b is 0.
func share(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
