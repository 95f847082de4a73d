package assign

import (
	"math"
	"math/bits"
)

// wide is a signed integer of 128 bits. Sums over ten million items, and bytes
// times the price of a byte, do not fit 64.
type wide struct {
	hi int64
	lo uint64
}

var widest = wide{math.MaxInt64, math.MaxUint64}

func wideOf(v int64) wide { return wide{v >> 63, uint64(v)} }

// wideOfFloat rounds towards zero and saturates; v is not negative.
func wideOfFloat(v float64) wide {
	switch {
	case v < 1<<62:
		return wideOf(int64(v))
	case v >= 0x1p126:
		return widest
	}
	frac, exp := math.Frexp(v)
	return wide{0, uint64(frac * (1 << 53))}.up(uint(exp - 53))
}

func (a wide) plus(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	return wide{a.hi + b.hi + int64(carry), lo}
}

func (a wide) minus(b wide) wide {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	return wide{a.hi - b.hi - int64(borrow), lo}
}

func (a wide) less(b wide) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a wide) least(b wide) wide {
	if b.less(a) {
		return b
	}
	return a
}

func (a wide) greatest(b wide) wide {
	if a.less(b) {
		return b
	}
	return a
}

// int64 saturates.
func (a wide) int64() int64 {
	if a.hi == int64(a.lo)>>63 {
		return int64(a.lo)
	}
	if a.hi < 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}

func (a wide) float() float64 { return float64(a.hi)*0x1p64 + float64(a.lo) }

// up is a·2^s; the caller sees to it that it fits.
func (a wide) up(s uint) wide {
	if s >= 64 {
		return wide{int64(a.lo << (s - 64)), 0}
	}
	return wide{a.hi<<s | int64(a.lo>>(64-s)), a.lo << s}
}

// down is a/2^s, rounded down.
func (a wide) down(s uint) wide {
	switch {
	case s >= 128:
		return wideOf(a.hi >> 63)
	case s >= 64:
		return wide{a.hi >> 63, uint64(a.hi >> (s - 64))}
	}
	return wide{a.hi >> s, a.lo>>s | uint64(a.hi)<<(64-s)}
}

// downUp is a/2^s, rounded up.
func (a wide) downUp(s uint) wide {
	d := a.down(s)
	if s < 128 && d.up(s) == a || a == (wide{}) {
		return d
	}
	return d.plus(wideOf(1))
}

// product is a·b of two numbers that are not negative.
func product(a, b int64) wide {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return wide{int64(hi), lo}
}

// priceUp is price·bytes, rounded up to whole units of cost. It is exact before
// that: a price is a whole number of 53 bits times a power of two. Neither is
// negative, and the price is at most maxOverload.
func priceUp(price float64, bytes int64) wide {
	if price <= 0 || bytes <= 0 {
		return wide{}
	}
	frac, exp := math.Frexp(price)
	w := product(int64(frac*(1<<53)), bytes)
	if exp >= 53 {
		return w.up(uint(exp - 53))
	}
	return w.downUp(uint(53 - exp))
}
