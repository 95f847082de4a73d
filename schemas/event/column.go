package event

import (
	"fmt"
	"math"

	"penstock/schemas/scalar"
)

// Column is a column of request/1 by its place in RequestFields.
type Column int

// columnExpected says what a column holds where it is written as text.
var columnExpected = func() (e [numColumns]string) {
	for i := range e {
		e[i] = "text"
	}
	e[colTime] = "RFC 3339 or Unix s, ms, us or ns, between 1900 and 2200"
	e[colMark] = markExpected
	e[colTrace] = "32 hexadecimal digits"
	e[colLat], e[colLon] = "degrees from -90 to 90", "degrees from -180 to 180"
	e[colOp] = "read or write"
	e[colBytes] = fmt.Sprintf("a whole number from 0 to %d", int64(MaxRequestBytes))
	for _, c := range [...]int{colWait, colService, colNetwork, colOverdue} {
		e[c] = delayExpected
	}
	e[colStatus] = "a status from 0 to 65535"
	e[colN], e[colK] = "a whole number from 1 to 255", "a whole number from 1 to 255"
	return e
}()

var columnByName = func() map[string]Column {
	m := make(map[string]Column, numColumns)
	for i, f := range requestFields {
		m[f.Name] = Column(i)
	}
	return m
}()

// ColumnNamed returns the column of a name.
func ColumnNamed(name string) (Column, bool) {
	c, ok := columnByName[name]
	return c, ok
}

// String returns the column's name.
func (c Column) String() string { return requestFields[c].Name }

// Expected says what the column holds where it is written as text.
func (c Column) Expected() string { return columnExpected[c] }

// isText reports whether the column is one of texts.
func (c Column) isText() bool {
	switch c {
	case colID, colUser, colOwner, colFromComponent, colFromSite,
		colToComponent, colToSite, colToServer, colClass, colOutcome:
		return true
	}
	return false
}

// Set sets a column that is not one of texts from a value as text writes it
// (package scalar), which is not missing. It returns false if the value is not of
// the column's kind or outside its range; the column is then of no use.
func (r *Request) Set(c Column, value []byte) bool {
	var ok bool
	switch c {
	case colTime:
		r.Time, ok = scalar.Time(value)
		return ok && r.Time >= MinTime && r.Time <= MaxTime
	case colLat:
		r.Lat, ok = scalar.Degrees(value)
		return ok && r.Lat >= -90 && r.Lat <= 90
	case colLon:
		r.Lon, ok = scalar.Degrees(value)
		return ok && r.Lon >= -180 && r.Lon <= 180
	case colTrace:
		return scalar.Trace(value, &r.Trace)
	case colOp:
		return r.setOp(value)
	}
	v, ok := scalar.Int(value)
	return ok && r.setInt(c, v)
}

func (r *Request) setOp(value []byte) bool {
	switch string(value) {
	case ops[Read]:
		r.Op = Read
	case ops[Write]:
		r.Op = Write
	default:
		return false
	}
	return true
}

// setInt sets a column of whole numbers.
func (r *Request) setInt(c Column, v int64) bool {
	switch c {
	case colMark:
		r.Mark = Timing(v)
		return v >= 0 && v <= int64(Future)
	case colBytes:
		r.Bytes = v
		return v >= 0 && v <= MaxRequestBytes
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
	default:
		return false
	}
	return v != NullInt && IsDelay(v)
}
