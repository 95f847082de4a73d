package accesslog

import (
	"math"
	"time"

	"penstock/infra/errorkind"
	"penstock/schemas/event"
	"penstock/schemas/scalar"
)

// unit of a time or a time span.
type unit uint8

const (
	unitNone unit = iota // a time's is told by its magnitude; a span carries it
	unitNanos
	unitMicros
	unitMillis
	unitSeconds
	unitMinutes
)

var unitNames = map[string]unit{"": unitNone, "ns": unitNanos, "us": unitMicros, "µs": unitMicros, "ms": unitMillis, "s": unitSeconds, "min": unitMinutes}

// unitMicrosIn is how many µs a unit has; ns are 1/1000.
var unitMicrosIn = [...]int64{unitMicros: 1, unitMillis: 1000, unitSeconds: 1_000_000, unitMinutes: 60_000_000}

func unitByName(name string) (unit, error) {
	u, ok := unitNames[name]
	if !ok {
		return 0, errorkind.Errorf(ErrFormat, "unit %.20q, expected ns, us, ms, s or min", name)
	}
	return u, nil
}

// parseSpan reads a time span to µs, rounded to the nearest. A unit that stands
// behind the number counts instead of the column's.
func parseSpan(b []byte, u unit) (int64, bool) {
	if len(b) > 1 && b[0] == '+' {
		b = b[1:]
	}
	if n := len(b); n > 0 && (b[n-1] == 's' || b[n-1] == 'm' || b[n-1] == 'h') {
		return parseDuration(b)
	}
	whole, fraction, places, ok := scalar.Decimal(b)
	if !ok {
		v, ok := scalar.Float(b)
		if !ok || u == unitNone {
			return 0, false
		}
		if u == unitNanos {
			v /= 1000
		} else {
			v *= float64(unitMicrosIn[u])
		}
		if math.Abs(v) > event.MaxDelay {
			return 0, false
		}
		return int64(math.Round(v)), true
	}
	return scaleSpan(whole, fraction, places, u)
}

// scaleSpan returns whole + fraction/10^places of a unit in µs.
func scaleSpan(whole, fraction int64, places int, u unit) (int64, bool) {
	switch u {
	case unitNone:
		return 0, false
	case unitNanos:
		return scalar.FloorDiv(whole+500, 1000), whole < math.MaxInt64-500 && event.IsDelay(whole/1000)
	}
	scale := unitMicrosIn[u]
	if whole > event.MaxDelay/scale || whole < -event.MaxDelay/scale {
		return 0, false
	}
	one := int64(1)
	for range places {
		one *= 10
	}
	// Both are below 1e9 and 6e7 each.
	us := whole*scale + (fraction*scale+one/2)/one
	return us, event.IsDelay(us)
}

// parseDuration reads a number with its unit, such as 42ms, 1.5s or 1m2s.
func parseDuration(b []byte) (int64, bool) {
	if len(b) > 64 {
		return 0, false
	}
	// A plain number of a known unit is read without an allocation.
	end := len(b)
	for end > 0 && (b[end-1] < '0' || b[end-1] > '9') {
		end--
	}
	if u, ok := unitNames[string(b[end:])]; ok && end > 0 {
		if whole, fraction, places, ok := scalar.Decimal(b[:end]); ok {
			return scaleSpan(whole, fraction, places, u)
		}
	}
	d, err := time.ParseDuration(string(b))
	if err != nil {
		return 0, false
	}
	us := scalar.FloorDiv(int64(d)/500+1, 2)
	return us, event.IsDelay(us)
}

// localFormats are the usual ways to write a time without a zone, and some with
// one that RFC 3339 does not know.
var localFormats = func() []*timeFormat {
	var out []*timeFormat
	for _, pattern := range []string{
		"%d/%b/%Y:%H:%M:%S.%f", "%d/%b/%Y:%H:%M:%S", "%d/%b/%Y:%H:%M:%S.%f %z",
		"%Y-%m-%dT%H:%M:%S.%f%z", "%Y-%m-%dT%H:%M:%S%z", "%F %T.%f", "%F %T", "%FT%T.%f", "%FT%T", "%F %T.%f %z", "%F %T %z", "%Y/%m/%d %T.%f", "%Y/%m/%d %T",
	} {
		f, err := compileTime(pattern)
		if err != nil {
			panic(err)
		}
		out = append(out, f)
	}
	return out
}()

// parseAnyTime reads a time that is not the common format's: RFC 3339 and what
// resembles it, a number of its unit since 1970, or the common format without a
// zone.
func parseAnyTime(b []byte, u unit, zone *time.Location) (int64, bool) {
	if len(b) >= 19 && (b[4] == '-' || b[4] == '/' || b[2] == '/') {
		if b[4] == '-' {
			if us, ok := scalar.RFC3339(b); ok {
				return us, true
			}
		}
		for _, f := range localFormats {
			if us, ok := f.parse(b, zone); ok {
				return us, true
			}
		}
		return 0, false
	}
	if u == unitNone {
		return scalar.Time(b)
	}
	whole, fraction, places, ok := scalar.Decimal(b)
	if !ok {
		v, ok := scalar.Float(b)
		if !ok || math.Abs(v) > 1<<52 {
			return 0, false
		}
		floor := math.Floor(v)
		whole, fraction, places = int64(floor), int64(math.Round((v-floor)*1e6)), 6
	}
	return scaleTime(whole, fraction, places, u)
}

// scaleTime returns a time of a unit in µs; what is finer is cut off towards the
// past, as everywhere (scalar.Time).
func scaleTime(whole, fraction int64, places int, u unit) (int64, bool) {
	if u == unitNanos {
		return scalar.FloorDiv(whole, 1000), true
	}
	scale := unitMicrosIn[u]
	if whole > math.MaxInt64/scale || whole < math.MinInt64/scale {
		return 0, false
	}
	one := int64(1)
	for range places {
		one *= 10
	}
	return whole*scale + fraction*scale/one, true
}
