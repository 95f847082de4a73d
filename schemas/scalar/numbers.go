// Package scalar reads the single values of recordings, logs and events as text
// has them: numbers, times, trace ids, and what stands for a missing value (DESIGN
// §3.1). 5 and 5.0 are one number, and what is missing is never 0.
//
// Everything here is pure. What is not a value of the kind that is asked for is
// reported by false, never by a panic.
package scalar

import (
	"bytes"
	"encoding/hex"
	"math"
	"strconv"
)

// IsMissing reports whether text stands for a missing value.
func IsMissing(b []byte) bool {
	return len(b) == 0 || len(b) == 1 && b[0] == '-' || string(b) == "null"
}

// Int reads a whole number, also one that is written as 5.0 or 5e0.
func Int(b []byte) (int64, bool) {
	if whole, _, digits, ok := Decimal(b); ok {
		return whole, digits == 0 || allZeros(b[bytes.IndexByte(b, '.')+1:])
	}
	v, ok := Float(b)
	if !ok || v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		return 0, false
	}
	return int64(v), true
}

func allZeros(b []byte) bool {
	return len(bytes.TrimLeft(b, "0")) == 0
}

// Float reads a decimal number. Unlike strconv it takes neither hex nor
// underscores nor the words for infinity and not-a-number.
func Float(b []byte) (float64, bool) {
	if len(b) > 64 {
		return 0, false
	}
	for _, c := range b {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil
}

// Degrees reads a decimal number of 32 bits.
func Degrees(b []byte) (float32, bool) {
	if len(b) > 64 || bytes.ContainsAny(b, "xXpP_nN") {
		return 0, false
	}
	// To 32 bits at once: twice rounded is not the same number.
	v, err := strconv.ParseFloat(string(b), 32)
	return float32(v), err == nil
}

// Trace reads the 32 hexadecimal digits of a W3C trace id.
func Trace(b []byte, into *[16]byte) bool {
	if len(b) != 2*len(into) {
		return false
	}
	_, err := hex.Decode(into[:], b)
	return err == nil
}
