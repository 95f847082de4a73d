package event

import (
	"fmt"
	"math"

	"penstock/schemas/columnar"
)

// The columns of request/1 in the order of DESIGN §3.1, by their place.
const (
	colTime = iota
	colMark
	colID
	colTrace
	colUser
	colOwner
	colLat
	colLon
	colFromComponent
	colFromSite
	colToComponent
	colToSite
	colToServer
	colOp
	colClass
	colBytes
	colWait
	colService
	colNetwork
	colOverdue
	colStatus
	colOutcome
	colN
	colK
	numColumns
)

var requestFields = [numColumns]columnar.Field{
	colTime:          {Name: "time", Type: columnar.Time},
	colMark:          {Name: "mark", Type: columnar.Uint8},
	colID:            {Name: "id", Type: columnar.Utf8, Nullable: true},
	colTrace:         {Name: "trace", Type: columnar.Binary16, Nullable: true},
	colUser:          {Name: "user", Type: columnar.DictUtf8, Nullable: true},
	colOwner:         {Name: "owner", Type: columnar.DictUtf8, Nullable: true},
	colLat:           {Name: "lat", Type: columnar.Float32, Nullable: true},
	colLon:           {Name: "lon", Type: columnar.Float32, Nullable: true},
	colFromComponent: {Name: "from_component", Type: columnar.DictUtf8, Nullable: true},
	colFromSite:      {Name: "from_site", Type: columnar.DictUtf8, Nullable: true},
	colToComponent:   {Name: "to_component", Type: columnar.DictUtf8, Nullable: true},
	colToSite:        {Name: "to_site", Type: columnar.DictUtf8, Nullable: true},
	colToServer:      {Name: "to_server", Type: columnar.DictUtf8, Nullable: true},
	colOp:            {Name: "op", Type: columnar.DictUtf8},
	colClass:         {Name: "class", Type: columnar.DictUtf8, Nullable: true},
	colBytes:         {Name: "bytes", Type: columnar.Int64},
	colWait:          {Name: "wait_us", Type: columnar.Int64, Nullable: true},
	colService:       {Name: "service_us", Type: columnar.Int64, Nullable: true},
	colNetwork:       {Name: "network_us", Type: columnar.Int64, Nullable: true},
	colOverdue:       {Name: "overdue_us", Type: columnar.Int64, Nullable: true},
	colStatus:        {Name: "status", Type: columnar.Uint16, Nullable: true},
	colOutcome:       {Name: "outcome", Type: columnar.DictUtf8, Nullable: true},
	colN:             {Name: "n", Type: columnar.Uint8, Nullable: true},
	colK:             {Name: "k", Type: columnar.Uint8, Nullable: true},
}

// RequestFields returns the columns of request/1 (DESIGN §3.1).
func RequestFields() []columnar.Field { return append([]columnar.Field{}, requestFields[:]...) }

// ops are the values of the column op, in the order of the constants of Op.
var ops = []string{"read", "write"}

// requestMemory is what the columns of a batch need beside the batch itself.
type requestMemory struct {
	columns [numColumns]columnar.Column
	valid   [numColumns][]byte
	texts   [numColumns]columnar.TextMemory
	status  []uint16
	op      []int32
}

// view makes the columns of b: views of it and of m.
func (m *requestMemory) view(b *Requests) error {
	if err := b.consistent(); err != nil {
		return err
	}
	for i := range requestFields {
		m.columns[i] = m.column(i, b)
	}
	return nil
}

