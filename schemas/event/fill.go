package event

import (
	"fmt"
	"slices"

	"penstock/schemas/columnar"
)

// filler copies columns into a batch and checks their values. It keeps memory
// from one batch to the next.
type filler struct {
	codes  []int32
	texts  []string
	status []uint16
	dedupe distinct
}

// requests fills all columns of b that are not skipped.
func (f *filler) requests(b *Requests, batch *columnar.Batch, skip *[numColumns]bool) error {
	b.size = rowSize * batch.Rows
	for i := range requestFields {
		if skip[i] {
			f.drop(b, i)
			continue
		}
		c, err := find(batch, &requestFields[i])
		if err != nil {
			return err
		}
		if err := f.request(b, i, c, batch.Rows); err != nil {
			return err
		}
	}
	return nil
}

// find returns the column of a field, nil if it may be and is missing.
func find(batch *columnar.Batch, field *columnar.Field) (*columnar.Column, error) {
	c := batch.Column(field.Name)
	if c == nil && !field.Nullable {
		return nil, fmt.Errorf("column %s: missing, expected %s: %w", field.Name, field.Type, columnar.ErrColumn)
	}
	if c == nil {
		return nil, nil
	}
	texts := field.Type == columnar.DictUtf8 || field.Type == columnar.Utf8
	if c.Type != field.Type && (!texts || c.Type != columnar.DictUtf8 && c.Type != columnar.Utf8) {
		return nil, fmt.Errorf("column %s: got %s, expected %s: %w", field.Name, c.Type, field.Type, columnar.ErrColumn)
	}
	if c.Nulls > 0 && !field.Nullable {
		return nil, fmt.Errorf("column %s: %d rows are absent, expected none: %w", field.Name, c.Nulls, columnar.ErrColumn)
	}
	return c, nil
}

// request fills the column at place i; c is nil if it is missing.
func (f *filler) request(b *Requests, i int, c *columnar.Column, rows int) error {
	name := requestFields[i].Name
	switch i {
	case colTime:
		b.Time = read(b.Time, c, 0, rows)
		return inRange(name, b.Time, MinTime, MaxTime, timeExpected)
	case colMark:
		b.Mark = read(b.Mark, c, 0, rows)
		return inRange(name, b.Mark, 0, uint8(Future), markExpected)
	case colBytes:
		b.Bytes = read(b.Bytes, c, 0, rows)
		return inRange(name, b.Bytes, 0, MaxRequestBytes, bytesExpected)
	case colTrace:
		b.Trace = read(b.Trace, c, [16]byte{}, rows)
	case colLat:
		b.Lat = read(b.Lat, c, nan, rows)
		return inRange(name, b.Lat, -90, 90, "degrees from -90 to 90")
	case colLon:
		b.Lon = read(b.Lon, c, nan, rows)
		return inRange(name, b.Lon, -180, 180, "degrees from -180 to 180")
	case colWait, colService, colNetwork, colOverdue:
		ints := b.ints(i)
		*ints = read(*ints, c, NullInt, rows)
		return delays(name, *ints)
	case colN:
		b.N = read(b.N, c, 0, rows)
	case colK:
		b.K = read(b.K, c, 0, rows)
	case colStatus:
		f.fillStatus(b, c, rows)
	case colOp:
		return f.fillOp(b, c)
	default:
		d := b.dict(i)
		if err := f.dict(d, c, rows); err != nil {
			return err
		}
		for _, v := range d.Values {
			b.size += len(v) + 4
		}
	}
	return nil
}

// read copies a column of fixed width, or rows of absent if it is missing.
func read[T columnar.Value](dst []T, c *columnar.Column, absent T, rows int) []T {
	if c != nil {
		return columnar.Read(dst, c, absent)
	}
	dst = slices.Grow(dst[:0], rows)[:rows]
	for i := range dst {
		dst[i] = absent
	}
	return dst
}

// inRange returns an error for the first value outside of least to most. NaN is
// in no way outside.
func inRange[T int64 | uint8 | float32](name string, values []T, least, most T, expected string) error {
	bad := false
	for _, v := range values {
		bad = bad || v < least || v > most
	}
	if !bad {
		return nil
	}
	i := slices.IndexFunc(values, func(v T) bool { return v < least || v > most })
	return fmt.Errorf("column %s: row %d: got %v, expected %s: %w", name, i, values[i], expected, columnar.ErrColumn)
}

