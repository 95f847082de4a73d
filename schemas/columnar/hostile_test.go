package columnar

import (
	"errors"
	"strings"
	"testing"
)

// bomb returns a Schema table whose one column has children that are all the
// same table, level below level: with two a level and 60 levels, some kilobytes
// that stand for 2^60 columns.
func bomb(levels, children int) table {
	const size = 64
	b := make(block, 128+levels*(size+4*children))
	at := func(level int) int { return 64 + level*(size+4*children) }
	// The schema: a vtable of two fields, of which the second is the vector.
	b.u16s(0, 8, 8, 0, 4)
	b.u32(8, 8)
	b.u32(12, 16-12)
	b.u32(16, 1)
	b.u32(20, uint32(at(0)+16-20))
	for l := range levels {
		p := at(l)
		b.u16s(p, 16, 16, 0, 0, 4, 0, 0, 8)
		t := p + 16
		b.u32(t, 16)
		b[t+4] = tagStruct
		if l == levels-1 {
			b.u16s(p+14, 0) // The last one has no children.
			continue
		}
		v := t + 16
		b.u32(t+8, uint32(v-t-8))
		b.u32(v, uint32(children))
		for c := range children {
			e := v + 4 + 4*c
			b.u32(e, uint32(at(l+1)+16-e))
		}
	}
	return table{b, 8}
}

func TestASchemaOfSharedTablesIsRefused(t *testing.T) {
	for _, c := range []struct {
		levels, children int
		expected         string
	}{
		{3, 2, ""},
		{8, 1, ""},
		{9, 1, "more than 512 columns or nested deeper than 8"},
		{60, 2, "more than 512 columns or nested deeper than 8"},
		{8, 2, ""}, // 255 columns.
		{7, 3, "more than 512 columns or nested deeper than 8"},
		{2, 100_000, "more than 512 columns or nested deeper than 8"},
	} {
		fields, _, err := parseSchema(bomb(c.levels, c.children))
		if c.expected == "" {
			if err != nil || len(fields) != 1 || fields[0].Type != "none" {
				t.Errorf("%d levels of %d: got %+v, %v", c.levels, c.children, fields, err)
			}
			continue
		}
		if err == nil || !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.expected) {
			t.Errorf("%d levels of %d: got %v", c.levels, c.children, err)
		}
	}
}

func TestBuffersThatOverlapAreRefused(t *testing.T) {
	m := make(block, 64)
	m.u64(0, 0)
	m.u64(8, 16)
	m.u64(16, 8)
	m.u64(24, 8)
	m.u64(32, 0) // A buffer without bytes may be anywhere.
	m.u64(40, 0)
	p := parts{b: m, body: make([]byte, 32), buffers: 3}
	if b, err := p.nextBuffer(); err != nil || len(b) != 16 {
		t.Fatalf("got %d bytes, %v", len(b), err)
	}
	if _, err := p.nextBuffer(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v", err)
	}
	if b, err := p.nextBuffer(); err != nil || len(b) != 0 {
		t.Errorf("got %d bytes, %v", len(b), err)
	}
	if _, err := p.nextBuffer(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a fourth of three buffers: got %v", err)
	}
}

func TestAbsentRowsAreCountedNotBelieved(t *testing.T) {
	c := Column{Field: Field{Name: "n", Type: Int64, Nullable: true}, Len: 3, Nulls: 3, Valid: []byte{0b1111_1101}, Data: make([]byte, 24)}
	if err := c.check(); err != nil || c.Nulls != 1 || c.IsValid(1) || !c.IsValid(2) {
		t.Errorf("%d absent, %v", c.Nulls, err)
	}
	c.Valid = []byte{7}
	if err := c.check(); err != nil || c.Nulls != 0 || c.Valid != nil {
		t.Errorf("%d absent, %v", c.Nulls, err)
	}
}
