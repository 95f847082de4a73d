package shares

import (
	"fmt"
	"math"
	"slices"
)

// Remainder gives out a number of units by shares, which are relative weights, to
// the largest remainders (PROBLEMS P33). The units sum up exactly. A share of 0
// gets 0. A share above 0 gets at least one unit, even if its exact part is less:
// the units for that come from those that are furthest above theirs. While nobody
// needs that, everybody is less than one unit from the exact part.
//
// Equal remainders go by the order of the shares; another order of the same
// shares changes nobody's part by more than one unit.
//
// ErrShares if a share is negative or not finite, or all are 0. ErrTooFine if
// there are more shares above 0 than units.
func Remainder(shares []float64, units int) ([]int, error) {
	sum, some, err := total(shares)
	if err != nil {
		return nil, err
	}
	if some > units {
		return nil, fmt.Errorf("%d shares above 0 of %d units: %w", some, units, ErrTooFine)
	}
	parts, exact := make([]int, len(shares)), make([]float64, len(shares))
	left := units
	for i, s := range shares {
		exact[i] = s / sum * float64(units)
		parts[i] = int(exact[i])
		if s > 0 {
			parts[i] = max(parts[i], 1)
		}
		left -= parts[i]
	}
	for ; left > 0; left-- {
		parts[furthest(shares, func(i int) (float64, bool) { return exact[i] - float64(parts[i]), true })]++
	}
	for ; left < 0; left++ {
		parts[furthest(shares, func(i int) (float64, bool) { return float64(parts[i]) - exact[i], parts[i] > 1 })]--
	}
	return parts, nil
}

// furthest returns the first of the shares above 0 that may and has the greatest
// distance.
func furthest(shares []float64, distance func(i int) (d float64, may bool)) int {
	best, most := 0, math.Inf(-1)
	for i, s := range shares {
		if s == 0 {
			continue
		}
		if d, may := distance(i); may && d > most {
			best, most = i, d
		}
	}
	return best
}

// total adds shares up, in an order that does not depend on theirs; some is how
// many are above 0.
func total(shares []float64) (sum float64, some int, err error) {
	for i, s := range shares {
		if !(s >= 0) || math.IsInf(s, 0) {
			return 0, 0, fmt.Errorf("share %d is %v: %w", i, s, ErrShares)
		}
		if s > 0 {
			some++
		}
	}
	if some == 0 {
		return 0, 0, fmt.Errorf("no share of %d is above 0: %w", len(shares), ErrShares)
	}
	for _, s := range slices.Sorted(slices.Values(shares)) {
		sum += s
	}
	if math.IsInf(sum, 0) {
		return 0, 0, fmt.Errorf("the shares sum up to %v: %w", sum, ErrShares)
	}
	return sum, some, nil
}
