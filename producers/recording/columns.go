package recording

import (
	"fmt"

	"penstock/producers/accesslog"
	"penstock/schemas/event"
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
	if c == colOp {
		var ok bool
		r.Op, ok = parseOp(b)
		return ok
	}
	return r.Set(eventColumns[c], b)
}

// eventColumns are the columns as package event knows them.
var eventColumns = func() (m [numColumns]event.Column) {
	for i, n := range columnNames {
		m[i], _ = event.ColumnNamed(n) // all of them are there
	}
	return m
}()

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