// delays returns an error for the first delay that is out of range.
func delays(name string, values []int64) error {
	bad := false
	for _, v := range values {
		bad = bad || !IsDelay(v)
	}
	if !bad {
		return nil
	}
	i := slices.IndexFunc(values, func(v int64) bool { return !IsDelay(v) })
	return fmt.Errorf("column %s: row %d: got %d, expected %s: %w", name, i, values[i], delayExpected, columnar.ErrColumn)
}

func (f *filler) fillStatus(b *Requests, c *columnar.Column, rows int) {
	f.status = read(f.status, c, 0, rows)
	b.Status = slices.Grow(b.Status[:0], rows)[:rows]
	if c == nil {
		for i := range b.Status {
			b.Status[i] = NullStatus
		}
		return
	}
	for i, s := range f.status {
		b.Status[i] = int32(s)
	}
	columnar.SetAbsent(b.Status, c, NullStatus)
}

func (f *filler) fillOp(b *Requests, c *columnar.Column) error {
	codes, values, err := f.codesOf(f.codes, f.texts[:0], c)
	f.codes, f.texts = codes, values
	if err != nil {
		return err
	}
	var known [64]uint8
	if len(values) > len(known) {
		return fmt.Errorf("column op: %d values, expected read and write: %w", len(values), columnar.ErrColumn)
	}
	for i, v := range values {
		o := slices.Index(ops, v)
		if o < 0 {
			return fmt.Errorf("column op: got %.60q, expected read or write: %w", v, columnar.ErrColumn)
		}
		known[i] = uint8(o)
	}
	b.Op = slices.Grow(b.Op[:0], len(codes))[:len(codes)]
	for i, code := range codes {
		if code < 0 {
			return fmt.Errorf("column op: row %d is absent, expected read or write: %w", i, columnar.ErrColumn)
		}
		b.Op[i] = known[code&63]
	}
	return nil
}

// dict fills a column of texts.
func (f *filler) dict(d *Dict, c *columnar.Column, rows int) error {
	if c == nil {
		codes := slices.Grow(d.Codes[:0], rows)[:rows]
		for i := range codes {
			codes[i] = NullCode
		}
		d.Set(codes, d.Values[:0])
		return nil
	}
	codes, values, err := f.codesOf(d.Codes, d.Values[:0], c)
	if err != nil {
		return err
	}
	d.Set(codes, values)
	return nil
}

// codesOf reads a column of texts, with a dictionary or without, as codes and
// distinct values that are not empty.
func (f *filler) codesOf(codes []int32, values []string, c *columnar.Column) ([]int32, []string, error) {
	dict := c
	if c.Type == columnar.DictUtf8 {
		if dict = c.Dict; dict == nil {
			return codes, values, fmt.Errorf("column %s: its dictionary is missing: %w", c.Name, columnar.ErrColumn)
		}
	}
	values, err := columnar.ReadTexts(values, dict, MaxID)
	if err != nil {
		return codes, values, err
	}
	if dict != c {
		codes, err = columnar.ReadCodes(codes, c, len(values))
	} else {
		codes = slices.Grow(codes[:0], c.Len)[:c.Len]
		for i := range codes {
			codes[i] = int32(i)
		}
	}
	if err != nil {
		return codes, values, err
	}
	return codes, f.dedupe.fold(codes, values), nil
}

// drop empties the column at place i.
func (f *filler) drop(b *Requests, i int) {
	switch i {
	case colMark:
		b.Mark = nil
	case colBytes:
		b.Bytes = nil
	case colTrace:
		b.Trace = nil
	case colLat:
		b.Lat = nil
	case colLon:
		b.Lon = nil
	case colWait, colService, colNetwork, colOverdue:
		*b.ints(i) = nil
	case colN:
		b.N = nil
	case colK:
		b.K = nil
	case colStatus:
		b.Status = nil
	case colOp:
		b.Op = nil
	default:
		*b.dict(i) = Dict{}
	}
}
