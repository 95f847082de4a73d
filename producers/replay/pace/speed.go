package pace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Speed is event time over wall time; 0 is as fast as possible.
type Speed float64

// Max is as fast as possible: nothing is scheduled, nothing lags.
const Max Speed = 0

// The bounds of a factor. Beyond them a schedule of days would overflow, or
// would be finer than any clock.
const (
	least = 1e-6
	most  = 1e9
)

// ParseSpeed reads max or a factor such as 0.5x or 36000x. The error wraps
// ErrSpeed.
func ParseSpeed(s string) (Speed, error) {
	if s == "max" {
		return Max, nil
	}
	digits, ok := strings.CutSuffix(s, "x")
	f, err := strconv.ParseFloat(digits, 64)
	// Only plain decimal numbers: no sign, hexadecimal, exponent, inf or nan.
	if !ok || err != nil || strings.Trim(digits, "0123456789.") != "" || f < least || f > most || math.IsNaN(f) {
		return 0, fmt.Errorf("%w: got %.40q, expected max or a factor from 0.000001x to 1000000000x", ErrSpeed, s)
	}
	return Speed(f), nil
}

// String returns the speed as ParseSpeed reads it.
func (s Speed) String() string {
	if s == Max {
		return "max"
	}
	return strconv.FormatFloat(float64(s), 'f', -1, 64) + "x"
}
