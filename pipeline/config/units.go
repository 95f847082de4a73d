package config

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration in YAML: 10s, 500ms, 1h, 24h.
type Duration time.Duration

// Std returns the standard library's duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns the shortest spelling, such as 1h.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// AutoDuration is a Duration, or auto: then something else decides.
type AutoDuration struct {
	Auto bool
	Duration
}

// Size is bytes: 512, 64KB, 130MB, 10GB; 1 MB = 10⁶ B (DESIGN §4.1).
type Size int64

// String returns the size in the largest unit in which it is a whole number.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if n := int64(s); n != 0 && n%u.factor == 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.suffix
		}
	}
	return "0"
}

// Rate is bytes per time: 117MB/h, 5MB/s, 1GB/d. It is held per day, so that
// per second, minute, hour and day are all exact.
type Rate struct{ PerDay int64 }

// In returns the bytes in a stretch of time, rounded down.
func (r Rate) In(d time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(r.PerDay), uint64(max(d, 0)))
	if hi >= uint64(24*time.Hour) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(24*time.Hour))
	return int64(min(q, math.MaxInt64))
}

// PerSecond returns bytes a second.
func (r Rate) PerSecond() float64 { return float64(r.PerDay) / (24 * 3600) }

var sizeUnits = []struct {
	suffix string
	factor int64
}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1}, {"", 1}}

const expectedSize = "a size such as 130MB (B, KB, MB, GB, TB; 1 MB = 10⁶ B)"

func parseSize(s string) (int64, error) {
	for _, u := range sizeUnits {
		n, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
		v := math.Round(f * float64(u.factor))
		if err != nil || math.IsNaN(v) || v < 0 || v > 1e18 {
			break
		}
		return int64(v), nil
	}
	return 0, fmt.Errorf("expected %s", expectedSize)
}

// UnmarshalText reads a rate, for options of the command line.
func (r *Rate) UnmarshalText(b []byte) (err error) {
	*r, err = parseRate(string(b))
	return err
}

const expectedRate = "a rate such as 117MB/h (per s, m, h or d), or 0"

func parseRate(s string) (Rate, error) {
	if s == "0" {
		return Rate{}, nil
	}
	size, unit, ok := strings.Cut(s, "/")
	perDay := map[string]int64{"s": 86400, "m": 1440, "h": 24, "d": 1}[unit]
	n, err := parseSize(size)
	if !ok || perDay == 0 || err != nil {
		return Rate{}, fmt.Errorf("expected %s", expectedRate)
	}
	if n > math.MaxInt64/perDay {
		return Rate{}, fmt.Errorf("expected %s", "a rate below 9000 PB a day")
	}
	return Rate{PerDay: n * perDay}, nil
}

func parseAutoDuration(s string) (AutoDuration, error) {
	if s == Auto {
		return AutoDuration{Auto: true}, nil
	}
	d, err := parseDuration(s)
	if err != nil {
		err = fmt.Errorf("%w, or auto", err)
	}
	return AutoDuration{Duration: d}, err
}

func parseDuration(s string) (Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("expected a duration such as 10s, 500ms or 1h")
	}
	return Duration(d), nil
}
