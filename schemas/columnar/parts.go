package columnar

import (
	"encoding/binary"
	"fmt"
)

// parts hands out the nodes and buffers of a record batch in the order in
// which the fields of the schema use them.
type parts struct {
	b               []byte // metadata
	body            []byte
	node, nodes     int // position of the next, and how many are left
	buffer, buffers int
	end             int64 // of the last buffer
}

func newParts(t table, body []byte) (parts, error) {
	p := parts{b: t.b, body: body}
	if _, compressed := t.table(3); compressed {
		return p, fmt.Errorf("compressed body: %w", ErrCorrupt)
	}
	p.node, p.nodes = t.vector(1, 16)
	p.buffer, p.buffers = t.vector(2, 16)
	return p, nil
}

func (p *parts) nextNode() (rows, nulls int64, err error) {
	if p.nodes == 0 {
		return 0, 0, fmt.Errorf("fewer columns than the schema has: %w", ErrCorrupt)
	}
	rows = int64(binary.LittleEndian.Uint64(p.b[p.node:]))
	nulls = int64(binary.LittleEndian.Uint64(p.b[p.node+8:]))
	p.node, p.nodes = p.node+16, p.nodes-1
	// An element takes at least a bit of the body, or nothing at all.
	if rows < 0 || nulls < 0 || nulls > rows || rows > 1<<31-2 {
		return 0, 0, fmt.Errorf("a column of %d rows with %d absent: %w", rows, nulls, ErrCorrupt)
	}
	return rows, nulls, nil
}

func (p *parts) nextBuffer() ([]byte, error) {
	if p.buffers == 0 {
		return nil, fmt.Errorf("fewer buffers than the schema needs: %w", ErrCorrupt)
	}
	off := int64(binary.LittleEndian.Uint64(p.b[p.buffer:]))
	n := int64(binary.LittleEndian.Uint64(p.b[p.buffer+8:]))
	p.buffer, p.buffers = p.buffer+16, p.buffers-1
	if off < 0 || n < 0 || off > int64(len(p.body)) || n > int64(len(p.body))-off {
		return nil, fmt.Errorf("a buffer lies outside of the body: %w", ErrCorrupt)
	}
	if n > 0 {
		// Buffers that share bytes could make a short body stand for a lot of work.
		if off < p.end {
			return nil, fmt.Errorf("buffers overlap: %w", ErrCorrupt)
		}
		p.end = off + n
	}
	return p.body[off : off+n : off+n], nil
}

// take fills c with the parts of field f and checks them; columns of other
// types are stepped over.
func (p *parts) take(r *Reader, f *node, c *Column) error {
	rows, nulls, err := p.nextNode()
	if err != nil {
		return fmt.Errorf("column %s: %w", f.Name, err)
	}
	*c = Column{Field: f.Field, Len: int(rows), Nulls: int(nulls)}
	n := f.buffers()
	if n < 0 {
		return fmt.Errorf("column %s: %s, a type that cannot be stepped over: %w", f.Name, f.Type, ErrCorrupt)
	}
	var buf [3][]byte
	for i := range n {
		if buf[i], err = p.nextBuffer(); err != nil {
			return fmt.Errorf("column %s: %w", f.Name, err)
		}
	}
	if nulls > 0 {
		c.Valid = buf[0]
	}
	switch {
	case f.dict:
		c.Data, c.Dict = buf[1], r.dicts[f.id]
	case f.kind == tagUtf8:
		c.Offsets, c.Data = buf[1], buf[2]
	case f.kind == tagList:
		c.Offsets = buf[1]
	default:
		c.Data = buf[1]
	}
	for i := range f.children {
		if f.dict {
			break // The children are those of the dictionary's values.
		}
		child := r.column()
		if err := p.take(r, &f.children[i], child); err != nil {
			return err
		}
		if f.kind == tagList && i == 0 {
			c.Child = child
		}
	}
	if !named(f.Type) {
		return nil
	}
	return c.check()
}

// named reports whether the codecs read columns of this type.
func named(typ string) bool {
	return Width(typ) > 0 || typ == Utf8 || typ == ListUint16 || typ == ListInt64
}
