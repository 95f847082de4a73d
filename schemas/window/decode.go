package window

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"penstock/schemas/columnar"
	"penstock/schemas/event"
)

// tableReader is reusable memory of decoding.
type tableReader struct {
	reader columnar.Reader
	raw    []byte
	bits   []int32
}

var readers = sync.Pool{New: func() any { return new(tableReader) }}

// DecodeTable reads a pane. Columns are found by name: an unknown one is
// ignored; all of the rollup's own must be there. Rows must be sorted, each
// (window, key) once, windows aligned, and histograms ascending with positive
// counts. The error names the column and what was expected, and wraps
// ErrUndecodable. The table shares no memory with body.
func DecodeTable(body []byte) (*Table, error) {
	d := readers.Get().(*tableReader)
	defer readers.Put(d)
	t, err := d.decode(body)
	if err != nil {
		return nil, fmt.Errorf("pane: %w: %w", err, ErrUndecodable)
	}
	return t, nil
}

func (d *tableReader) decode(body []byte) (*Table, error) {
	n, err := s2.DecodedLen(body)
	if err != nil {
		return nil, fmt.Errorf("body is not s2: %w", err)
	}
	if n > MaxDecoded {
		return nil, fmt.Errorf("body of %d bytes, expected at most %d", n, MaxDecoded)
	}
	if d.raw, err = s2.Decode(d.raw[:cap(d.raw)], body); err != nil {
		return nil, fmt.Errorf("body is not s2: %w", err)
	}
	batch, _, err := d.reader.Read(d.raw, MaxRows)
	if err != nil {
		return nil, err
	}
	name := batch.Metadata[metaRollup]
	r := Named(name)
	if r == nil {
		return nil, fmt.Errorf("metadata %s: got %.60q, expected the name of a rollup", metaRollup, name)
	}
	width, err := widthOf(r, batch.Metadata)
	if err != nil {
		return nil, err
	}
	t := r.table(width)
	if err := d.fill(t, batch); err != nil {
		return nil, err
	}
	return t, t.check()
}

// widthOf reads the width of a pane's windows, which says nothing where it is the
// rollup's own.
func widthOf(r *Rollup, metadata map[string]string) (time.Duration, error) {
	said, ok := metadata[metaWidth]
	if !ok {
		return r.Width, nil
	}
	s, err := strconv.ParseUint(said, 10, 32)
	width := time.Duration(s) * time.Second
	if err != nil || width != r.Width && (r.Group != Owners || CheckWidth(width) != nil) {
		return 0, fmt.Errorf("metadata %s: got %.60q, expected a width of windows of %s in seconds", metaWidth, said, r.Name)
	}
	return width, nil
}

func (d *tableReader) fill(t *Table, batch *columnar.Batch) error {
	c, err := column(batch, colStart, columnar.Time, false)
	if err != nil {
		return err
	}
	t.Start = columnar.Read(t.Start, c, 0)
	for k, name := range t.Rollup.Keys {
		if err := key(&t.Keys[k], batch, name); err != nil {
			return err
		}
	}
	for v := range t.Rollup.Values {
		if err := d.value(t, v, batch); err != nil {
			return err
		}
	}
	return nil
}

// column returns the column of that name and type.
func column(batch *columnar.Batch, name, typ string, nullable bool) (*columnar.Column, error) {
	c := batch.Column(name)
	switch {
	case c == nil:
		return nil, fmt.Errorf("column %s: missing, expected %s: %w", name, typ, columnar.ErrColumn)
	case c.Type != typ:
		return nil, fmt.Errorf("column %s: got %s, expected %s: %w", name, c.Type, typ, columnar.ErrColumn)
	case c.Nulls > 0 && !nullable:
		return nil, fmt.Errorf("column %s: %d rows are absent, expected none: %w", name, c.Nulls, columnar.ErrColumn)
	}
	return c, nil
}

// key reads a key column, whose values must be in byte order, each once.
func key(d *event.Dict, batch *columnar.Batch, name string) error {
	c, err := column(batch, name, columnar.DictUtf8, true)
	if err != nil {
		return err
	}
	if c.Dict == nil {
		return fmt.Errorf("column %s: its dictionary is missing: %w", name, columnar.ErrColumn)
	}
	values, err := columnar.ReadTexts(nil, c.Dict, event.MaxID)
	if err != nil {
		return err
	}
	for i, v := range values {
		if v == "" || i > 0 && v <= values[i-1] {
			return fmt.Errorf("column %s: value %d, %.60q, is not after the one before: %w", name, i, v, columnar.ErrColumn)
		}
	}
	codes, err := columnar.ReadCodes(nil, c, len(values))
	if err != nil {
		return err
	}
	d.Set(codes, values)
	return nil
}

