package locations

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"penstock/schemas/control"
)

// parquetMagic begins a Parquet file, and no CSV that names our columns.
const parquetMagic = "PAR1"

// groupRows is how many rows go into a row group, and are read at a time.
const groupRows = 64 << 10

// parquetRows reads the same columns as a CSV, of whatever types say the same: a
// cell is taken as the text that it would be there. Lines count from 2, as if
// the first named the columns.
type parquetRows struct {
	in    pqarrow.RecordReader
	file  *file.Reader
	at    map[string]int
	batch arrow.Record
	next  int // in batch
	line  int
}

func newParquetRows(ctx context.Context, in parquet.ReaderAtSeeker) (*parquetRows, error) {
	fail := func(err error) error {
		return fmt.Errorf("import locations: not a Parquet file that can be read: %w", err)
	}
	f, err := file.NewParquetReader(in)
	if err != nil {
		return nil, fail(err)
	}
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: groupRows}, memory.DefaultAllocator)
	if err != nil {
		return nil, fail(err)
	}
	records, err := r.GetRecordReader(ctx, nil, nil)
	if err != nil {
		return nil, fail(err)
	}
	var head []string
	for _, c := range records.Schema().Fields() {
		head = append(head, c.Name)
	}
	at, err := columnsOf(head)
	if err != nil {
		return nil, err
	}
	return &parquetRows{in: records, file: f, at: at, line: 1}, nil
}

// Next reads a row.
func (p *parquetRows) Next() (Row, int, error) {
	for p.batch == nil || p.next == int(p.batch.NumRows()) {
		if !p.in.Next() {
			if err := p.in.Err(); err != nil && err != io.EOF { //nolint:errorlint // It says io.EOF plainly, or wraps what failed.
				return Row{}, 0, fmt.Errorf("after line %d: %w", p.line, err)
			}
			return Row{}, 0, io.EOF
		}
		p.batch, p.next = p.in.Record(), 0
	}
	i := p.next
	p.next++
	p.line++
	r, err := parseRow(func(column string) string {
		if c, ok := p.at[column]; ok {
			return cell(p.batch.Column(c), i)
		}
		return ""
	})
	return r, p.line, err
}

// close gives the file's memory free.
func (p *parquetRows) close() error {
	p.in.Release()
	return p.file.Close()
}

// cell is the text of a value, empty if it is missing.
func cell(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return ""
	}
	switch a := a.(type) {
	case *array.String:
		return string([]byte(a.Value(i))) // The batch's memory is used again.
	case *array.LargeString:
		return string([]byte(a.Value(i)))
	case *array.Binary:
		return string(a.Value(i))
	case *array.Dictionary:
		return cell(a.Dictionary(), a.GetValueIndex(i))
	case *array.Timestamp:
		to, err := a.DataType().(*arrow.TimestampType).GetToTimeFunc()
		if err != nil {
			return a.ValueStr(i) // which is no time, and is told as such
		}
		return to(a.Value(i)).UTC().Format(time.RFC3339Nano)
	}
	return a.ValueStr(i)
}

var parquetSchema = arrow.NewSchema([]arrow.Field{
	{Name: "owner", Type: arrow.BinaryTypes.String},
	{Name: "site", Type: arrow.BinaryTypes.String},
	{Name: "version", Type: arrow.PrimitiveTypes.Uint64},
	{Name: "state", Type: arrow.BinaryTypes.String},
	{Name: "since", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	{Name: "pinned", Type: arrow.FixedWidthTypes.Boolean},
}, nil)

// parquetWriter writes an export, a row group at a time. Times are whole µs.
type parquetWriter struct {
	out *pqarrow.FileWriter
	b   *array.RecordBuilder
	n   int
}

func newParquetWriter(w io.Writer) (*parquetWriter, error) {
	props := parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCreatedBy("penstock"), parquet.WithMaxRowGroupLength(groupRows))
	// The writer closes what it writes to if that can be closed.
	out, err := pqarrow.NewFileWriter(parquetSchema, struct{ io.Writer }{w}, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	return &parquetWriter{out: out, b: array.NewRecordBuilder(memory.DefaultAllocator, parquetSchema)}, nil
}

func (p *parquetWriter) write(owner string, l control.Location) error {
	for i, v := range []string{owner, l.Site, "", string(l.State)} {
		if i != 2 {
			p.b.Field(i).(*array.StringBuilder).Append(v)
		}
	}
	p.b.Field(2).(*array.Uint64Builder).Append(l.Version)
	p.b.Field(4).(*array.TimestampBuilder).Append(arrow.Timestamp(l.Since.UnixMicro()))
	p.b.Field(5).(*array.BooleanBuilder).Append(l.Pinned)
	if p.n++; p.n%groupRows == 0 {
		return p.flush()
	}
	return nil
}

func (p *parquetWriter) flush() error {
	rec := p.b.NewRecord()
	defer rec.Release()
	return p.out.Write(rec)
}

func (p *parquetWriter) close() error {
	defer p.b.Release()
	if p.n%groupRows != 0 || p.n == 0 {
		if err := p.flush(); err != nil {
			return err
		}
	}
	return p.out.Close()
}

// openRows tells a Parquet file from a CSV by its content.
func openRows(ctx context.Context, r io.Reader) (rows Rows, closeRows func() error, err error) {
	closeRows = func() error { return nil }
	head := make([]byte, len(parquetMagic))
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil, fmt.Errorf("import locations: %w", err)
	}
	if string(head[:n]) != parquetMagic {
		rows, err = newCSVRows(io.MultiReader(bytes.NewReader(head[:n]), r))
		return rows, closeRows, err
	}
	in, ok := r.(parquet.ReaderAtSeeker)
	if ok {
		// A pipe has the methods too, and fails.
		_, err = in.Seek(0, io.SeekStart)
	}
	if !ok || err != nil {
		body, err := io.ReadAll(r)
		if err != nil {
			return nil, nil, fmt.Errorf("import locations: %w", err)
		}
		in = bytes.NewReader(slices.Concat(head, body))
	}
	p, err := newParquetRows(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	return p, p.close, nil
}
