package shares

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRemainderCases are parts worked out by hand.
func TestRemainderCases(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		shares []float64
		units  int
		want   []int
		err    error
	}{
		"thirds":                     {[]float64{1, 1, 1}, 100, []int{34, 33, 33}, nil},
		"exact":                      {[]float64{0.62, 0.38}, 100, []int{62, 38}, nil},
		"largest remainder":          {[]float64{0.475, 0.349, 0.176}, 10, []int{5, 3, 2}, nil},
		"0 stays 0":                  {[]float64{0, 1, 0}, 256, []int{0, 256, 0}, nil},
		"little is something":        {[]float64{0.001, 0.999}, 100, []int{1, 99}, nil},
		"many little from the large": {[]float64{0.997, 0.001, 0.001, 0.001}, 10, []int{7, 1, 1, 1}, nil},
		"as many as units":           {[]float64{9, 1, 1}, 3, []int{1, 1, 1}, nil},
		"tiny":                       {[]float64{5e-324, 1}, 10, []int{1, 9}, nil},
		"more than units":            {[]float64{1, 1, 1}, 2, nil, ErrTooFine},
		"all zero":                   {[]float64{0, 0}, 100, nil, ErrShares},
		"none":                       {nil, 100, nil, ErrShares},
		"negative":                   {[]float64{-1, 2}, 100, nil, ErrShares},
		"not a number":               {[]float64{math.NaN(), 2}, 100, nil, ErrShares},
		"infinite":                   {[]float64{math.Inf(1), 2}, 100, nil, ErrShares},
		"infinite sum":               {[]float64{math.MaxFloat64, math.MaxFloat64}, 100, nil, ErrShares},
	} {
		got, err := Remainder(tc.shares, tc.units)
		if !errors.Is(err, tc.err) || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v, want %v, %v", name, got, err, tc.want, tc.err)
		}
	}
}

func shares(t *rapid.T, least, most int) []float64 {
	share := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0.001, 1), rapid.Float64Range(1e-9, 1e-6),
		rapid.Map(rapid.IntRange(1, 8), func(n int) float64 { return float64(n) / 8 }))
	return rapid.SliceOfN(share, least, most).Filter(func(s []float64) bool { return slices.Max(s) > 0 }).Draw(t, "shares")
}

// TestRemainder holds for all shares what P33 asks for.
func TestRemainder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := shares(t, 1, 30)
		units := rapid.IntRange(30, 5000).Draw(t, "units")
		parts, err := Remainder(s, units)
		if err != nil {
			t.Fatal(err)
		}
		sum, all, little := 0, 0.0, false
		for i, p := range parts {
			sum += p
			all += s[i]
			if p < 0 || (p == 0) != (s[i] == 0) {
				t.Fatalf("a share of %v became %d of %d", s[i], p, units)
			}
		}
		if sum != units {
			t.Fatalf("parts sum up to %d, not %d", sum, units)
		}
		for _, v := range s {
			little = little || v > 0 && v/all*float64(units) < 1
		}
		for i, p := range parts {
			if exact := s[i] / all * float64(units); !little && math.Abs(float64(p)-exact) >= 1+1e-6 {
				t.Fatalf("a part of %v became %d", exact, p)
			}
		}
		order := rapid.Permutation(indices(len(s))).Draw(t, "order")
		other := make([]float64, len(s))
		for to, from := range order {
			other[to] = s[from]
		}
		again, err := Remainder(other, units)
		if err != nil {
			t.Fatal(err)
		}
		for to, from := range order {
			if d := again[to] - parts[from]; d < -1 || d > 1 {
				t.Fatalf("another order made %d out of %d", again[to], parts[from])
			}
		}
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// TestSchedule compares every stretch of every order with the exact parts.
func TestSchedule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOfN(rapid.IntRange(0, 40), 1, 12).Filter(func(u []int) bool { return slices.Max(u) > 0 }).Draw(t, "units")
		order := schedule(units)
		length, some := len(order), 0
		for _, w := range units {
			if w > 0 {
				some++
			}
		}
		bound := 1 - 1/float64(max(2*some-2, 1))
		picked := make([]int, len(units))
		for at, i := range order {
			picked[i]++
			for j, w := range units {
				exact := float64(w) * float64(at+1) / float64(length)
				if off := math.Abs(float64(picked[j]) - exact); off > bound+1e-9 {
					t.Fatalf("site %d was picked %d of %d times, exactly %v: off by more than %v", j, picked[j], at+1, exact, bound)
				}
			}
		}
		if !slices.Equal(picked, units) {
			t.Fatalf("a round picked %v, not %v", picked, units)
		}
	})
}
