package accesslog

import (
	"slices"
	"strings"
)

// column is what a mapping fills: a column of DESIGN §3.1, or one of five from
// which such columns follow.
type column uint8

const (
	colTime column = iota
	colID
	colTrace
	colUser
	colClient  // an address: user by keyed hash, lat and lon by its place
	colRequest // "METHOD target HTTP/x": op and owner
	colMethod  // op
	colTarget  // path and query: owner
	colOp
	colOwner
	colLat
	colLon
	colFromComponent
	colFromSite
	colToComponent
	colToSite
	colToServer
	colClass
	colOutcome
	colBytes
	colStatus
	colWait
	colService
	colNetwork
	colTotal // the whole time at the server: what the three above leave open
	colOverdue
	colN
	colK
	numColumns
)

var columnNames = [numColumns]string{
	"time", "id", "trace", "user", "client", "request", "method", "target", "op", "owner", "lat", "lon",
	"from_component", "from_site", "to_component", "to_site", "to_server", "class", "outcome",
	"bytes", "status", "wait_us", "service_us", "network_us", "total_us", "overdue_us", "n", "k",
}

func (c column) String() string { return columnNames[c] }

// columnExpected says in an error what a column is filled from.
var columnExpected = [numColumns]string{
	"a time between 1900 and 2200", "text", "32 hexadecimal digits", "text", "a client address", "a request",
	"a method", "a target", "read, write or an HTTP method", "text", degreesExpected, degreesExpected,
	"text", "text", "text", "text", "text", "text", "text", "a number of bytes or -", "a status of up to three digits or -",
	delayExpected, delayExpected, delayExpected, delayExpected, delayExpected, "a whole number from 1 to 255", "a whole number from 1 to 255",
}

const (
	delayExpected   = "a time span of at most 100 years"
	degreesExpected = "degrees"
)

func isColumn(name string) bool { return slices.Contains(columnNames[:], name) }

// columnList names all columns, for errors.
func columnList() string { return strings.Join(columnNames[:], ", ") }

// isDelay reports whether a column holds a time span.
func (c column) isDelay() bool { return c >= colWait && c <= colOverdue }

// needsRow reports whether a line that has none of a column's fields is no
// request at all.
func (c column) needsRow() bool { return c >= colRequest && c <= colOwner }
