package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"penstock/schemas/window"
)

// rowGroup is after how many rows a row group ends, at the next window's end:
// the cuts follow from the windows, so that equal windows give equal files.
const rowGroup = 64 << 10

// Matrices writes merged windows into matrices/<rollup>.parquet, one file a
// rollup, rows in order of (window, key). Each file appears under its name only
// once it is whole.
type Matrices struct {
	dir   string
	files map[string]*matrix
}

type matrix struct {
	pending    *window.Table
	incomplete []bool
	out        *os.File
	writer     *pqarrow.FileWriter
}

// NewMatrices prepares the folder dir/matrices. Rollups without rows get a file
// without rows.
func NewMatrices(dir string) (*Matrices, error) {
	m := &Matrices{dir: filepath.Join(dir, "matrices"), files: map[string]*matrix{}}
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return nil, fmt.Errorf("matrices: %w", err)
	}
	for _, r := range window.Rollups {
		f, err := m.open(r)
		if err != nil {
			return nil, errors.Join(err, m.Abort())
		}
		m.files[r.Name] = f
	}
	return m, nil
}

func (m *Matrices) path(r *window.Rollup) string { return filepath.Join(m.dir, r.Name+".parquet") }

func (m *Matrices) open(r *window.Rollup) (*matrix, error) {
	out, err := os.Create(m.path(r) + ".part")
	if err != nil {
		return nil, fmt.Errorf("matrices: %w", err)
	}
	empty := window.NewTable(r)
	rec := withIncomplete(empty, nil)
	defer rec.Release()
	props := parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCreatedBy("penstock"), parquet.WithMaxRowGroupLength(1<<30))
	w, err := pqarrow.NewFileWriter(rec.Schema(), synced{out}, props, pqarrow.NewArrowWriterProperties())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("matrices: %w", err), out.Close())
	}
	return &matrix{pending: empty, out: out, writer: w}, nil
}

// synced is a file that is on disk once it is closed. The Parquet writer closes
// the file under it after its footer.
type synced struct{ *os.File }

func (f synced) Close() error { return errors.Join(f.Sync(), f.File.Close()) }

// Add takes the rows of one closed window of a rollup. Windows of a rollup come
// in ascending order.
func (m *Matrices) Add(t *window.Table, incomplete bool) error {
	f := m.files[t.Rollup.Name]
	if f.pending.Len() == 0 {
		f.pending = t.Like() // As wide as the bus has them.
	}
	for i := range t.Len() {
		f.pending.AppendRow(t, i)
		f.incomplete = append(f.incomplete, incomplete)
	}
	if f.pending.Len() >= rowGroup {
		return f.flush()
	}
	return nil
}

func (f *matrix) flush() error {
	if f.pending.Len() == 0 {
		return nil
	}
	rec := withIncomplete(f.pending, f.incomplete)
	defer rec.Release()
	if err := f.writer.Write(rec); err != nil {
		return fmt.Errorf("matrices: %w", err)
	}
	f.pending, f.incomplete = window.NewTable(f.pending.Rollup), f.incomplete[:0]
	return nil
}

// withIncomplete returns the table as a record with the column incomplete at
// its end.
func withIncomplete(t *window.Table, incomplete []bool) arrow.Record {
	rec := t.Record()
	defer rec.Release()
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(incomplete, nil)
	col := b.NewArray()
	defer col.Release()
	fields := append(rec.Schema().Fields(), arrow.Field{Name: "incomplete", Type: arrow.FixedWidthTypes.Boolean})
	return array.NewRecord(arrow.NewSchema(fields, nil), append(rec.Columns(), col), int64(t.Len()))
}

// Close writes what is pending, syncs, and gives the files their names.
func (m *Matrices) Close() error {
	for _, r := range window.Rollups {
		f := m.files[r.Name]
		if err := f.flush(); err != nil {
			return errors.Join(err, m.Abort())
		}
		if err := f.writer.Close(); err != nil {
			return errors.Join(fmt.Errorf("matrices: %w", err), m.Abort())
		}
		if err := os.Rename(m.path(r)+".part", m.path(r)); err != nil {
			return fmt.Errorf("matrices: %w", err)
		}
	}
	m.files = nil
	return nil
}

// Abort closes and removes what isn't whole; files of before stay.
func (m *Matrices) Abort() error {
	var errs []error
	for _, f := range m.files {
		_ = f.out.Close() // Perhaps closed already; it is removed next.
		errs = append(errs, os.Remove(f.out.Name()))
	}
	m.files = nil
	return errors.Join(errs...)
}
