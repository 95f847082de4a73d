package routertest

import (
	"maps"
	"slices"
)

// Turns chooses sites by weights, as a proxy does that takes them in turns: each is
// never a whole request from its part. The zero value is ready.
type Turns struct{ credit map[string]int64 }

// Next returns the site of the next request; empty if none has a weight.
func (t *Turns) Next(weights map[string]int64) string {
	if t.credit == nil {
		t.credit = map[string]int64{}
	}
	best, sum := "", int64(0)
	for _, site := range slices.Sorted(maps.Keys(weights)) {
		if weights[site] == 0 {
			t.credit[site] = 0
			continue
		}
		t.credit[site] += weights[site]
		sum += weights[site]
		if best == "" || t.credit[site] > t.credit[best] {
			best = site
		}
	}
	t.credit[best] -= sum
	return best
}