func (m *requestMemory) column(i int, b *Requests) columnar.Column {
	name, valid := requestFields[i].Name, &m.valid[i]
	switch i {
	case colTime:
		return columnar.Fixed(name, columnar.Time, b.Time)
	case colMark:
		return columnar.Fixed(name, columnar.Uint8, b.Mark)
	case colBytes:
		return columnar.Fixed(name, columnar.Int64, b.Bytes)
	case colTrace:
		return columnar.Nullable(name, columnar.Binary16, b.Trace, [16]byte{}, valid)
	case colLat:
		return columnar.NullableFloats(name, b.Lat, valid)
	case colLon:
		return columnar.NullableFloats(name, b.Lon, valid)
	case colWait, colService, colNetwork, colOverdue:
		return columnar.Nullable(name, columnar.Int64, *b.ints(i), NullInt, valid)
	case colN:
		return columnar.Nullable(name, columnar.Uint8, b.N, 0, valid)
	case colK:
		return columnar.Nullable(name, columnar.Uint8, b.K, 0, valid)
	case colStatus:
		return m.statusColumn(name, b, valid)
	case colOp:
		m.op = m.op[:0]
		for _, o := range b.Op {
			m.op = append(m.op, int32(o&1))
		}
		c := columnar.Dictionary(name, m.op, ops, &m.texts[i])
		c.Nullable = false
		return c
	case colID:
		return columnar.Plain(name, b.ID.Codes, b.ID.Values, &m.texts[i])
	}
	d := b.dict(i)
	return columnar.Dictionary(name, d.Codes, d.Values, &m.texts[i])
}

// statusColumn narrows the statuses to what travels.
func (m *requestMemory) statusColumn(name string, b *Requests, valid *[]byte) columnar.Column {
	known := columnar.Nullable(name, columnar.Int32, b.Status, NullStatus, valid)
	m.status = m.status[:0]
	for _, s := range b.Status {
		m.status = append(m.status, uint16(s))
	}
	c := columnar.Fixed(name, columnar.Uint16, m.status)
	c.Nullable, c.Valid, c.Nulls = true, known.Valid, known.Nulls
	return c
}

// ints returns the column at that place, one of the nullable durations.
func (b *Requests) ints(i int) *[]int64 {
	switch i {
	case colWait:
		return &b.Wait
	case colService:
		return &b.Service
	case colNetwork:
		return &b.Network
	}
	return &b.Overdue
}

// dict returns the column of texts at that place.
func (b *Requests) dict(i int) *Dict {
	switch i {
	case colID:
		return &b.ID
	case colUser:
		return &b.User
	case colOwner:
		return &b.Owner
	case colFromComponent:
		return &b.FromComponent
	case colFromSite:
		return &b.FromSite
	case colToComponent:
		return &b.ToComponent
	case colToSite:
		return &b.ToSite
	case colToServer:
		return &b.ToServer
	case colClass:
		return &b.Class
	}
	return &b.Outcome
}

// dictColumns are the places of the columns of texts.
var dictColumns = [...]int{
	colID, colUser, colOwner, colFromComponent, colFromSite, colToComponent, colToSite, colToServer, colClass, colOutcome,
}

// consistent returns an error, which wraps ErrInvalid, if the columns differ in
// length, a code has no value, or the texts of a column are too long for one
// batch. It is for batches filled other than by Append.
func (b *Requests) consistent() error {
	n := b.Len()
	lens := [...]struct {
		col, n int
	}{
		{colMark, len(b.Mark)},
		{colOp, len(b.Op)},
		{colN, len(b.N)},
		{colK, len(b.K)},
		{colStatus, len(b.Status)},
		{colLat, len(b.Lat)},
		{colLon, len(b.Lon)},
		{colBytes, len(b.Bytes)},
		{colWait, len(b.Wait)},
		{colService, len(b.Service)},
		{colNetwork, len(b.Network)},
		{colOverdue, len(b.Overdue)},
		{colTrace, len(b.Trace)},
	}
	for _, l := range lens {
		if l.n != n {
			return fmt.Errorf("column %s: %d rows, expected %d: %w", requestFields[l.col].Name, l.n, n, ErrInvalid)
		}
	}
	for _, i := range dictColumns {
		if err := b.dict(i).consistent(requestFields[i].Name, n); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dict) consistent(name string, rows int) error {
	if len(d.Codes) != rows {
		return fmt.Errorf("column %s: %d rows, expected %d: %w", name, len(d.Codes), rows, ErrInvalid)
	}
	if columnar.MostCode(d.Codes) > uint32(len(d.Values)) {
		return fmt.Errorf("column %s: a code that is not among its %d values: %w", name, len(d.Values), ErrInvalid)
	}
	if n, ok := columnar.Bytes(d.Values); !ok {
		return fmt.Errorf("column %s: texts of %d bytes, expected at most %d: %w", name, n, math.MaxInt32, ErrInvalid)
	}
	return nil
}
