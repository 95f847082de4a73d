package gatewayapi

import (
	"fmt"
	"maps"
	"slices"

	"penstock/consumers/executor/router"
	"penstock/infra/shares"
)

// wanted is what a rule's weights are to be.
type wanted struct {
	// split are the shares of a table by site; nil: no table has the rule.
	split map[string]float64
	// first are the weights that the rule had before it was first touched.
	first map[string][]int64
	// away are sites that get nothing unless all are.
	away map[string]bool
	// foreign is the weight beside them.
	foreign int64
}

// weights returns the weight of each slot.
func (w wanted) weights(at slots) (map[string][]int64, error) {
	if w.split == nil {
		return w.restored(at), nil
	}
	var parts []float64
	sites := slices.Sorted(maps.Keys(at))
	left := router.Without(w.split, func(site string) bool { return w.away[site] })
	for site, share := range w.split {
		if share > 0 && len(at[site]) == 0 {
			return nil, fmt.Errorf("no backendRef of site %.80q: %w", site, shares.ErrAbsent)
		}
	}
	for _, site := range sites {
		for range at[site] {
			parts = append(parts, left[site]/float64(len(at[site])))
		}
	}
	units, err := shares.Remainder(parts, w.units())
	if err != nil {
		return nil, fmt.Errorf("in %d units: %w", w.units(), err)
	}
	all := make(map[string][]int64, len(at))
	for _, site := range sites {
		for range at[site] {
			all[site], units = append(all[site], int64(units[0])), units[1:]
		}
	}
	return all, nil
}

// units is what the weights sum up to. Where foreign ones are beside them it is the
// sum of before, so that their part of the requests stays what it was.
func (w wanted) units() int {
	if sum := total(w.first); w.foreign > 0 && sum > 0 {
		return int(min(sum, mostWeight))
	}
	return Units
}

// restored are the weights of before, and 0 for sites that are away.
func (w wanted) restored(at slots) map[string][]int64 {
	all := make(map[string][]int64, len(at))
	left := w.foreign
	for site, places := range at {
		for i := range places {
			weight := int64(1) // of a backendRef that has come since; the schema's default
			if i < len(w.first[site]) {
				weight = w.first[site][i]
			}
			all[site] = append(all[site], weight)
			if !w.away[site] {
				left += weight
			}
		}
	}
	if left == 0 {
		return all
	}
	for site := range w.away {
		clear(all[site])
	}
	return all
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// change is a weight to write.
type change struct {
	rule, ref int
	name      string // of what the backendRef refers to
	weight    int64
	has       bool // the field is there
}

// patch writes weights into a version of an object, and into no other.
func patch(version string, all []change) []operation {
	ops := []operation{{"test", "/metadata/resourceVersion", version}}
	for _, c := range all {
		at := fmt.Sprintf("/spec/rules/%d/backendRefs/%d", c.rule, c.ref)
		op := "add"
		if c.has {
			op = "replace"
		}
		ops = append(ops, operation{"test", at + "/name", c.name}, operation{op, at + "/weight", c.weight})
	}
	return ops
}
