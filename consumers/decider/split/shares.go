package split

import "slices"

// apportion gives whole parts to weights in proportion, by largest remainder, so
// that they add up to whole (P33). 0 stays 0, and what is more than 0 gets at
// least one part as long as there are as many parts; ties go to the first. All
// zero: the first gets the whole, because a row always has a site (P31).
func apportion(weights []float64, whole int) []int {
	out := make([]int, len(weights))
	var sum float64
	positive := 0
	for _, w := range weights {
		sum += w
		if w > 0 {
			positive++
		}
	}
	if !(sum > 0) || positive > whole {
		out[0] = whole
		return out
	}
	type rest struct {
		at   int
		part float64
	}
	var rests []rest
	left := whole
	for i, w := range weights {
		exact := w / sum * float64(whole)
		out[i] = int(exact)
		part := exact - float64(out[i])
		if w > 0 && out[i] == 0 {
			out[i], part = 1, -1
		}
		left -= out[i]
		rests = append(rests, rest{i, part})
	}
	slices.SortStableFunc(rests, func(a, b rest) int {
		switch {
		case a.part > b.part:
			return -1
		case a.part < b.part:
			return 1
		}
		return 0
	})
	for k := 0; left > 0; k = (k + 1) % len(rests) {
		if weights[rests[k].at] > 0 {
			out[rests[k].at]++
			left--
		}
	}
	for left < 0 {
		// The parts of the least were taken from the largest.
		big := 0
		for i := range out {
			if out[i] > out[big] {
				big = i
			}
		}
		out[big]--
		left++
	}
	return out
}

// only is all parts at one site.
func only(site, sites, whole int) []int {
	out := make([]int, sites)
	out[site] = whole
	return out
}

// distance is the parts that have to move between two tables.
func distance(a, b []int) int {
	sum := 0
	for n := range a {
		sum += max(0, a[n]-b[n])
	}
	return sum
}
