package columnar

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
	"unsafe"
)

// ReadTexts appends the texts of a column to dst, absent ones as "". All texts
// share one allocation. The error says which row is no UTF-8 or longer than
// most bytes.
func ReadTexts(dst []string, c *Column, most int) ([]string, error) {
	if c.Type != Utf8 {
		return dst, c.mismatch(Utf8)
	}
	first, last := 0, 0
	if c.Len > 0 {
		first, last = c.Offset(0), c.Offset(c.Len)
	}
	all := string(c.Data[first:last])
	valid := ascii(all)
	dst = slices.Grow(dst, c.Len)
	a := 0
	for i := range c.Len {
		b := c.Offset(i+1) - first
		s := all[a:b]
		a = b
		if len(s) > most {
			return dst, fmt.Errorf("column %s: row %d has %d bytes, expected at most %d: %w", c.Name, i, len(s), most, ErrColumn)
		}
		if !valid && !utf8.ValidString(s) {
			return dst, fmt.Errorf("column %s: row %d: got %.60q, expected UTF-8: %w", c.Name, i, s, ErrColumn)
		}
		if c.Valid != nil && !c.IsValid(i) {
			s = ""
		}
		dst = append(dst, s)
	}
	return dst, nil
}

// ascii reports whether no byte of s is above 127; it takes eight at once.
func ascii(s string) bool {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	var high uint64
	for len(b) >= 8 {
		high |= binary.LittleEndian.Uint64(b)
		b = b[8:]
	}
	for _, c := range b {
		high |= uint64(c)
	}
	return high&0x8080808080808080 == 0
}

// ReadCodes copies the codes of a dictionary column into dst, −1 where absent,
// and checks that each is below values.
func ReadCodes(dst []int32, c *Column, values int) ([]int32, error) {
	dst = Read(dst, c, -1)
	if c.Valid != nil && c.Nulls == c.Len {
		return dst, nil
	}
	most := MostCode(dst)
	if most > uint32(values) {
		return dst, fmt.Errorf("column %s: code %d, expected one below %d: %w", c.Name, int32(most-1), values, ErrColumn)
	}
	if c.Valid == nil && slices.Contains(dst, -1) {
		return dst, fmt.Errorf("column %s: code -1 in a row that is not absent: %w", c.Name, ErrColumn)
	}
	return dst, nil
}

// MostCode returns 1 + the greatest code; −1, which is absent, counts as 0, and
// any other negative code is greater than all. Four chains of comparisons run
// side by side, since one is bound by its latency.
func MostCode(codes []int32) uint32 {
	var a, b, c, d uint32
	for ; len(codes) >= 4; codes = codes[4:] {
		a, b = max(a, uint32(codes[0]+1)), max(b, uint32(codes[1]+1))
		c, d = max(c, uint32(codes[2]+1)), max(d, uint32(codes[3]+1))
	}
	for _, v := range codes {
		a = max(a, uint32(v+1))
	}
	return max(a, b, c, d)
}

// TextMemory is the reusable memory of a column of texts.
type TextMemory struct {
	offsets []int32
	bytes   []byte
	valid   []byte
	values  Column
}

// Texts returns the column of values, none of which is absent.
func Texts(name string, values []string, m *TextMemory) Column {
	m.begin(len(values))
	for _, v := range values {
		m.bytes = append(m.bytes, v...)
		m.offsets = append(m.offsets, int32(len(m.bytes)))
	}
	return m.column(name, len(values))
}

func (m *TextMemory) begin(n int) {
	m.bytes = m.bytes[:0]
	m.offsets = append(slices.Grow(m.offsets[:0], n+1), 0)
}

func (m *TextMemory) column(name string, n int) Column {
	return Column{Field: Field{Name: name, Type: Utf8}, Len: n, Data: m.bytes, Offsets: bytesOf(m.offsets)}
}

// Plain returns the nullable column of the values of codes without a
// dictionary; code −1 is absent.
func Plain(name string, codes []int32, values []string, m *TextMemory) Column {
	m.begin(len(codes))
	for _, c := range codes {
		if c >= 0 {
			m.bytes = append(m.bytes, values[c]...)
		}
		m.offsets = append(m.offsets, int32(len(m.bytes)))
	}
	v := Nullable(name, Utf8, codes, -1, &m.valid)
	c := m.column(name, len(codes))
	c.Nullable, c.Valid, c.Nulls = true, v.Valid, v.Nulls
	return c
}

// Dictionary returns the nullable column of codes into values; code −1 is
// absent.
func Dictionary(name string, codes []int32, values []string, m *TextMemory) Column {
	c := Nullable(name, DictUtf8, codes, -1, &m.valid)
	m.values = Texts(name, values, m)
	c.Dict = &m.values
	return c
}

// Bytes returns how many bytes the texts of values take, and false if a column
// cannot hold them.
func Bytes(values []string) (int, bool) {
	n := 0
	for _, v := range values {
		n += len(v)
	}
	return n, n <= math.MaxInt32
}

func (c *Column) mismatch(expected string) error {
	return fmt.Errorf("column %s: got %s, expected %s: %w", c.Name, c.Type, expected, ErrColumn)
}
