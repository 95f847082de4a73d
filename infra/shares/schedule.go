package shares

// schedule lays units out in an order in which every stretch from the beginning
// holds of each site its part of the stretch to less than one: of n sites, after
// t picks, a site with w of L units was picked w·t/L ± (1 − 1/(2n−2)) times. It is
// Tijdeman's solution of the chairman assignment problem (1980), which no order
// betters. Parts of any other stretch are therefore true to less than two, and a
// whole round of L picks is exact.
//
// The arithmetic is in units of 1/(L·(2n−2)), so that it is exact.
func schedule(units []int) []uint8 {
	length, some, only := 0, 0, 0
	for i, w := range units {
		length += w
		if w > 0 {
			some++
			only = i
		}
	}
	order := make([]uint8, length)
	if some == 1 {
		for t := range order {
			order[t] = uint8(only)
		}
		return order
	}
	d := int64(2*some - 2)
	l := int64(length)
	picked := make([]int64, len(units))
	for t := range order {
		order[t] = uint8(next(units, picked, int64(t)+1, l, d))
		picked[order[t]]++
	}
	return order
}

// next returns whose turn it is at pick t: of those that would fall behind by
// 1/d or more, the one that first reaches its greatest lag.
func next(units []int, picked []int64, t, l, d int64) int {
	best := -1
	var bestSlack, bestUnits int64
	for i, w := range units {
		if w == 0 {
			continue
		}
		lag := d * (int64(w)*t - picked[i]*l) // of l·d
		if lag < l {
			continue
		}
		// Picks until the lag is 1 − 1/d: slack / w, in common units.
		slack := l*(d-1) - lag
		if best < 0 || slack*bestUnits < bestSlack*int64(w) {
			best, bestSlack, bestUnits = i, slack, int64(w)
		}
	}
	return best
}
