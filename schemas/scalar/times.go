package scalar

import (
	"math"
	"time"
)

// Time reads RFC 3339, or Unix seconds, milliseconds, microseconds or
// nanoseconds told by magnitude, to µs since 1970 UTC. What is finer than a
// microsecond is cut off towards the past.
func Time(b []byte) (int64, bool) {
	if len(b) >= 20 && b[4] == '-' {
		return RFC3339(b)
	}
	whole, fraction, digits, ok := Decimal(b)
	if ok {
		return ScaleTime(whole, fraction, digits)
	}
	// Exponents are rare in logs; a float64 holds such times to the
	// microsecond until the year 2255.
	v, ok := Float(b)
	if !ok || math.Abs(v) >= 1<<62 {
		return 0, false
	}
	floor := math.Floor(v)
	return ScaleTime(int64(floor), int64(math.Round((v-floor)*1e6)), 6)
}

// RFC3339 reads such a time to µs since 1970 UTC. It also takes a space or a small t between date and time and a
// small z, as RFC 3339 §5.6 allows.
func RFC3339(b []byte) (int64, bool) {
	var buf [40]byte
	if len(b) > len(buf) {
		return 0, false
	}
	text := append(buf[:0], b...)
	if text[10] == ' ' || text[10] == 't' {
		text[10] = 'T'
	}
	if last := len(text) - 1; text[last] == 'z' {
		text[last] = 'Z'
	}
	var t time.Time
	if t.UnmarshalText(text) != nil {
		return 0, false
	}
	return t.UnixMicro(), true
}

// Powers of ten at which the unit of a Unix time changes. Seconds reach to the
// year 5138, milliseconds begin with 1973, and so on.
const (
	maxSeconds = 100_000_000_000
	maxMillis  = maxSeconds * 1000
	maxMicros  = maxMillis * 1000
)

// ScaleTime returns the µs of whole + fraction/10^digits in its unit. whole is
// rounded down, so that the fraction is never negative.
func ScaleTime(whole, fraction int64, digits int) (int64, bool) {
	size := whole
	if size < 0 {
		size = -(size + 1)
	}
	var scale, unit int64 // µs in one; ones in a µs
	switch {
	case size < maxSeconds:
		scale = 1_000_000
	case size < maxMillis:
		scale = 1000
	case size < maxMicros:
		scale = 1
	default:
		unit = 1000
	}
	if unit > 0 {
		return FloorDiv(whole, unit), true
	}
	for ; digits > 6; digits-- {
		fraction /= 10
	}
	for ; digits < 6; digits++ {
		fraction *= 10
	}
	return whole*scale + fraction*scale/1_000_000, true
}

// FloorDiv divides and rounds towards the past.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Decimal splits a plain decimal number into its whole part, rounded down, and
// a fraction of so many digits (at most 9; more are cut off).
func Decimal(b []byte) (whole, fraction int64, digits int, ok bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		d := int64(b[i] - '0')
		if whole > (math.MaxInt64-d)/10 {
			return 0, 0, 0, false
		}
		whole = whole*10 + d
	}
	if i == 0 {
		return 0, 0, 0, false
	}
	cut := false
	if i < len(b) {
		if b[i] != '.' || i+1 == len(b) {
			return 0, 0, 0, false
		}
		for i++; i < len(b); i++ {
			if b[i] < '0' || b[i] > '9' {
				return 0, 0, 0, false
			}
			if digits < 9 {
				fraction = fraction*10 + int64(b[i]-'0')
				digits++
			} else if b[i] != '0' {
				cut = true
			}
		}
	}
	if negative {
		whole = -whole
		if fraction > 0 || cut {
			// −1.25 is −2 and 0.75; what was cut off makes it a little less.
			whole--
			one := int64(1)
			for range digits {
				one *= 10
			}
			fraction = one - fraction
			if cut {
				fraction--
			}
		}
	}
	return whole, fraction, digits, true
}
