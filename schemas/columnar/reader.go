package columnar

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Batch is what a stream holds. It is valid until the next Read.
type Batch struct {
	Rows     int
	Columns  []Column
	Metadata map[string]string // of the schema
}

// Column returns the column of that name, nil if there is none.
func (b *Batch) Column(name string) *Column {
	for i := range b.Columns {
		if b.Columns[i].Name == name {
			return &b.Columns[i]
		}
	}
	return nil
}

// Reader reads streams. It keeps the last schema, since the next batch mostly
// has the same one. It is not safe for concurrent use.
type Reader struct {
	schema   []byte // metadata of the last schema message
	fields   []node
	metadata map[string]string
	batch    Batch
	dicts    map[int64]*Column
	used     []Column // memory of dicts and children
}

// message is one message of a stream.
type message struct {
	header byte
	table  table
	meta   []byte
	body   []byte
}

const (
	headerSchema = 1
	headerDict   = 2
	headerBatch  = 3
	continuation = 0xFFFFFFFF
)

// Read reads a stream of at most maxRows rows. The batch's columns are views
// of body. Columns of a type that has no name in this package carry their name
// and type only. changed says that the schema differs from the last one's, so
// that a codec may keep its plan where it does not.
func (r *Reader) Read(body []byte, maxRows int) (b *Batch, changed bool, err error) {
	defer guard(&err)
	m, body, err := next(body)
	if err != nil {
		return nil, false, err
	}
	if m.header != headerSchema {
		return nil, false, fmt.Errorf("first message is not a schema: %w", ErrCorrupt)
	}
	if changed = !bytes.Equal(m.meta, r.schema) || r.schema == nil; changed {
		r.schema = nil
		if r.fields, r.metadata, err = parseSchema(m.table); err != nil {
			return nil, false, err
		}
		r.schema = append([]byte{}, m.meta...)
	}
	clear(r.dicts)
	r.used = r.used[:0]
	for {
		if m, body, err = next(body); err != nil {
			return nil, false, err
		}
		switch m.header {
		case headerDict:
			if err := r.dictionary(m); err != nil {
				return nil, false, err
			}
		case headerBatch:
			if err := r.record(m, maxRows); err != nil {
				return nil, false, err
			}
			if err := end(body); err != nil {
				return nil, false, err
			}
			return &r.batch, changed, nil
		default:
			return nil, false, fmt.Errorf("message of kind %d: %w", m.header, ErrCorrupt)
		}
	}
}

// next cuts the next message off.
func next(b []byte) (m message, rest []byte, err error) {
	if len(b) < 8 {
		return m, nil, fmt.Errorf("stream ends before its record batch: %w", ErrCorrupt)
	}
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	if n == continuation {
		n = binary.LittleEndian.Uint32(b)
		b = b[4:]
	}
	if n == 0 || uint64(n) > uint64(len(b)) {
		return m, nil, fmt.Errorf("metadata of %d bytes where %d are left: %w", n, len(b), ErrCorrupt)
	}
	m.meta, b = b[:n:n], b[n:]
	t := root(m.meta)
	if v := t.first(); v != 3 && v != 4 {
		return m, nil, fmt.Errorf("metadata version %d, expected 4 or 5: %w", v+1, ErrCorrupt)
	}
	m.header = t.byte(1)
	var ok bool
	if m.table, ok = t.table(2); !ok {
		return m, nil, fmt.Errorf("message without header: %w", ErrCorrupt)
	}
	size := t.int64(3)
	if size < 0 || size > int64(len(b)) {
		return m, nil, fmt.Errorf("body of %d bytes where %d are left: %w", size, len(b), ErrCorrupt)
	}
	m.body = b[:size:size]
	return m, b[size:], nil
}

// end checks that nothing but the end-of-stream marker follows.
func end(b []byte) error {
	for _, c := range [][]byte{nil, {0, 0, 0, 0}, {255, 255, 255, 255, 0, 0, 0, 0}} {
		if bytes.Equal(b, c) {
			return nil
		}
	}
	return fmt.Errorf("more than one record batch: %w", ErrCorrupt)
}

// dictionary keeps the values of a dictionary of texts; others are of columns
// that are stepped over.
func (r *Reader) dictionary(m message) error {
	id := m.table.int64(0)
	data, ok := m.table.table(1)
	if !ok || m.table.byte(2) != 0 {
		return fmt.Errorf("dictionary %d is empty or a delta: %w", id, ErrCorrupt)
	}
	name, typ, found := r.dictField(id)
	if !found {
		return fmt.Errorf("dictionary %d belongs to no column: %w", id, ErrCorrupt)
	}
	if _, again := r.dicts[id]; again {
		return fmt.Errorf("dictionary %d comes twice: %w", id, ErrCorrupt)
	}
	if typ != tagUtf8 {
		return nil
	}
	p, err := newParts(data, m.body)
	if err != nil {
		return err
	}
	f := node{Field: Field{Name: name, Type: Utf8}, kind: tagUtf8}
	c := r.column()
	if err := p.take(r, &f, c); err != nil {
		return err
	}
	if r.dicts == nil {
		r.dicts = make(map[int64]*Column)
	}
	r.dicts[id] = c
	return nil
}

func (r *Reader) dictField(id int64) (name string, kind byte, ok bool) {
	for i := range r.fields {
		if f := &r.fields[i]; f.dict && f.id == id {
			return f.Name, f.kind, true
		}
	}
	return "", 0, hasDict(r.fields, id)
}

// hasDict looks for a dictionary inside of nested columns.
func hasDict(fields []node, id int64) bool {
	for i := range fields {
		if f := &fields[i]; f.dict && f.id == id || hasDict(f.children, id) {
			return true
		}
	}
	return false
}

func (r *Reader) record(m message, maxRows int) error {
	rows := m.table.int64(0)
	if rows < 0 || rows > int64(maxRows) {
		return fmt.Errorf("%d rows, expected at most %d: %w", rows, maxRows, ErrCorrupt)
	}
	p, err := newParts(m.table, m.body)
	if err != nil {
		return err
	}
	b := &r.batch
	b.Rows, b.Metadata = int(rows), r.metadata
	if cap(b.Columns) < len(r.fields) {
		b.Columns = make([]Column, len(r.fields))
	}
	b.Columns = b.Columns[:len(r.fields)]
	for i := range r.fields {
		f := &r.fields[i]
		if err := p.take(r, f, &b.Columns[i]); err != nil {
			return err
		}
		if c := &b.Columns[i]; c.Len != b.Rows {
			return fmt.Errorf("column %s: %d rows, expected %d: %w", f.Name, c.Len, b.Rows, ErrColumn)
		}
	}
	return nil
}

// column returns memory for a dictionary or a child. Pointers stay valid when
// used grows, since the old array is kept by them.
func (r *Reader) column() *Column {
	r.used = append(r.used, Column{})
	return &r.used[len(r.used)-1]
}
