package event

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/klauspost/compress/s2"

	"penstock/schemas/columnar"
)

// Decoder decodes batches of requests. It reuses its memory and is not safe
// for concurrent use. The zero value decodes all columns.
type Decoder struct {
	reader columnar.Reader
	raw    []byte
	skip   [numColumns]bool // whatever the batch
	with   []keyed
	now    [numColumns]bool // of the batch at hand, where with has something
	every  [numColumns]bool // those of batches that have all keys of with
	fill   filler
	lines  lineReader
}

// keyed are columns that are decoded with a value in column key only.
type keyed struct {
	key   Column
	names []Column
}

// Columns restricts decoding to the named columns of request/1 and time, which
// is always there; the others stay nil. Without names all are decoded. A name
// that is no column panics: it is a fault of the caller's.
func (d *Decoder) Columns(names ...string) {
	d.with = nil
	for i, f := range requestFields {
		d.skip[i] = len(names) > 0 && i != colTime && !slices.Contains(names, f.Name)
	}
	d.every = d.skip
	mustKnow(names...)
}

// ColumnsWith adds columns to those of Columns, to be decoded only of batches in which
// some row has a value in column key: rows of one sort have columns that others leave
// empty. Of other batches they stay nil, and key is absent in all rows. Of several calls
// each adds its own.
func (d *Decoder) ColumnsWith(key string, names ...string) {
	mustKnow(append([]string{key}, names...)...)
	k := keyed{}
	k.key, _ = ColumnNamed(key)
	d.skip[k.key], d.every[k.key] = false, false
	for _, n := range names {
		c, _ := ColumnNamed(n)
		k.names = append(k.names, c)
		d.every[c] = false
	}
	d.with = append(d.with, k)
}

// skips are the columns that are not decoded of a batch.
func (d *Decoder) skips(batch *columnar.Batch) *[numColumns]bool {
	if len(d.with) == 0 {
		return &d.skip
	}
	d.now = d.skip
	for i := range d.with {
		if c := batch.Column(d.with[i].key.String()); c == nil || c.Nulls == batch.Rows {
			continue
		}
		for _, n := range d.with[i].names {
			d.now[n] = false
		}
	}
	return &d.now
}

// mustKnow panics for a name that is no column: it is a fault of the caller's.
func mustKnow(names ...string) {
	for _, n := range names {
		if !slices.ContainsFunc(requestFields[:], func(f columnar.Field) bool { return f.Name == n }) {
			panic("event: request/1 has no column " + n)
		}
	}
}

// Decode overwrites into with the batch of a body; encoding is that of its
// header: "", EncodingS2 or EncodingJSONL. The slices of into are reused by the next Decode
// into it, its strings live on; those of a column share one allocation, so that
// whoever keeps a few of them for long does better to clone them. Columns are
// found by name: one that is missing is absent in all rows, one that is unknown
// is ignored. Rows are as Request.Check wants them, but for a position of which
// one half is missing. Whether there are as many as the header says is for the
// caller to compare. The error names the column and what was expected, wraps
// ErrUndecodable, and leaves into empty.
func (d *Decoder) Decode(body []byte, encoding string, into *Requests) error {
	into.Reset()
	if encoding == EncodingJSONL {
		return d.decodeLines(body, into)
	}
	raw, err := unpack(&d.raw, body, encoding, requestEncodings)
	if err != nil {
		return err
	}
	batch, _, err := d.reader.Read(raw, MaxRows)
	if err != nil {
		return undecodable(err)
	}
	if err := d.fill.requests(into, batch, d.skips(batch)); err != nil {
		into.clear()
		return undecodable(err)
	}
	return nil
}

// decodeLines decodes a body of JSON Lines.
func (d *Decoder) decodeLines(body []byte, into *Requests) error {
	if err := d.lines.read(into, body, &d.every); err != nil {
		into.clear()
		return undecodable(err)
	}
	for i, skip := range d.every {
		if skip {
			d.fill.drop(into, i)
		}
	}
	return nil
}

// unpack returns the stream of a body, in *raw if it had to be decompressed.
func unpack(raw *[]byte, body []byte, encoding, known string) ([]byte, error) {
	switch encoding {
	case "":
		if len(body) > MaxDecoded {
			return nil, fmt.Errorf("body of %d bytes, expected at most %d: %w", len(body), MaxDecoded, ErrUndecodable)
		}
		return body, nil
	case EncodingS2:
	default:
		return nil, headerError(HeaderEncoding, encoding, known)
	}
	n, err := s2.DecodedLen(body)
	if err != nil {
		return nil, fmt.Errorf("body is not s2: %w: %w", err, ErrUndecodable)
	}
	// No byte of s2 stands for more than a few hundred thousand, so that a short
	// body with a great claim is refused before memory is taken.
	if n > MaxDecoded {
		return nil, fmt.Errorf("body of %d bytes, expected at most %d: %w", n, MaxDecoded, ErrUndecodable)
	}
	if *raw, err = s2.Decode((*raw)[:cap(*raw)], body); err != nil {
		return nil, fmt.Errorf("body is not s2: %w: %w", err, ErrUndecodable)
	}
	return *raw, nil
}

func undecodable(err error) error { return fmt.Errorf("%w: %w", err, ErrUndecodable) }

// FromRecord overwrites into with the rows of an Arrow record, as recordings
// hold them: columns by name, one that is missing absent in all rows, unknown
// ones ignored, texts with any index type or without a dictionary. There is no
// limit on rows. The error names the column and wraps ErrUndecodable.
func FromRecord(rec arrow.Record, into *Requests) (err error) {
	into.Reset()
	defer func() {
		if err != nil {
			into.clear()
		}
	}()
	batch := columnar.Batch{Rows: int(rec.NumRows())}
	for i, f := range rec.Schema().Fields() {
		if !slices.ContainsFunc(requestFields[:], func(r columnar.Field) bool { return r.Name == f.Name }) {
			continue
		}
		c, err := columnar.FromArray(f, rec.Column(i))
		if err != nil {
			return undecodable(err)
		}
		if c.Len != batch.Rows {
			return undecodable(fmt.Errorf("column %s: %d rows, expected %d: %w", c.Name, c.Len, batch.Rows, columnar.ErrColumn))
		}
		batch.Columns = append(batch.Columns, c)
	}
	var fill filler
	var all [numColumns]bool
	if err := fill.requests(into, &batch, &all); err != nil {
		return undecodable(err)
	}
	return nil
}

// clear empties all columns, whatever their lengths were.
func (b *Requests) clear() { *b = Requests{} }

// nan is the absent position.
var nan = float32(math.NaN())