func (d *tableReader) value(t *Table, v int, batch *columnar.Batch) error {
	val := &t.Rollup.Values[v]
	switch val.Kind {
	case Histogram:
		h, err := histogram(batch, val.Name)
		t.Hists[v] = h
		return err
	case Float32:
		c, err := column(batch, val.Name, columnar.Float32, true)
		if err != nil {
			return err
		}
		d.bits = columnar.Read(d.bits, c, 0)
		ints := make([]int64, len(d.bits))
		for i, b := range d.bits {
			if ints[i] = int64(uint32(b)); !c.IsValid(i) {
				ints[i] = NullInt
			}
		}
		t.Ints[v] = ints
		return nil
	}
	c, err := column(batch, val.Name, typeOf(val.Kind), val.Merging != Sum)
	if err != nil {
		return err
	}
	t.Ints[v] = columnar.Read(t.Ints[v], c, NullInt)
	return nil
}

// histogram reads the two list columns of a histogram. All rows share two
// allocations.
func histogram(batch *columnar.Batch, name string) ([]Bins, error) {
	b, err := column(batch, name+suffixBins, columnar.ListUint16, false)
	if err != nil {
		return nil, err
	}
	c, err := column(batch, name+suffixCount, columnar.ListInt64, false)
	if err != nil {
		return nil, err
	}
	if b.Child == nil || c.Child == nil || b.Child.Nulls+c.Child.Nulls > 0 {
		return nil, fmt.Errorf("column %s: an element is absent, expected none: %w", name, columnar.ErrColumn)
	}
	bins := columnar.Read([]uint16(nil), b.Child, 0)
	counts := columnar.Read([]int64(nil), c.Child, 0)
	out := make([]Bins, b.Len)
	for i := range out {
		from, to := b.Offset(i), b.Offset(i+1)
		cfrom, cto := c.Offset(i), c.Offset(i+1)
		if to-from != cto-cfrom {
			return nil, fmt.Errorf("column %s: row %d has %d bins and %d counts: %w", name, i, to-from, cto-cfrom, columnar.ErrColumn)
		}
		h := Bins{Index: bins[from:to:to], Counts: counts[cfrom:cto:cto]}
		if !h.valid() {
			return nil, fmt.Errorf("column %s: row %d, expected ascending bins below %d with positive counts: %w", name, i, NumBins, columnar.ErrColumn)
		}
		out[i] = h
	}
	return out, nil
}

func (h *Bins) valid() bool {
	for i, b := range h.Index {
		if int(b) >= NumBins || i > 0 && b <= h.Index[i-1] || h.Counts[i] <= 0 {
			return false
		}
	}
	return true
}

// check verifies that windows are aligned and rows ascend.
func (t *Table) check() error {
	for i, s := range t.Start {
		if s < event.MinTime || s > event.MaxTime || Start(s, t.Wide()) != s {
			return fmt.Errorf("column %s: row %d: got %d, expected a multiple of %s between 1900 and 2200", colStart, i, s, t.Wide())
		}
		if i > 0 && t.compare(i-1, i) >= 0 {
			return fmt.Errorf("row %d is not after row %d, expected rows sorted by window and key, each once", i, i-1)
		}
	}
	return nil
}

// compare compares the windows and keys of two rows by code: key values must be
// in byte order.
func (t *Table) compare(a, b int) int {
	if c := cmp.Compare(t.Start[a], t.Start[b]); c != 0 {
		return c
	}
	for k := range t.Keys {
		if c := cmp.Compare(t.Keys[k].Codes[a], t.Keys[k].Codes[b]); c != 0 {
			return c
		}
	}
	return 0
}

// sorted reports whether the table is as Sort leaves it.
func (t *Table) sorted() bool {
	for k := range t.Keys {
		if !orderly(&t.Keys[k]) {
			return false
		}
	}
	for i := 1; i < t.Len(); i++ {
		if t.compare(i-1, i) >= 0 {
			return false
		}
	}
	return true
}

// orderly reports whether the values of a key are in byte order, each once and
// each in use.
func orderly(d *event.Dict) bool {
	for i := 1; i < len(d.Values); i++ {
		if d.Values[i] <= d.Values[i-1] {
			return false
		}
	}
	used := make([]bool, len(d.Values))
	for _, c := range d.Codes {
		if c >= 0 {
			used[c] = true
		}
	}
	return !slices.Contains(used, false)
}
