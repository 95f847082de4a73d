package columnar

import (
	"encoding/binary"
	"fmt"
	"runtime"
)

// table is a flatbuffers table within b. Reading outside of b panics with a
// runtime error, which guard turns into ErrCorrupt.
type table struct {
	b   []byte
	pos int
}

// root returns the table at the beginning of a flatbuffer.
func root(b []byte) table {
	return table{b, int(binary.LittleEndian.Uint32(b))}
}

// at returns where field i stands, 0 if it is left out.
func (t table) at(i int) int {
	v := t.pos - int(int32(binary.LittleEndian.Uint32(t.b[t.pos:])))
	if 4+2*i+2 > int(binary.LittleEndian.Uint16(t.b[v:])) {
		return 0
	}
	o := int(binary.LittleEndian.Uint16(t.b[v+4+2*i:]))
	if o == 0 {
		return 0
	}
	return t.pos + o
}

func (t table) int64(i int) int64 {
	if p := t.at(i); p != 0 {
		return int64(binary.LittleEndian.Uint64(t.b[p:]))
	}
	return 0
}

func (t table) int32(i int, def int32) int32 {
	if p := t.at(i); p != 0 {
		return int32(binary.LittleEndian.Uint32(t.b[p:]))
	}
	return def
}

// first returns field 0, which is a 16-bit number in all tables that have one.
func (t table) first() int16 {
	if p := t.at(0); p != 0 {
		return int16(binary.LittleEndian.Uint16(t.b[p:]))
	}
	return 0
}

func (t table) byte(i int) byte {
	if p := t.at(i); p != 0 {
		return t.b[p]
	}
	return 0
}

// table returns the table that field i refers to.
func (t table) table(i int) (table, bool) {
	p := t.at(i)
	if p == 0 {
		return table{}, false
	}
	return table{t.b, t.deref(p)}, true
}

func (t table) deref(p int) int { return p + int(binary.LittleEndian.Uint32(t.b[p:])) }

// vector returns where the elements of field i begin and how many there are;
// all of them lie within b.
func (t table) vector(i, size int) (first, n int) {
	p := t.at(i)
	if p == 0 {
		return 0, 0
	}
	p = t.deref(p)
	n = int(binary.LittleEndian.Uint32(t.b[p:]))
	_ = t.b[p+4 : p+4+n*size]
	return p + 4, n
}

func (t table) text(i int) string {
	first, n := t.vector(i, 1)
	return string(t.b[first : first+n])
}

// tableAt returns element i of a vector of tables.
func (t table) tableAt(first, i int) table { return table{t.b, t.deref(first + 4*i)} }

// guard turns a read outside of the bytes into an error. Other panics are
// faults of ours and go on.
func guard(err *error) {
	switch p := recover().(type) {
	case nil:
	case runtime.Error:
		*err = fmt.Errorf("metadata points outside of itself: %w", ErrCorrupt)
	default:
		panic(p)
	}
}
