package recording

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"penstock/infra/errorkind"
	"penstock/schemas/event"
)

// WriterOptions of a Writer.
type WriterOptions struct {
	// Format to write. Defaults to what the name's extension says (.parquet,
	// .arrow, .csv, .jsonl), and to Parquet where it says nothing.
	Format Format
}

// Writer writes a recording. Nothing stands under its name until Close. It is
// not safe for concurrent use.
type Writer struct {
	name string
	tmp  *os.File
	out  *bufio.Writer
	pack io.WriteCloser // compresses text, nil if nothing does
	enc  encoder
	rows int64
	err  error
}

// encoder writes rows in one format.
type encoder interface {
	write(r *event.Request) error
	// finish writes what is still to come, not the file's own end.
	finish() error
}

// Create begins a recording that Close will put under that name. Texts are
// compressed if the name ends in .gz or .zst; Parquet and Arrow compress inside
// (zstd), so that such a name is an error, and so is an ending that names no format
// where the options don't either ([CheckName]). Errors wrap ErrOption or the file
// system's.
func Create(name string, o WriterOptions) (*Writer, error) {
	format, err := formatFor(name, o.Format)
	if err != nil {
		return nil, err
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return nil, fmt.Errorf("create recording: %w", err)
	}
	w := &Writer{name: name, tmp: tmp, out: bufio.NewWriterSize(tmp, 256<<10)}
	if err := w.begin(format); err != nil {
		return nil, errors.Join(fmt.Errorf("create recording: %w", err), w.Abort())
	}
	return w, nil
}

// endings are those that name a format to write.
const endings = ".parquet, .arrow, .feather, .ipc, .csv, .jsonl, .ndjson, .json"

// CheckName fails as Create does if a recording can't be written under that name,
// and makes nothing. The error wraps ErrOption.
func CheckName(name string) error {
	_, err := formatFor(name, Auto)
	return err
}

func formatFor(name string, f Format) (Format, error) {
	if _, err := ParseFormat(string(f)); err != nil {
		return f, err
	}
	if f == Auto {
		switch extension(name) {
		case ".csv":
			f = CSV
		case ".jsonl", ".ndjson", ".json":
			f = JSONLines
		case ".arrow", ".feather", ".ipc":
			f = Arrow
		case ".parquet":
			f = Parquet
		default:
			return f, errorkind.Errorf(ErrOption, "%s: its ending names no format, expected one of %s, and perhaps .gz or .zst after a text's", name, endings)
		}
	}
	if f == AccessLog {
		return f, errorkind.Errorf(ErrOption, "recordings are not written as access logs")
	}
	if (f == Parquet || f == Arrow) && packing(name) != "" {
		return f, errorkind.Errorf(ErrOption, "%s: %s is compressed inside, expected a name without %s", name, f, packing(name))
	}
	return f, nil
}

// packing returns the extension of a compression.
func packing(name string) string {
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".gz", ".zst", ".zstd":
		return ext
	}
	return ""
}

func (w *Writer) begin(f Format) (err error) {
	// A recording is for others to read, too.
	if err := w.tmp.Chmod(0o644); err != nil {
		return err
	}
	out := w.out
	switch packing(w.name) {
	case ".gz":
		// No name and no time in the header: equal rows, equal bytes.
		z := gzip.NewWriter(w.out)
		w.pack, out = z, bufio.NewWriterSize(z, 64<<10)
	case ".zst", ".zstd":
		z, err := zstd.NewWriter(w.out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		w.pack, out = z, bufio.NewWriterSize(z, 64<<10)
	}
	switch f {
	case CSV:
		w.enc = newCSVEncoder(out)
	case JSONLines:
		w.enc = &jsonEncoder{out: out}
	case Arrow:
		w.enc = newArrowEncoder(w.out)
	default:
		w.enc, err = newParquetEncoder(w.out)
	}
	return err
}

// Write adds a row. A row that no batch may hold is refused with an error that
// wraps event.ErrInvalid, one that the format has no way to write with one that
// wraps ErrUnwritable; writing may go on. After any other error nothing can be
// written, and Close returns it.
func (w *Writer) Write(r *event.Request) error {
	if w.err != nil {
		return w.err
	}
	if err := r.Check(); err != nil {
		return fmt.Errorf("row %d: %w", w.rows+1, err)
	}
	if err := w.enc.write(r); err != nil {
		if errors.Is(err, ErrUnwritable) {
			return fmt.Errorf("row %d: %w", w.rows+1, err)
		}
		w.err = fmt.Errorf("write recording %s: %w", w.name, err)
		return w.err
	}
	w.rows++
	return nil
}

// Rows returns how many rows were written.
func (w *Writer) Rows() int64 { return w.rows }

// Close writes the rest and puts the file under its name, synced; on an error
// nothing changes there. Closing again, or after Abort, does nothing.
func (w *Writer) Close() error {
	if w.tmp == nil {
		return nil
	}
	if w.err == nil {
		w.err = w.end()
	}
	if w.err != nil {
		return errors.Join(w.err, w.Abort())
	}
	name := w.tmp.Name()
	w.tmp = nil
	if err := os.Rename(name, w.name); err != nil {
		return errors.Join(fmt.Errorf("write recording: %w", err), os.Remove(name))
	}
	return syncFolder(filepath.Dir(w.name))
}

func (w *Writer) end() error {
	err := w.enc.finish()
	if err == nil && w.pack != nil {
		err = w.pack.Close()
	}
	if err == nil {
		err = w.out.Flush()
	}
	if err == nil {
		err = w.tmp.Sync()
	}
	if err == nil {
		err = w.tmp.Close()
	}
	if err != nil {
		return fmt.Errorf("write recording %s: %w", w.name, err)
	}
	return nil
}

// Abort gives up what was written; nothing changes under the name. It does
// nothing after Close.
func (w *Writer) Abort() error {
	if w.tmp == nil {
		return nil
	}
	tmp := w.tmp
	w.tmp = nil
	if w.err == nil {
		w.err = ErrClosed
	}
	err := tmp.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(err, os.Remove(tmp.Name()))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder of recording: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync folder of recording: %w", err)
	}
	return nil
}
