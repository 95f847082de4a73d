package columnar

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Field is the name and type of a column. Type is spelt as Arrow's
// documentation does: int64, uint8, float32, utf8, timestamp[us, UTC],
// fixed_size_binary[16], dictionary<int32, utf8>, list<uint16>.
type Field struct {
	Name     string
	Type     string
	Nullable bool
}

// The types that the codecs use.
const (
	Int64      = "int64"
	Int32      = "int32"
	Uint16     = "uint16"
	Uint8      = "uint8"
	Float32    = "float32"
	Utf8       = "utf8"
	Time       = "timestamp[us, UTC]"
	Binary16   = "fixed_size_binary[16]"
	DictUtf8   = "dictionary<int32, utf8>"
	ListUint16 = "list<uint16>"
	ListInt64  = "list<int64>"
)

// Column is one column of a batch in Arrow's layout. The slices are views:
// they live as long as what they were made of.
type Column struct {
	Field
	Len     int
	Nulls   int     // absent rows; Valid says which
	Valid   []byte  // bitmap, least significant bit first; nil if none is absent
	Data    []byte  // values, or indices of a dictionary, or the bytes of texts
	Offsets []byte  // int32, Len+1 of them: texts and lists
	Dict    *Column // the values of a dictionary
	Child   *Column // the elements of a list
}

// IsValid reports whether row i is present.
func (c *Column) IsValid(i int) bool {
	return c.Valid == nil || c.Valid[i>>3]&(1<<(i&7)) != 0
}

// Offset returns offset i.
func (c *Column) Offset(i int) int {
	return int(int32(binary.LittleEndian.Uint32(c.Offsets[4*i:])))
}

// Width returns the bytes of one value of a type of fixed width, 0 for others.
func Width(typ string) int {
	switch typ {
	case Int64, Time:
		return 8
	case Int32, Float32, DictUtf8:
		return 4
	case Uint16:
		return 2
	case Uint8:
		return 1
	case Binary16:
		return 16
	}
	return 0
}

// check verifies that the slices of a column hold what Len promises, so that
// readers may index without fear.
func (c *Column) check() error {
	if c.Len < 0 {
		return fmt.Errorf("column %s: %d rows: %w", c.Name, c.Len, ErrColumn)
	}
	if c.Valid != nil && len(c.Valid) < (c.Len+7)/8 {
		return c.short("validity")
	}
	if c.Valid != nil {
		// Counted, not believed: both ways of looking at it must agree.
		if c.Nulls = countNulls(c.Valid, c.Len); c.Nulls == 0 {
			c.Valid = nil
		}
	}
	if w := Width(c.Type); w > 0 {
		if len(c.Data) < w*c.Len {
			return c.short("values")
		}
		c.Data = c.Data[:w*c.Len]
		return nil
	}
	most := len(c.Data)
	if c.Child != nil {
		most = c.Child.Len
	}
	return c.checkOffsets(most)
}

// checkOffsets verifies that offsets ascend from 0 or more to at most most.
func (c *Column) checkOffsets(most int) error {
	if c.Len == 0 {
		// A column without rows may leave its offsets out.
		c.Offsets = zeroOffset[:]
		return nil
	}
	if len(c.Offsets) < 4*(c.Len+1) {
		return c.short("offsets")
	}
	c.Offsets = c.Offsets[:4*(c.Len+1)]
	last := c.Offset(0)
	ok := last >= 0
	for i := 1; i <= c.Len; i++ {
		o := c.Offset(i)
		ok = ok && o >= last
		last = o
	}
	if !ok || last > most {
		return fmt.Errorf("column %s: offsets do not ascend within its %d values: %w", c.Name, most, ErrColumn)
	}
	return nil
}

var zeroOffset [4]byte

func (c *Column) short(what string) error {
	return fmt.Errorf("column %s: too few %s for %d rows: %w", c.Name, what, c.Len, ErrColumn)
}

// countNulls counts the absent rows of a bitmap.
func countNulls(valid []byte, rows int) int {
	n := 0
	full := rows >> 3
	b := valid[:full]
	for ; len(b) >= 8; b = b[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(b))
	}
	for _, b := range b {
		n += bits.OnesCount8(b)
	}
	if rest := rows & 7; rest > 0 {
		n += bits.OnesCount8(valid[full] & (1<<rest - 1))
	}
	return rows - n
}
