package entry

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What entry points tell each other in Server-Timing.
const (
	timingService = "penstock-service"
	timingWait    = "penstock-wait"
	timingLimit   = "penstock-limit"
)

// timings is what an answer says of the time that it took.
type timings struct {
	service, wait       time.Duration
	hasService, hasWait bool
	// limit is by when the response was to be there, of a peer's dispatcher; 0: none.
	limit time.Duration
	// callees is what the service waited for those that it called itself: what total
	// is above its own time, if it says both. They make rows of their own.
	callees time.Duration
}

// readTimings reads the durations in Server-Timing. name is the metric that is
// the service's own time, see Options.ServerTiming. From a peer its words count
// before the service's.
func readTimings(h http.Header, name string, peer bool) (t timings) {
	lines := h["Server-Timing"]
	if len(lines) == 0 {
		return t
	}
	var best int // 3 as named or the peer's, 2 app, 1 total, 0 the only one
	var only, total time.Duration
	count := 0
	for _, line := range lines {
		for line != "" {
			var metric string
			metric, line = cutOutside(line, ',')
			n, d, ok := parseMetric(metric)
			if !ok {
				continue
			}
			if n == "total" {
				total = d
			}
			rank := 0
			switch {
			case peer && n == timingWait:
				t.wait, t.hasWait = d, true
				continue
			case peer && n == timingLimit:
				t.limit = max(0, d)
				continue
			case peer && n == timingService:
				rank = 4
			case name != "" && n == name:
				rank = 3
			case name == "" && n == "app":
				rank = 2
			case name == "" && n == "total":
				rank = 1
			}
			if count++; rank == 0 {
				only = d
			} else if rank > best {
				best, t.service, t.hasService = rank, d, true
			}
		}
	}
	if best == 0 && count == 1 && name == "" {
		t.service, t.hasService = only, true
	}
	if t.hasService && total > 0 {
		t.callees = max(0, total-t.service)
	}
	return t
}

// parseMetric reads name;dur=ms;…; ok is false without a duration.
func parseMetric(s string) (name string, d time.Duration, ok bool) {
	name, s = cutOutside(s, ';')
	name = strings.TrimSpace(name)
	for s != "" {
		var param string
		param, s = cutOutside(s, ';')
		k, v, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(k), "dur") {
			continue
		}
		v = strings.Trim(strings.TrimSpace(v), `"`)
		ms, err := strconv.ParseFloat(v, 64)
		// A day is more than any answer takes, and keeps sums within an int64. What
		// is negative is kept: the clock of the service is to be seen for what it is.
		if err != nil || !(ms > -864e5 && ms < 864e5) {
			return name, 0, false
		}
		return name, time.Duration(ms * float64(time.Millisecond)), name != ""
	}
	return name, 0, false
}

// cutOutside cuts s at the first sep that isn't in a quoted string.
func cutOutside(s string, sep byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == sep && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// withoutTimings takes what entry points tell each other out of an answer.
func withoutTimings(h http.Header) {
	lines := h["Server-Timing"]
	kept := lines[:0]
	for _, line := range lines {
		var out []string
		touched := false
		for rest := line; rest != ""; {
			var metric string
			metric, rest = cutOutside(rest, ',')
			if strings.HasPrefix(strings.TrimSpace(metric), "penstock-") {
				touched = true
				continue
			}
			out = append(out, metric)
		}
		switch {
		case !touched:
			kept = append(kept, line)
		case len(out) > 0:
			kept = append(kept, strings.TrimSpace(strings.Join(out, ",")))
		}
	}
	if len(kept) == 0 {
		delete(h, "Server-Timing")
		return
	}
	h["Server-Timing"] = kept
}

// addTimings tells a peer how long the request waited and was served here, and what
// its limit is, if it has one.
func addTimings(h http.Header, service, wait, limit time.Duration) {
	b := make([]byte, 0, 104)
	b = append(b, timingService+";dur="...)
	b = strconv.AppendFloat(b, float64(service)/float64(time.Millisecond), 'f', 3, 64)
	b = append(b, ", "+timingWait+";dur="...)
	b = strconv.AppendFloat(b, float64(wait)/float64(time.Millisecond), 'f', 3, 64)
	if limit > 0 {
		b = append(b, ", "+timingLimit+";dur="...)
		b = strconv.AppendFloat(b, float64(limit)/float64(time.Millisecond), 'f', 3, 64)
	}
	h["Server-Timing"] = append(h["Server-Timing"], string(b))
}
