package recording

import (
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"penstock/schemas/event"
)

const (
	// groupRows is how many rows go into a row group of Parquet or a record
	// batch of Arrow: enough for dictionaries to pay, little enough to hold.
	groupRows = 64 << 10
	// createdBy keeps the library's version out of the bytes.
	createdBy = "penstock"
)

// columnarEncoder gathers rows and writes them a group at a time.
type columnarEncoder struct {
	rows  event.Requests
	group func(arrow.Record) error
	close func() error
}

func newParquetEncoder(out io.Writer) (*columnarEncoder, error) {
	props := parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithDictionaryDefault(true),
		// These hardly repeat; and the library reads floats from a dictionary
		// slowly.
		parquet.WithDictionaryFor("time", false),
		parquet.WithDictionaryFor("id", false),
		parquet.WithDictionaryFor("trace", false),
		parquet.WithDictionaryFor("lat", false),
		parquet.WithDictionaryFor("lon", false),
		parquet.WithMaxRowGroupLength(groupRows),
		// A group in one piece: the library fails on the second piece of a
		// dictionary column without nulls.
		parquet.WithBatchSize(groupRows),
		parquet.WithCreatedBy(createdBy),
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithAllocator(memory.DefaultAllocator),
	)
	// The writer closes what it writes to if that can be closed.
	w, err := pqarrow.NewFileWriter(event.ArrowSchema(), struct{ io.Writer }{out}, props,
		pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema(), pqarrow.WithAllocator(memory.DefaultAllocator)))
	if err != nil {
		return nil, err
	}
	return &columnarEncoder{group: w.Write, close: w.Close}, nil
}

func newArrowEncoder(out io.Writer) *columnarEncoder {
	// A stream, not a file: a file cannot replace a dictionary from batch to
	// batch, and here each batch has its own.
	w := ipc.NewWriter(out, ipc.WithSchema(event.ArrowSchema()), ipc.WithZstd())
	return &columnarEncoder{group: w.Write, close: w.Close}
}

func (e *columnarEncoder) write(r *event.Request) error {
	e.rows.Append(r)
	if e.rows.Len() >= groupRows {
		return e.flush()
	}
	return nil
}

func (e *columnarEncoder) flush() error {
	rec, err := event.Record(&e.rows)
	if err != nil {
		return err
	}
	defer rec.Release()
	if err := e.group(rec); err != nil {
		return err
	}
	e.rows.Reset()
	return nil
}

func (e *columnarEncoder) finish() error {
	if e.rows.Len() > 0 {
		if err := e.flush(); err != nil {
			return err
		}
	}
	return e.close()
}
