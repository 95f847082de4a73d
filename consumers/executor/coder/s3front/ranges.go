package s3front

import (
	"math"
	"strconv"
	"strings"

	"penstock/consumers/executor/coder"
)

// parseRange reads a Range (RFC 9110 §14.2) of one range of bytes. A field that is none,
// or asks for several ranges, is as good as not there. ok tells that it counts.
func parseRange(field string) (r coder.Range, ok bool) {
	spec, found := strings.CutPrefix(field, "bytes=")
	first, last, dash := strings.Cut(strings.TrimSpace(spec), "-")
	if !found || !dash {
		return coder.Range{}, false
	}
	from, hasFrom, fine := position(first)
	to, hasTo, alsoFine := position(last)
	switch {
	case !fine || !alsoFine || !hasFrom && !hasTo || hasFrom && hasTo && to < from:
		return coder.Range{}, false
	case !hasFrom && to == 0:
		// The last 0 bytes begin beyond the end of every object.
		return coder.Range{Set: true, From: math.MaxInt64, To: -1}, true
	case !hasFrom:
		return coder.Range{Set: true, Last: to}, true
	case !hasTo:
		return coder.Range{Set: true, From: from, To: -1}, true
	}
	return coder.Range{Set: true, From: from, To: to}, true
}

// position reads a number of a range. One beyond all objects is the greatest there is.
func position(digits string) (n int64, set, ok bool) {
	if digits == "" {
		return 0, false, true
	}
	if strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		n = math.MaxInt64
	}
	return n, true, true
}
