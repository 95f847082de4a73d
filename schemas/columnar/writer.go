package columnar

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow/go/v15/arrow/ipc"
)

// Writer writes streams. It keeps the schema message, which Arrow's own writer
// makes, and lays the dictionaries and the batch out itself, so that nothing
// is allocated once its memory has grown. It is not safe for concurrent use.
type Writer struct {
	fields   []Field
	metadata map[string]string
	schema   []byte
	nodes    []int64 // rows and absent rows of each node
	buffers  []span
}

// span is a buffer of a message's body. A missing one has no bytes.
type span struct{ data []byte }

// Write appends a stream of one batch to dst. Columns without rows, texts
// without bytes and so on are fine; all columns must have rows rows.
func (w *Writer) Write(dst []byte, columns []Column, rows int, metadata map[string]string) ([]byte, error) {
	for i := range columns {
		if c := &columns[i]; c.Len != rows {
			return dst, fmt.Errorf("column %s: %d rows, expected %d: %w", c.Name, c.Len, rows, ErrColumn)
		}
	}
	if err := w.describe(columns, metadata); err != nil {
		return dst, err
	}
	dst = append(dst, w.schema...)
	id := int64(0)
	for i := range columns {
		if d := columns[i].Dict; d != nil {
			w.collect(d)
			dst = w.message(dst, headerDict, id, d.Len)
			id++
		}
	}
	for i := range columns {
		w.collect(&columns[i])
	}
	dst = w.message(dst, headerBatch, 0, rows)
	return append(dst, endOfStream...), nil
}

var endOfStream = []byte{255, 255, 255, 255, 0, 0, 0, 0}

// describe makes the schema message if it isn't the last one.
func (w *Writer) describe(columns []Column, metadata map[string]string) error {
	same := w.schema != nil && len(columns) == len(w.fields) && maps.Equal(metadata, w.metadata)
	for i := 0; same && i < len(columns); i++ {
		same = columns[i].Field == w.fields[i]
	}
	if same {
		return nil
	}
	w.fields = w.fields[:0]
	for i := range columns {
		w.fields = append(w.fields, columns[i].Field)
	}
	var b bytes.Buffer
	s := ipc.NewWriter(&b, ipc.WithSchema(Schema(w.fields, metadata)))
	if err := s.Close(); err != nil {
		w.fields = nil
		return fmt.Errorf("schema: %w", err)
	}
	w.metadata = maps.Clone(metadata)
	w.schema = bytes.TrimSuffix(b.Bytes(), endOfStream)
	return nil
}

// collect adds the nodes and buffers of a column.
func (w *Writer) collect(c *Column) {
	w.nodes = append(w.nodes, int64(c.Len), int64(c.Nulls))
	valid := c.Valid
	if valid != nil {
		valid = valid[:(c.Len+7)/8]
	}
	w.buffers = append(w.buffers, span{valid})
	switch {
	case c.Type == Utf8:
		w.buffers = append(w.buffers, span{c.Offsets}, span{c.Data})
	case c.Child != nil:
		w.buffers = append(w.buffers, span{c.Offsets})
		w.collect(c.Child)
	default:
		w.buffers = append(w.buffers, span{c.Data})
	}
}

// Places within the metadata of a message, a flatbuffer laid out by hand: the
// message's table, the dictionary's if it is one, and the batch's. Each table
// follows its vtable, and 64-bit fields lie at multiples of 8.
const (
	messageVtable = 4
	messageTable  = 16
	firstHeader   = 40
	dictTable     = firstHeader + 8
	batchOfDict   = firstHeader + 24
)

// message appends a message made of what was collected, and forgets that.
func (w *Writer) message(dst []byte, header byte, id int64, rows int) []byte {
	batch := firstHeader
	if header == headerDict {
		batch = batchOfDict
	}
	nodes := batch + 40
	buffers := nodes + 8*len(w.nodes) + 8
	size := buffers + 16*len(w.buffers)

	dst = append(dst, 255, 255, 255, 255)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	start := len(dst)
	dst = slices.Grow(dst, size)[:start+size]
	m := block(dst[start:])
	clear(m)

	m.u32(0, messageTable)
	m.u16s(messageVtable, 12, 24, 4, 6, 8, 16)
	m.u32(messageTable, messageTable-messageVtable)
	m.u16s(messageTable+4, 4) // metadata version 5
	m[messageTable+6] = header
	if header == headerDict {
		m.u32(messageTable+8, dictTable-messageTable-8)
		m.u16s(firstHeader, 8, 16, 8, 4)
		m.u32(dictTable, dictTable-firstHeader)
		m.u32(dictTable+4, uint32(batch+12-dictTable-4))
		m.u64(dictTable+8, uint64(id))
	} else {
		m.u32(messageTable+8, uint32(batch+12-messageTable-8))
	}
	table := batch + 12
	m.u16s(batch, 10, 20, 12, 4, 8)
	m.u32(table, uint32(table-batch))
	m.u32(table+4, uint32(nodes-4-table-4))
	m.u32(table+8, uint32(buffers-4-table-8))
	m.u64(table+12, uint64(rows))
	m.u32(nodes-4, uint32(len(w.nodes)/2))
	for i, n := range w.nodes {
		m.u64(nodes+8*i, uint64(n))
	}
	m.u32(buffers-4, uint32(len(w.buffers)))
	at := 0
	for i, b := range w.buffers {
		m.u64(buffers+16*i, uint64(at))
		m.u64(buffers+16*i+8, uint64(len(b.data)))
		at += pad8(len(b.data))
	}
	m.u64(messageTable+16, uint64(at))

	for _, b := range w.buffers {
		dst = append(dst, b.data...)
		dst = append(dst, zeros[:pad8(len(b.data))-len(b.data)]...)
	}
	w.nodes = w.nodes[:0]
	clear(w.buffers)
	w.buffers = w.buffers[:0]
	return dst
}

var zeros [8]byte

func pad8(n int) int { return (n + 7) &^ 7 }

// block is memory of a flatbuffer.
type block []byte

func (b block) u16s(at int, v ...uint16) {
	for i, x := range v {
		binary.LittleEndian.PutUint16(b[at+2*i:], x)
	}
}
func (b block) u32(at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }
func (b block) u64(at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }
