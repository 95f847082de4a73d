package recording

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	pqfile "github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"penstock/infra/errorkind"
	"penstock/schemas/event"
)

// records gives the record batches of a file, io.EOF at the end. A record is
// valid until the next call.
type records interface {
	Read() (arrow.Record, error)
}

// columnarSource reads a columnar file. A goroutine decodes one batch ahead.
type columnarSource struct {
	in      *input
	content io.Closer // what seekable made, nil if it is the input itself
	records records
	record  arrow.Record // being taken in pieces, by the goroutine
	from    int64        // row of record that comes next
	atEnd   func()       // says what there is to say at the end
	strings *interner

	full, free chan *batch
	stop       chan struct{}
	done       chan struct{} // nil until the goroutine has begun
	err        error         // why the goroutine ended; read behind a closed full
	once       sync.Once

	now    *batch
	cursor int // row of now that next returns
	fault  int // first fault of now that is not passed
	at     int64
	bad    fault
}

// batchRows is how many rows are decoded at a time.
const batchRows = 8 << 10

func newColumnar(in *input, format Format, note func(string)) (*columnarSource, error) {
	// The goroutine has its own table: another file's may be at work.
	c := &columnarSource{
		in: in, strings: newInterner(),
		atEnd: func() {}, full: make(chan *batch), free: make(chan *batch, 2), stop: make(chan struct{}),
	}
	if err := c.open(format, note); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *columnarSource) open(format Format, note func(string)) (err error) {
	defer recovered(&err)
	var names []string
	if format == Parquet {
		names, err = c.openParquet()
	} else {
		names, err = c.openArrow(note)
	}
	if err != nil {
		return damaged(c.in.name, 0, err)
	}
	var unknown []string
	seen := uint32(0)
	for _, name := range names {
		col, ok := columnByName[name]
		if !ok {
			unknown = append(unknown, clip(name, maxGot))
		} else {
			seen |= 1 << col
		}
	}
	if f := missingColumn(seen); f != nil {
		return errorkind.Errorf(ErrNothingParses, "%s has no column %s", c.in.name, f.field)
	}
	noteUnknown(note, unknown)
	return nil
}

// recovered turns a panic of the decoding library into an error: it trusts
// lengths that a damaged file gives.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = errorkind.Errorf(ErrDamaged, "decoder failed on %v", p)
	}
}

// openParquet opens the file for the columns that we know.
func (c *columnarSource) openParquet() ([]string, error) {
	content, err := c.seekable()
	if err != nil {
		return nil, err
	}
	pf, err := pqfile.NewParquetReader(content, pqfile.WithReadProps(parquet.NewReaderProperties(memory.DefaultAllocator)))
	if err != nil {
		return nil, err
	}
	props := pqarrow.ArrowReadProperties{BatchSize: batchRows}
	schema := pf.MetaData().Schema
	var names []string
	var leaves []int
	for i := range schema.NumColumns() {
		leaf := schema.Column(i)
		name := leaf.ColumnPath().String()
		names = append(names, name)
		col, ok := columnByName[name]
		if !ok {
			continue
		}
		leaves = append(leaves, i)
		text := leaf.PhysicalType() == parquet.Types.ByteArray
		props.SetReadDict(i, text && col != colID)
	}
	reader, err := pqarrow.NewFileReader(pf, props, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	if c.records, err = reader.GetRecordReader(context.Background(), leaves, nil); err != nil {
		return nil, err
	}
	return names, nil
}

// seekable gives the file's plain content, and sees to it that a copy is closed.
func (c *columnarSource) seekable() (*os.File, error) {
	f, err := c.in.seekable()
	if err == nil && !c.in.plain {
		c.content = f
	}
	return f, err
}

// openArrow opens an IPC file or stream.
func (c *columnarSource) openArrow(note func(string)) ([]string, error) {
	head, _ := c.in.in.Peek(len(arrowMagic)) // short if the file is
	stream, err := newIPCStream(c.in.in, bytes.Equal(head, arrowMagic))
	if err != nil {
		return nil, err
	}
	r, err := ipc.NewReader(stream)
	if err != nil {
		return nil, err
	}
	c.records = r
	c.atEnd = func() {
		if !stream.ended {
			note("the stream has no mark of its end; it may have been cut between two batches")
		}
	}
	var names []string
	for _, f := range r.Schema().Fields() {
		names = append(names, f.Name)
	}
	return names, nil
}

// decode fills batches until the file ends or the reader is closed.
func (c *columnarSource) decode() {
	defer close(c.done)
	defer close(c.full)
	row := int64(1)
	for {
		var b *batch
		select {
		case b = <-c.free:
		case <-c.stop:
			return
		}
		if c.err = c.fill(b, row); c.err != nil {
			return
		}
		row += int64(b.rows)
		select {
		case c.full <- b:
		case <-c.stop:
			return
		}
	}
}

// fill decodes the next rows into b. Records of others may be long: of each, a
// piece is taken at a time.
func (c *columnarSource) fill(b *batch, first int64) (err error) {
	defer recovered(&err)
	if c.record == nil {
		if c.record, err = c.records.Read(); err != nil {
			return err
		}
		c.from = 0
	}
	rows := min(c.record.NumRows()-c.from, batchRows)
	rec := c.record.NewSlice(c.from, c.from+rows)
	defer rec.Release()
	if c.from += rows; c.from == c.record.NumRows() {
		c.record = nil
	}
	b.reset(int(rows), first)
	for i, f := range rec.Schema().Fields() {
		col, ok := columnByName[f.Name]
		if !ok || b.had[col] {
			continue
		}
		if err := b.fill(col, rec.Column(i), c.strings); err != nil {
			return err
		}
	}
	b.settle()
	return nil
}

func (c *columnarSource) next(r *event.Request) error {
	for c.now == nil || c.cursor == c.now.rows {
		if err := c.turn(); err != nil {
			return err
		}
	}
	b, i := c.now, c.cursor
	c.cursor++
	c.at = b.first + int64(i)
	if c.fault < len(b.faults) && b.faults[c.fault].row == i {
		f := b.faults[c.fault]
		for c.fault < len(b.faults) && b.faults[c.fault].row == i {
			c.fault++
		}
		c.bad = fault{line: c.at, field: f.column.String(), got: f.got, expected: columnExpected[f.column]}
		if f.got == "" {
			c.bad.expected += " (it may not be missing)"
		}
		return &c.bad
	}
	b.row(i, r)
	return nil
}

// turn takes the next batch.
func (c *columnarSource) turn() error {
	if c.done == nil {
		c.done = make(chan struct{})
		c.free <- new(batch)
		c.free <- new(batch)
		go c.decode()
	}
	if c.now != nil {
		c.free <- c.now
		c.now = nil
	}
	b, ok := <-c.full
	if !ok {
		if errors.Is(c.err, io.EOF) {
			c.atEnd()
			c.atEnd = func() {}
		}
		return c.err
	}
	c.now, c.cursor, c.fault = b, 0, 0
	return nil
}

func (c *columnarSource) line() int64  { return c.at }
func (c *columnarSource) blank() int64 { return 0 }
func (c *columnarSource) raw() []byte  { return nil }

func (c *columnarSource) close() error {
	var err error
	c.once.Do(func() {
		close(c.stop)
		if c.done != nil {
			<-c.done
		}
		if c.content != nil {
			err = c.content.Close()
		}
	})
	return err
}
