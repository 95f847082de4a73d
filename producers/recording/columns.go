package recording

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"penstock/producers/accesslog"
	"penstock/schemas/event"
	"penstock/schemas/scalar"
)

// column is one of DESIGN §3.1.
type column int8

const (
	colTime column = iota
	colMark
	colOp
	colBytes
	colStatus
	colN
	colK
	colLat
	colLon
	colWait
	colService
	colNetwork
	colOverdue
	colTrace
	colID
	colUser
	colOwner
	colFromComponent
	colFromSite
	colToComponent
	colToSite
	colToServer
	colClass
	colOutcome
	numColumns
	noColumn  column = -1
	firstText        = colID
)

var columnNames = [numColumns]string{
	"time", "mark", "op", "bytes", "status", "n", "k", "lat", "lon",
	"wait_us", "service_us", "network_us", "overdue_us", "trace",
	"id", "user", "owner", "from_component", "from_site",
	"to_component", "to_site", "to_server", "class", "outcome",
}

// columnExpected says in a fault what a column holds.
var columnExpected = [numColumns]string{
	"RFC 3339 or Unix s, ms, us or ns, between 1900 and 2200", "0, 1 or 2", "read, write or an HTTP method",
	fmt.Sprintf("a whole number from 0 to %d", int64(event.MaxRequestBytes)),
	"a status from 0 to 65535", "a whole number from 1 to 255", "a whole number from 1 to 255",
	"degrees from -90 to 90", "degrees from -180 to 180",
	delayExpected, delayExpected, delayExpected, delayExpected, "32 hexadecimal digits",
	"text", "text", "text", "text", "text", "text", "text", "text", "text", "text",
}

const delayExpected = "microseconds, at most 100 years either way"

func (c column) String() string { return columnNames[c] }

var columnByName = func() map[string]column {
	m := make(map[string]column, numColumns)
	for i, n := range columnNames {
		m[n] = column(i)
	}
	return m
}()

// required are the columns that may not be missing.
var required = [...]column{colTime, colOp, colBytes}

const requiredMask = 1<<colTime | 1<<colOp | 1<<colBytes

// missingColumn is the fault of a row that lacks a required value.
func missingColumn(seen uint32) *fault {
	for _, c := range required {
		if seen&(1<<c) == 0 {
			return &fault{field: c.String(), expected: columnExpected[c] + " (it may not be missing)"}
		}
	}
	return nil
}

// setText sets a column from text that is not missing. It returns false if the
// text is not of the column's kind.
func setText(r *event.Request, c column, b []byte, t *interner) bool {
	if c >= firstText {
		*textOf(r, c) = t.bytes(b)
		return true
	}
	var ok bool
	switch c {
	case colTime:
		r.Time, ok = scalar.Time(b)
		ok = ok && isTime(r.Time)
	case colOp:
		r.Op, ok = parseOp(b)
	case colLat:
		r.Lat, ok = parseDegrees(b)
	case colLon:
		r.Lon, ok = parseDegrees(b)
	case colTrace:
		ok = scalar.Trace(b, &r.Trace)
	default:
		var v int64
		if v, ok = scalar.Int(b); ok {
			ok = setInt(r, c, v)
		}
	}
	return ok
}

// setInt sets a whole-number column; false if the number is outside its range.
func setInt(r *event.Request, c column, v int64) bool {
	switch c {
	case colMark:
		r.Mark = event.Timing(v)
		return v >= 0 && v <= int64(event.Future)
	case colBytes:
		r.Bytes = v
		return v >= 0 && v <= event.MaxRequestBytes
	case colStatus:
		r.Status = int32(v)
		return v >= 0 && v <= math.MaxUint16
	case colN:
		r.N = uint8(v)
		return v > 0 && v <= math.MaxUint8
	case colK:
		r.K = uint8(v)
		return v > 0 && v <= math.MaxUint8
	case colWait:
		r.Wait = v
	case colService:
		r.Service = v
	case colNetwork:
		r.Network = v
	case colOverdue:
		r.Overdue = v
	}
	return v != event.NullInt && event.IsDelay(v)
}

// textOf returns where a request keeps a text column.
func textOf(r *event.Request, c column) *string {
	switch c {
	case colID:
		return &r.ID
	case colUser:
		return &r.User
	case colOwner:
		return &r.Owner
	case colFromComponent:
		return &r.FromComponent
	case colFromSite:
		return &r.FromSite
	case colToComponent:
		return &r.ToComponent
	case colToSite:
		return &r.ToSite
	case colToServer:
		return &r.ToServer
	case colClass:
		return &r.Class
	default:
		return &r.Outcome
	}
}

// isTime reports whether a time (µs) is one that rows may have.
func isTime(us int64) bool { return us >= event.MinTime && us <= event.MaxTime }

// parseOp reads read, write, or an HTTP method, which counts as in an access
// log, in capitals or small letters.
func parseOp(b []byte) (event.Op, bool) {
	switch {
	case string(b) == "read":
		return event.Read, true
	case string(b) == "write":
		return event.Write, true
	case len(b) > maxOp:
		return event.Read, false
	}
	var buf [maxOp]byte
	upper := buf[:len(b)]
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper[i] = c
	}
	switch string(upper) {
	case "READ":
		return event.Read, true
	case "WRITE":
		return event.Write, true
	}
	return accesslog.MethodOp(upper)
}

// maxOp is longer than any method.
const maxOp = 24

func parseDegrees(b []byte) (float32, bool) {
	if len(b) > 64 || strings.ContainsAny(string(b), "xXpP_nN") {
		return 0, false
	}
	// To 32 bits at once: twice rounded is not the same number.
	v, err := strconv.ParseFloat(string(b), 32)
	return float32(v), err == nil
}
