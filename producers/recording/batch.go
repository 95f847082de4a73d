package recording

import (
	"cmp"
	"math"
	"slices"

	"penstock/schemas/event"
)

// batch is what was decoded of a columnar file: rows in columns, each as a
// request holds it. Columns that the file lacks are absent in all rows.
type batch struct {
	rows  int
	first int64 // number of the first row, from 1

	// ints holds the whole-number columns, time, and op as 0 and 1.
	ints   [colTrace][]int64
	lat    []float32
	lon    []float32
	traces [][16]byte
	texts  [numColumns - firstText]textColumn
	faults []cellFault      // by row, of one row by column
	had    [numColumns]bool // the record has the column
	stale  [numColumns]bool // the column holds something from before
}

// textColumn holds a code a row, −1 for absent, and the values.
type textColumn struct {
	codes  []int32
	values []string
}

// cellFault is a value that cannot be used.
type cellFault struct {
	row    int
	column column
	got    string
}

// absentInt is the absent value of a whole-number column in a request.
func absentInt(c column) int64 {
	switch c {
	case colWait, colService, colNetwork, colOverdue:
		return event.NullInt
	case colStatus:
		return event.NullStatus
	}
	return 0
}

// reset makes the batch one of so many rows, to be filled column by column and
// then settled.
func (b *batch) reset(rows int, first int64) {
	grown := rows > cap(b.lat)
	b.rows, b.first, b.faults = rows, first, b.faults[:0]
	for c := range b.had {
		b.stale[c] = b.stale[c] || b.had[c] || grown
	}
	b.had = [numColumns]bool{}
	for c := range b.ints {
		if column(c) != colLat && column(c) != colLon {
			b.ints[c] = resize(b.ints[c], rows)
		}
	}
	b.lat, b.lon, b.traces = resize(b.lat, rows), resize(b.lon, rows), resize(b.traces, rows)
	for i := range b.texts {
		t := &b.texts[i]
		t.codes = resize(t.codes, rows)
		clear(t.values)
		t.values = t.values[:0]
	}
}

// settle empties the columns that this record lacks and puts the faults in the
// order in which rows are read.
func (b *batch) settle() {
	for c := range numColumns {
		if b.stale[c] && !b.had[c] {
			b.empty(c)
			b.stale[c] = false
		}
	}
	slices.SortStableFunc(b.faults, func(x, y cellFault) int {
		return cmp.Or(cmp.Compare(x.row, y.row), cmp.Compare(x.column, y.column))
	})
}

// empty makes a column absent in all rows there is memory for.
func (b *batch) empty(c column) {
	nan := float32(math.NaN())
	switch {
	case c >= firstText:
		codes := b.texts[c-firstText].codes
		fill(codes[:cap(codes)], event.NullCode)
	case c == colTrace:
		clear(b.traces[:cap(b.traces)])
	case c == colLat:
		fill(b.lat[:cap(b.lat)], nan)
	case c == colLon:
		fill(b.lon[:cap(b.lon)], nan)
	default:
		fill(b.ints[c][:cap(b.ints[c])], absentInt(c))
	}
}

func resize[T any](s []T, n int) []T {
	return slices.Grow(s[:0], n)[:n]
}

func fill[T any](s []T, v T) {
	for i := range s {
		s[i] = v
	}
}

// wrong notes a value that cannot be used.
func (b *batch) wrong(row int, c column, got string) {
	b.faults = append(b.faults, cellFault{row, c, clip(got, maxGot)})
}

// text returns row i of a text column.
func (b *batch) text(c column, i int) string {
	t := &b.texts[c-firstText]
	if code := t.codes[i]; code >= 0 {
		return t.values[code]
	}
	return ""
}

// row fills r from row i.
func (b *batch) row(i int, r *event.Request) {
	r.Time = b.ints[colTime][i]
	r.Mark = event.Timing(b.ints[colMark][i])
	r.Op = event.Op(b.ints[colOp][i])
	r.Bytes = b.ints[colBytes][i]
	r.Status = int32(b.ints[colStatus][i])
	r.N, r.K = uint8(b.ints[colN][i]), uint8(b.ints[colK][i])
	r.Lat, r.Lon = b.lat[i], b.lon[i]
	r.Wait, r.Service = b.ints[colWait][i], b.ints[colService][i]
	r.Network, r.Overdue = b.ints[colNetwork][i], b.ints[colOverdue][i]
	r.Trace = b.traces[i]
	r.ID = b.text(colID, i)
	r.User, r.Owner = b.text(colUser, i), b.text(colOwner, i)
	r.FromComponent, r.FromSite = b.text(colFromComponent, i), b.text(colFromSite, i)
	r.ToComponent, r.ToSite = b.text(colToComponent, i), b.text(colToSite, i)
	r.ToServer = b.text(colToServer, i)
	r.Class, r.Outcome = b.text(colClass, i), b.text(colOutcome, i)
}
