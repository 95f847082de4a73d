package threshold

import (
	"fmt"
	"math"
)

// Limits is what codes are chosen from, and for which requests.
type Limits struct {
	Connections int     // L, 1 to 65,536
	SizeMB      float64 // J, the size of a request in MB (10⁶ B), above 0
	KMin        int     // least chunks needed, 0 (which is 1) to KMax
	KMax        int     // most chunks needed, 1 to 32
	NMax        int     // most chunks asked for, KMax to 128: the cap on requests per read
	RMax        float64 // most n/k, at least 1
}

// Validate reports the first fault; the error wraps ErrInvalid.
func (l Limits) Validate() error {
	fault := func(field string, got any, expected string) error {
		return fmt.Errorf("limits: %s: got %v, expected %s: %w", field, got, expected, ErrInvalid)
	}
	switch {
	case l.Connections < 1 || l.Connections > 65_536:
		return fault("connections", l.Connections, "1 to 65,536")
	case !(l.SizeMB > 0) || l.SizeMB > 1e6:
		return fault("size", l.SizeMB, "above 0 MB, at most 1e6")
	case l.KMax < 1 || l.KMax > 32:
		return fault("kmax", l.KMax, "1 to 32")
	case l.KMin < 0 || l.KMin > l.KMax:
		return fault("kmin", l.KMin, "0 to kmax")
	case l.NMax < l.KMax || l.NMax > 128:
		return fault("nmax", l.NMax, "kmax to 128")
	case !(l.RMax >= 1) || l.RMax > 128:
		return fault("rmax", l.RMax, "1 to 128")
	}
	return nil
}

// top is the greatest n for k: the share of redundancy, the cap on requests, and the
// connections, for tasks that cannot all run at once are no faster than fewer. Without
// the least k there would be no code at all.
func (l Limits) top(k int) int {
	n := min(l.NMax, l.Connections, int(math.Floor(l.RMax*float64(k)+1e-9)))
	if k == l.least() {
		n = max(n, k)
	}
	return n
}

// least is the least k.
func (l Limits) least() int { return max(1, l.KMin) }

// table is thresholds of nothing but what no backlog changes: at least KMin chunks are
// needed, and asked for.
func (l Limits) table() Table {
	t := Table{K: make([]float64, l.KMax-1), N: make([]float64, l.NMax-1)}
	for j := range l.least() - 1 {
		t.K[j], t.N[j] = math.Inf(1), math.Inf(1)
	}
	return t
}

// Smoothing is the weight of the newest backlog in a coder's moving average, the a of
// PAPERS §3.4. At 0.01 more than 80 % of requests stay on two neighbouring k at every
// load; at 0.05 it is 59 % at a fifth of the capacity, with the same mean delay or a
// greater one.
const Smoothing = 0.01

// Table is thresholds on the smoothed number of waiting requests. Both lists fall, or
// stay: K[j−1] is where k goes over from j+1 to j.
type Table struct {
	K []float64 `json:"k"`
	N []float64 `json:"n"`
}

// Code is what a coder does at a backlog of q: the rule of PAPERS §3.4. It is the slow
// and plain form, for tests and explanations.
func (t Table) Code(q, rmax float64) (n, k int) {
	k, n = 1, 1
	for _, h := range t.K {
		if q < h {
			k++
		}
	}
	for _, h := range t.N {
		if q < h {
			n++
		}
	}
	return max(k, min(n, int(math.Floor(rmax*float64(k)+1e-9)))), k
}
