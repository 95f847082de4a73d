package gatewayapi

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"penstock/consumers/executor/router"
)

// TestWeights: sums are exact, 0 stays 0, none above 0 becomes 0 but where a site is
// away, and never are all 0 (PROBLEMS P31, P33).
func TestWeights(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "sites")
		w := wanted{split: map[string]float64{}, first: map[string][]int64{}, away: map[string]bool{}, foreign: rapid.Int64Range(0, 1).Draw(t, "foreign")}
		found, some, sum, ref := slots{}, false, 0.0, 0
		for i := range n {
			site := fmt.Sprint(i)
			share := rapid.Float64Range(0, 1).Draw(t, "share")
			if rapid.IntRange(0, 3).Draw(t, "none") == 0 {
				share = 0
			}
			w.split[site], w.away[site] = share, rapid.IntRange(0, 3).Draw(t, "away") == 0
			some, sum = some || share > 0, sum+share
			for range rapid.IntRange(1, 2).Draw(t, "refs") {
				found[site], w.first[site] = append(found[site], ref), append(w.first[site], rapid.Int64Range(20, mostWeight).Draw(t, "first"))
				ref++
			}
		}
		all, err := w.weights(found)
		if !some {
			if err == nil {
				t.Fatalf("all 0: %v", all)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		units := int64(Units)
		if w.foreign > 0 {
			units = min(total(w.first), mostWeight)
		}
		if got := total(all); got != units {
			t.Fatalf("the sum is %d of %d", got, units)
		}
		left := router.Without(w.split, func(site string) bool { return w.away[site] })
		sum = 0
		for _, share := range left {
			sum += share
		}
		for site, weights := range all {
			got := total(map[string][]int64{site: weights})
			if (got == 0) != (left[site] == 0) {
				t.Errorf("site %s has %d for a share of %v", site, got, left[site])
			}
			if off := math.Abs(float64(got) - left[site]/sum*float64(units)); off > 1+float64(2*n) {
				t.Errorf("site %s has %d of %d for a share of %v", site, got, units, left[site]/sum)
			}
		}
	})
}
