package event

import (
	"math"
	"slices"
)

// Requests is a batch of requests in columns. All columns have the same
// length. The zero value is an empty batch, ready for Append.
type Requests struct {
	Time    []int64
	Mark    []uint8
	Op      []uint8
	N, K    []uint8
	Status  []int32
	Lat     []float32
	Lon     []float32
	Bytes   []int64
	Wait    []int64
	Service []int64
	Network []int64
	Overdue []int64
	Trace   [][16]byte

	// ID repeats rarely, yet a dictionary costs little and keeps one shape.
	ID                            Dict
	User, Owner                   Dict
	FromComponent, FromSite       Dict
	ToComponent, ToSite, ToServer Dict
	Class, Outcome                Dict

	size int
}

// Len returns the number of rows.
func (b *Requests) Len() int { return len(b.Time) }

// Size returns the estimated size of the columns in bytes. It depends on the
// appended rows alone, so that cuts by size are the same each time.
func (b *Requests) Size() int { return b.size }

// Append adds a row. It allocates only where a column grows or a string is new
// to the batch. The row is not checked (Request.Check).
func (b *Requests) Append(r *Request) {
	b.appendFixed(r)
	b.size += b.ID.add(r.ID) + b.User.add(r.User) + b.Owner.add(r.Owner) +
		b.FromComponent.add(r.FromComponent) + b.FromSite.add(r.FromSite) + b.ToComponent.add(r.ToComponent) +
		b.ToSite.add(r.ToSite) + b.ToServer.add(r.ToServer) + b.Class.add(r.Class) + b.Outcome.add(r.Outcome)
}

// appendFixed adds a row to all columns but those of texts.
func (b *Requests) appendFixed(r *Request) {
	b.Time = append(b.Time, r.Time)
	b.Mark = append(b.Mark, uint8(r.Mark))
	b.Op = append(b.Op, uint8(r.Op))
	b.N = append(b.N, r.N)
	b.K = append(b.K, r.K)
	b.Status = append(b.Status, r.Status)
	b.Lat = append(b.Lat, r.Lat)
	b.Lon = append(b.Lon, r.Lon)
	b.Bytes = append(b.Bytes, r.Bytes)
	b.Wait = append(b.Wait, r.Wait)
	b.Service = append(b.Service, r.Service)
	b.Network = append(b.Network, r.Network)
	b.Overdue = append(b.Overdue, r.Overdue)
	b.Trace = append(b.Trace, r.Trace)
	b.size += rowSize
}

// Grow makes room for rows, so that their columns need not grow one by one.
func (b *Requests) Grow(rows int) {
	b.Time, b.Mark, b.Op = slices.Grow(b.Time, rows), slices.Grow(b.Mark, rows), slices.Grow(b.Op, rows)
	b.N, b.K, b.Status = slices.Grow(b.N, rows), slices.Grow(b.K, rows), slices.Grow(b.Status, rows)
	b.Lat, b.Lon, b.Bytes = slices.Grow(b.Lat, rows), slices.Grow(b.Lon, rows), slices.Grow(b.Bytes, rows)
	b.Wait, b.Service, b.Network = slices.Grow(b.Wait, rows), slices.Grow(b.Service, rows), slices.Grow(b.Network, rows)
	b.Overdue, b.Trace = slices.Grow(b.Overdue, rows), slices.Grow(b.Trace, rows)
	for i := range textFields {
		d := b.text(i)
		d.Codes = slices.Grow(d.Codes, rows)
	}
}

// rowSize is what one row takes in the fixed columns and the ten dictionary
// codes, estimated.
const rowSize = 8 + 1 + 1 + 2 + 2 + 8 + 8 + 4*8 + 10*4

func (b *Requests) text(i int) *Dict {
	switch i {
	case 0:
		return &b.ID
	case 1:
		return &b.User
	case 2:
		return &b.Owner
	case 3:
		return &b.FromComponent
	case 4:
		return &b.FromSite
	case 5:
		return &b.ToComponent
	case 6:
		return &b.ToSite
	case 7:
		return &b.ToServer
	case 8:
		return &b.Class
	default:
		return &b.Outcome
	}
}

// Row returns row i as a Request.
func (b *Requests) Row(i int) Request {
	return Request{
		Time: b.Time[i], Mark: Timing(b.Mark[i]), Op: Op(b.Op[i]), N: b.N[i], K: b.K[i],
		Status: b.Status[i], Lat: b.Lat[i], Lon: b.Lon[i], Bytes: b.Bytes[i],
		Wait: b.Wait[i], Service: b.Service[i], Network: b.Network[i], Overdue: b.Overdue[i],
		Trace: b.Trace[i], ID: b.ID.At(i), User: b.User.At(i), Owner: b.Owner.At(i),
		FromComponent: b.FromComponent.At(i), FromSite: b.FromSite.At(i),
		ToComponent: b.ToComponent.At(i), ToSite: b.ToSite.At(i), ToServer: b.ToServer.At(i),
		Class: b.Class.At(i), Outcome: b.Outcome.At(i),
	}
}

// HasPlace reports whether row i has a position.
func (b *Requests) HasPlace(i int) bool {
	return !math.IsNaN(float64(b.Lat[i])) && !math.IsNaN(float64(b.Lon[i]))
}

// Reset empties the batch and keeps its memory.
func (b *Requests) Reset() {
	b.Time, b.Mark, b.Op = b.Time[:0], b.Mark[:0], b.Op[:0]
	b.N, b.K, b.Status = b.N[:0], b.K[:0], b.Status[:0]
	b.Lat, b.Lon, b.Bytes = b.Lat[:0], b.Lon[:0], b.Bytes[:0]
	b.Wait, b.Service, b.Network = b.Wait[:0], b.Service[:0], b.Network[:0]
	b.Overdue, b.Trace = b.Overdue[:0], b.Trace[:0]
	for i := range textFields {
		b.text(i).Reset()
	}
	b.size = 0
}
