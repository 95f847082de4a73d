package columnar

import (
	"math/bits"
	"slices"
	"unsafe"
)

// Value is a value of fixed width as it lies in a column.
type Value interface {
	int64 | int32 | uint16 | uint8 | float32 | [16]byte
}

// bytesOf returns the memory of a slice.
func bytesOf[T Value](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	var v T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(v)))
}

// Read copies a column of fixed width into dst, absent rows as absent, and
// returns dst, grown if need be. The column's type must be that of T.
func Read[T Value](dst []T, c *Column, absent T) []T {
	dst = slices.Grow(dst[:0], c.Len)[:c.Len]
	if c.Valid != nil && c.Nulls == c.Len {
		for i := range dst {
			dst[i] = absent
		}
		return dst
	}
	copy(bytesOf(dst), c.Data)
	SetAbsent(dst, c, absent)
	return dst
}

// SetAbsent sets the rows of dst that are absent in c.
func SetAbsent[T any](dst []T, c *Column, absent T) {
	if c.Valid == nil {
		return
	}
	for i := 0; i < len(dst); i += 8 {
		v := dst[i:min(i+8, len(dst))]
		// Only the absent rows are visited: where they are cannot be predicted.
		for none := ^c.Valid[i>>3] & (0xFF >> (8 - len(v))); none != 0; none &= none - 1 {
			v[bits.TrailingZeros8(none)] = absent
		}
	}
}

// Fixed returns the column of values none of which is absent. The column is a
// view of them.
func Fixed[T Value](name, typ string, values []T) Column {
	return Column{Field: Field{Name: name, Type: typ}, Len: len(values), Data: bytesOf(values)}
}

// Nullable returns the column of values of which absent stands for none. The
// bitmap is made in *valid, which is grown and may be reused once the column
// is no longer needed.
func Nullable[T Value](name, typ string, values []T, absent T, valid *[]byte) Column {
	c := Column{Field: Field{Name: name, Type: typ, Nullable: true}, Len: len(values), Data: bytesOf(values)}
	bm := slices.Grow((*valid)[:0], (len(values)+7)/8)[:(len(values)+7)/8]
	*valid = bm
	i := 0
	for ; i+8 <= len(values); i += 8 {
		v := values[i : i+8 : i+8]
		bm[i>>3] = bit(v[0] != absent) | bit(v[1] != absent)<<1 | bit(v[2] != absent)<<2 | bit(v[3] != absent)<<3 |
			bit(v[4] != absent)<<4 | bit(v[5] != absent)<<5 | bit(v[6] != absent)<<6 | bit(v[7] != absent)<<7
	}
	if i < len(values) {
		var b byte
		for j, v := range values[i:] {
			b |= bit(v != absent) << j
		}
		bm[i>>3] = b
	}
	if c.Nulls = countNulls(bm, c.Len); c.Nulls > 0 {
		c.Valid = bm
	}
	return c
}

// NullableFloats is Nullable for numbers of which NaN is absent.
func NullableFloats(name string, values []float32, valid *[]byte) Column {
	c := Column{Field: Field{Name: name, Type: Float32, Nullable: true}, Len: len(values), Data: bytesOf(values)}
	n := (len(values) + 7) / 8
	bm := slices.Grow((*valid)[:0], n)[:n]
	*valid = bm
	clear(bm)
	for i, v := range values {
		bm[i>>3] |= bit(v == v) << (i & 7)
	}
	if c.Nulls = countNulls(bm, c.Len); c.Nulls > 0 {
		c.Valid = bm
	}
	return c
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Lists returns the column of lists with those offsets (rows + 1 of them), none
// of which is absent. The caller sets its Child, the elements.
func Lists(name, typ string, offsets []int32) Column {
	return Column{Field: Field{Name: name, Type: typ}, Len: len(offsets) - 1, Offsets: bytesOf(offsets)}
}
