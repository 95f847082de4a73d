package recording

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"penstock/schemas/event"
	"penstock/schemas/scalar"
)

// errColumnType says that a column's type cannot hold what the column means.
var errColumnType = errors.New("type of column cannot be read")

// fill takes a column of a record in. Files of others are met half way: any
// whole numbers, floats that are whole, times in any unit, numbers as text,
// texts with any index type or without a dictionary. A value that cannot be
// used is noted with its row; only a type that makes no sense is an error.
func (b *batch) fill(c column, a arrow.Array, t *interner) error {
	b.had[c] = true
	if a.Len() != b.rows {
		return fmt.Errorf("column %s has %d rows of %d", c, a.Len(), b.rows)
	}
	var err error
	switch {
	case c >= firstText:
		err = b.fillText(c, a, t)
	case c == colTrace:
		err = b.fillTrace(a)
	case c == colLat:
		err = b.fillDegrees(b.lat, c, a)
	case c == colLon:
		err = b.fillDegrees(b.lon, c, a)
	case c == colOp:
		err = b.fillOp(a)
	default:
		err = b.fillInts(c, a)
	}
	if err != nil {
		return fmt.Errorf("column %s: got %s, expected %s: %w", c, a.DataType(), columnExpected[c], err)
	}
	if a.NullN() > 0 && requiredMask&(1<<c) != 0 {
		for i := range b.rows {
			if a.IsNull(i) {
				b.wrong(i, c, "")
			}
		}
	}
	return nil
}

func (b *batch) fillInts(c column, a arrow.Array) error {
	dst := b.ints[c]
	switch a := a.(type) {
	case *array.Int64:
		copy(dst, a.Int64Values())
	case *array.Int32:
		widen(dst, a.Int32Values())
	case *array.Int16:
		widen(dst, a.Int16Values())
	case *array.Int8:
		widen(dst, a.Int8Values())
	case *array.Uint64:
		widen(dst, a.Uint64Values())
		for i, v := range a.Uint64Values() {
			if v > math.MaxInt64 && a.IsValid(i) {
				b.wrong(i, c, strconv.FormatUint(v, 10))
			}
		}
	case *array.Uint32:
		widen(dst, a.Uint32Values())
	case *array.Uint16:
		widen(dst, a.Uint16Values())
	case *array.Uint8:
		widen(dst, a.Uint8Values())
	case *array.Timestamp:
		if c != colTime {
			return errColumnType
		}
		timestamps(dst, a)
		return nil
	case *array.Float64, *array.Float32, *array.String, *array.LargeString, *array.Dictionary:
		return b.parseInts(c, a)
	default:
		return errColumnType
	}
	b.checkInts(c, a)
	return nil
}

func widen[T int8 | int16 | int32 | uint8 | uint16 | uint32 | uint64](dst []int64, src []T) {
	for i, v := range src {
		dst[i] = int64(v)
	}
}

// checkInts puts the absent value where there is null and notes what is
// outside a column's range. Unix times get their unit.
func (b *batch) checkInts(c column, a arrow.Array) {
	dst, absent := b.ints[c], absentInt(c)
	if a.NullN() > 0 {
		for i := range dst {
			if a.IsNull(i) {
				dst[i] = absent
			}
		}
	}
	least, most := intRange(c)
	for i, v := range dst {
		switch {
		case c == colTime:
			var ok bool
			if dst[i], ok = scalar.ScaleTime(v, 0, 0); (!ok || !isTime(dst[i])) && a.IsValid(i) {
				b.wrong(i, c, strconv.FormatInt(v, 10))
				dst[i] = absent
			}
		case v < least || v > most:
			if v != absent {
				b.wrong(i, c, strconv.FormatInt(v, 10))
				dst[i] = absent
			}
		}
	}
}

