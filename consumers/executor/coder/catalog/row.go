package catalog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// Table is a table of the catalog, a bucket of the file.
type Table uint8

// The tables that changes are made of. Their numbers are part of the format of changes.
const (
	buckets   Table = iota + 1 // name → created
	records                    // bucket 0 key → record
	manifests                  // id of the first version → pieces, of records with many
	versions                   // id → document
	rests                      // id of a version → what is left to do
	intents                    // id → since, places
	deletes                    // store 0 key of a blob → sequence, id of its version
	uploads                    // bucket 0 key 0 id → upload
	parts                      // bucket 0 key 0 id 0 number → part
	repeats                    // store 0 key of a blob → when, id of its version
	tables                     // how many there are, plus one
)

// The buckets that no change is made of: they are this file's own.
var (
	metaBucket = []byte("meta")
	logBucket  = []byte("log") // sequence → change
)

var tableNames = [tables]string{"", "buckets", "records", "manifests", "versions", "rests", "intents", "deletes", "uploads", "parts", "repeats"}

// String gives the table's name.
func (t Table) String() string {
	if t > 0 && t < tables {
		return tableNames[t]
	}
	return fmt.Sprintf("table(%d)", uint8(t))
}

func (t Table) bucket() []byte { return []byte(tableNames[t]) }

// Row is a row of a table. Those who carry rows need not know what is in them. A nil
// Value removes the row.
type Row struct {
	Table      Table
	Key, Value []byte
}

// Change is what one transaction did.
type Change struct {
	// Seq is its sequence number: 1 for a catalog's first, and no gaps.
	Seq  uint64
	Rows []Row
}

// AppendRow appends a row's encoding: the table, the key, and 0 for a row that is
// removed or one more than the value's length and the value.
func AppendRow(b []byte, r Row) []byte {
	b = append(b, byte(r.Table))
	b = appendNumber(b, len(r.Key))
	b = append(b, r.Key...)
	if r.Value == nil {
		return append(b, 0)
	}
	b = appendNumber(b, len(r.Value)+1)
	return append(b, r.Value...)
}

// ReadRow takes a row from the front of b, which it shares memory with. It returns
// ErrDamaged, and ErrFormat for a table that this version doesn't know.
func ReadRow(b []byte) (Row, []byte, error) {
	f := fieldsOf(b)
	r := f.row()
	if err := f.err("row"); err != nil {
		return Row{}, b, err
	}
	if r.Table == 0 || r.Table >= tables {
		return Row{}, b, fmt.Errorf("%w: %v", ErrFormat, r.Table)
	}
	return r, f.Rest, nil
}

func (f *fields) row() Row {
	var r Row
	if b := f.Take("table", 1); b != nil {
		r.Table = Table(b[0])
	}
	r.Key = f.Take("key", f.Count("key", math.MaxInt16))
	if n := f.Count("value", maxChange); n > 0 {
		r.Value = f.Take("value", n-1)
	}
	if f.Fault() == "" && len(r.Key) == 0 {
		f.Fail("row without a key")
	}
	return r
}

// AppendChange appends a change's encoding: its sequence number, and its rows.
func AppendChange(b []byte, c Change) []byte {
	b = appendNumber(b, c.Seq)
	b = appendNumber(b, len(c.Rows))
	for _, r := range c.Rows {
		b = AppendRow(b, r)
	}
	return b
}

// ReadChange takes a change from the front of b, which it shares memory with. It
// returns what ReadRow does.
func ReadChange(b []byte) (Change, []byte, error) {
	f := fieldsOf(b)
	c := Change{Seq: f.Number("sequence", math.MaxInt64)}
	n := f.Count("rows", maxChange)
	if err := f.err("change"); err != nil {
		return Change{}, b, err
	}
	// Not one byte of memory more than the bytes there are can be claimed.
	rest := f.Rest
	for range n {
		r, after, err := ReadRow(rest)
		if err != nil {
			return Change{}, b, fmt.Errorf("change %d: %w", c.Seq, err)
		}
		c.Rows, rest = append(c.Rows, r), after
	}
	return c, rest, nil
}

// join makes a row's key of its parts. None but the last has a zero byte.
func join(parts ...string) []byte {
	n := len(parts) - 1
	for _, p := range parts {
		n += len(p)
	}
	b := make([]byte, 0, n)
	for i, p := range parts {
		if i > 0 {
			b = append(b, 0)
		}
		b = append(b, p...)
	}
	return b
}

// cut divides a row's key at its first zero byte.
func cut(key []byte) (first, rest string, ok bool) {
	a, b, ok := bytes.Cut(key, []byte{0})
	return string(a), string(b), ok
}

func seqKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// partKey is the key of a part of the upload with this row.
func partKey(upload []byte, number int) []byte {
	b := make([]byte, 0, len(upload)+3)
	return binary.BigEndian.AppendUint16(append(append(b, upload...), 0), uint16(number)) //nolint:gosec // 0 … 10000
}
