package window

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/klauspost/compress/s2"

	"penstock/schemas/columnar"
)

// Names in a pane's Arrow schema beside the rollup's own.
const (
	metaRollup  = "rollup"
	metaWidth   = "width" // of the windows in seconds; absent: the rollup's own
	colStart    = "window_start"
	colEnd      = "window_end"
	suffixBins  = "_bins"
	suffixCount = "_counts"
)

// Limits of one pane: a decoder allocates no more than a small multiple of
// them, whatever the bytes.
const (
	MaxDecoded = 16 << 20
	MaxRows    = 1 << 20
)

// tableMemory is what the columns of a table need beside the table itself.
type tableMemory struct {
	columns []columnar.Column
	ends    []int64
	keys    []columnar.TextMemory
	values  []valueMemory
	// A writer keeps the schema that it made last, so that each rollup has one.
	writers map[*Rollup]*columnar.Writer
	stream  []byte
}

type valueMemory struct {
	valid      []byte
	bits       []int32
	offsets    []int32
	bins       []uint16
	counts     []int64
	binsChild  columnar.Column
	countChild columnar.Column
}

var memories = sync.Pool{New: func() any { return new(tableMemory) }}

// Encode appends the pane of the table to dst: an Arrow IPC stream of one
// record batch as one s2 block, with the columns window_start, the keys as
// dictionaries and the values, and in the schema's metadata the rollup's name and
// the windows' width where it is not the rollup's own.
// A histogram is two list columns, NAME_bins and NAME_counts. Equal content has
// equal bytes: a table that isn't sorted is encoded as if it were. The error
// says that the table is beyond MaxRows or MaxDecoded (Split comes before).
func (t *Table) Encode(dst []byte) ([]byte, error) {
	if !t.sorted() {
		t = Merge(t.Rollup, t)
	}
	m := memories.Get().(*tableMemory)
	defer memories.Put(m)
	defer m.release()
	m.view(t, false)
	if t.Len() > MaxRows {
		return dst, fmt.Errorf("pane of %s with %d rows, expected at most %d", t.Rollup.Name, t.Len(), MaxRows)
	}
	var err error
	m.stream, err = m.writer(t.Rollup).Write(m.stream[:0], m.columns, t.Len(), t.metadata())
	if err != nil {
		return dst, fmt.Errorf("encode pane of %s: %w", t.Rollup.Name, err)
	}
	if len(m.stream) > MaxDecoded {
		return dst, fmt.Errorf("pane of %s with %d bytes, expected at most %d", t.Rollup.Name, len(m.stream), MaxDecoded)
	}
	n := len(dst)
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(m.stream)))
	return dst[:n+len(s2.Encode(dst[n:cap(dst)], m.stream))], nil
}

// metadata is that of a pane's schema.
func (t *Table) metadata() map[string]string {
	m := map[string]string{metaRollup: t.Rollup.Name}
	if w := t.Wide(); w != t.Rollup.Width {
		m[metaWidth] = strconv.FormatInt(int64(w/time.Second), 10)
	}
	return m
}

// Record returns the table as an Arrow record with the columns window_start,
// window_end, the keys as plain texts, and the values: the shape of the
// matrices in Parquet. It is a view of t and must be done with before t changes.
func (t *Table) Record() arrow.Record {
	m := new(tableMemory)
	m.view(t, true)
	return columnar.Record(recordSchema(t.Rollup), m.columns, t.Len())
}

// recordSchema returns the schema of Record, metadata included.
func recordSchema(r *Rollup) *arrow.Schema {
	m := new(tableMemory)
	m.view(NewTable(r), true)
	fields := make([]columnar.Field, len(m.columns))
	for i := range m.columns {
		fields[i] = m.columns[i].Field
	}
	return columnar.Schema(fields, map[string]string{metaRollup: r.Name})
}

// view makes the columns of t. A record has the windows' ends and plain keys.
func (m *tableMemory) view(t *Table, record bool) {
	r := t.Rollup
	m.columns = append(m.columns[:0], columnar.Fixed(colStart, columnar.Time, t.Start))
	if record {
		m.ends = m.ends[:0]
		for i := range t.Start {
			m.ends = append(m.ends, t.End(i))
		}
		m.columns = append(m.columns, columnar.Fixed(colEnd, columnar.Time, m.ends))
	}
	m.keys = grown(m.keys, len(r.Keys))
	for k, name := range r.Keys {
		key := &t.Keys[k]
		if record {
			m.columns = append(m.columns, columnar.Plain(name, key.Codes, key.Values, &m.keys[k]))
		} else {
			m.columns = append(m.columns, columnar.Dictionary(name, key.Codes, key.Values, &m.keys[k]))
		}
	}
	m.values = grown(m.values, len(r.Values))
	for v := range r.Values {
		m.value(&r.Values[v], &m.values[v], t.Ints[v], t.Hists[v])
	}
}

// grown returns s with at least n elements; those that are there keep theirs.
func grown[T any](s []T, n int) []T {
	for len(s) < n {
		var zero T
		s = append(s, zero)
	}
	return s
}

func (m *tableMemory) value(val *Value, mem *valueMemory, ints []int64, hists []Bins) {
	nullable := val.Merging != Sum
	switch {
	case val.Kind == Histogram:
		m.histogram(val.Name, mem, hists)
	case val.Kind == Float32:
		known := columnar.Nullable(val.Name, columnar.Int64, ints, NullInt, &mem.valid)
		mem.bits = mem.bits[:0]
		for _, x := range ints {
			mem.bits = append(mem.bits, int32(uint32(x)))
		}
		c := columnar.Fixed(val.Name, columnar.Float32, mem.bits)
		c.Nullable, c.Valid, c.Nulls = true, known.Valid, known.Nulls
		m.columns = append(m.columns, c)
	case nullable:
		m.columns = append(m.columns, columnar.Nullable(val.Name, typeOf(val.Kind), ints, NullInt, &mem.valid))
	default:
		m.columns = append(m.columns, columnar.Fixed(val.Name, typeOf(val.Kind), ints))
	}
}

func typeOf(k Kind) string {
	if k == Timestamp {
		return columnar.Time
	}
	return columnar.Int64
}

func (m *tableMemory) histogram(name string, mem *valueMemory, hists []Bins) {
	mem.offsets = append(mem.offsets[:0], 0)
	mem.bins, mem.counts = mem.bins[:0], mem.counts[:0]
	for i := range hists {
		mem.bins = append(mem.bins, hists[i].Index...)
		mem.counts = append(mem.counts, hists[i].Counts...)
		mem.offsets = append(mem.offsets, int32(len(mem.bins)))
	}
	bins, counts := columnar.Lists(name+suffixBins, columnar.ListUint16, mem.offsets), columnar.Lists(name+suffixCount, columnar.ListInt64, mem.offsets)
	mem.binsChild = columnar.Fixed("item", columnar.Uint16, mem.bins)
	mem.countChild = columnar.Fixed("item", columnar.Int64, mem.counts)
	bins.Child, counts.Child = &mem.binsChild, &mem.countChild
	m.columns = append(m.columns, bins, counts)
}

func (m *tableMemory) writer(r *Rollup) *columnar.Writer {
	w := m.writers[r]
	if w == nil {
		if m.writers == nil {
			m.writers = map[*Rollup]*columnar.Writer{}
		}
		w = new(columnar.Writer)
		m.writers[r] = w
	}
	return w
}

// release lets go of the table, so that the pool doesn't hold it.
func (m *tableMemory) release() {
	clear(m.columns)
	m.columns = m.columns[:0]
}