// intRange returns the least and the greatest value of a column that a file may
// hold. An n or k of 0 is absent.
func intRange(c column) (least, most int64) {
	switch c {
	case colMark:
		return 0, int64(event.Future)
	case colStatus:
		return 0, math.MaxUint16
	case colN, colK:
		return 1, math.MaxUint8
	case colBytes:
		return 0, event.MaxRequestBytes
	}
	return -event.MaxDelay, event.MaxDelay
}

func timestamps(dst []int64, a *array.Timestamp) {
	unit := arrow.Microsecond
	if t, ok := a.DataType().(*arrow.TimestampType); ok {
		unit = t.Unit
	}
	for i, v := range a.TimestampValues() {
		switch unit {
		case arrow.Second:
			dst[i] = saturate(int64(v), 1_000_000)
		case arrow.Millisecond:
			dst[i] = saturate(int64(v), 1000)
		case arrow.Nanosecond:
			dst[i] = scalar.FloorDiv(int64(v), int64(time.Microsecond))
		default:
			dst[i] = int64(v)
		}
	}
}

// saturate multiplies, and gives a time that no check lets pass where that
// does not fit.
func saturate(v, by int64) int64 {
	if v > math.MaxInt64/by || v < math.MinInt64/by {
		return math.MaxInt64
	}
	return v * by
}

// parseInts reads whole numbers and times that are written as floats or text.
func (b *batch) parseInts(c column, a arrow.Array) error {
	get, err := textGetter(a)
	if err != nil {
		return err
	}
	dst := b.ints[c]
	r := event.NewRequest(0)
	for i := range dst {
		dst[i] = absentInt(c)
		s := get(i)
		if scalar.IsMissing([]byte(s)) {
			if a.IsValid(i) && requiredMask&(1<<c) != 0 {
				b.wrong(i, c, s)
			}
			continue
		}
		if !setText(&r, c, []byte(s), nil) {
			b.wrong(i, c, s)
			continue
		}
		dst[i] = intOf(&r, c)
	}
	return nil
}

func intOf(r *event.Request, c column) int64 {
	switch c {
	case colTime:
		return r.Time
	case colMark:
		return int64(r.Mark)
	case colBytes:
		return r.Bytes
	case colStatus:
		return int64(r.Status)
	case colN:
		return int64(r.N)
	case colK:
		return int64(r.K)
	case colWait:
		return r.Wait
	case colService:
		return r.Service
	case colNetwork:
		return r.Network
	}
	return r.Overdue
}

func (b *batch) fillDegrees(dst []float32, c column, a arrow.Array) error {
	nan := float32(math.NaN())
	switch a := a.(type) {
	case *array.Float32:
		copy(dst, a.Float32Values())
	case *array.Float64:
		for i, v := range a.Float64Values() {
			dst[i] = float32(v)
		}
	default:
		get, err := textGetter(a)
		if err != nil {
			return err
		}
		for i := range dst {
			s := get(i)
			v, ok := scalar.Degrees([]byte(s))
			if dst[i] = v; !ok {
				dst[i] = nan
				if !scalar.IsMissing([]byte(s)) {
					b.wrong(i, c, s)
				}
			}
		}
		return nil
	}
	if a.NullN() > 0 {
		for i := range dst {
			if a.IsNull(i) {
				dst[i] = nan
			}
		}
	}
	return nil
}

func (b *batch) fillTrace(a arrow.Array) error {
	if a, ok := a.(*array.FixedSizeBinary); ok {
		if w := a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth; w != 16 {
			return errColumnType
		}
		for i := range b.traces {
			if a.IsNull(i) {
				b.traces[i] = [16]byte{}
			} else {
				copy(b.traces[i][:], a.Value(i))
			}
		}
		return nil
	}
	get, err := textGetter(a)
	if err != nil {
		return err
	}
	for i := range b.traces {
		b.traces[i] = [16]byte{}
		if s := get(i); !scalar.IsMissing([]byte(s)) && !scalar.Trace([]byte(s), &b.traces[i]) {
			b.wrong(i, colTrace, s)
		}
	}
	return nil
}
