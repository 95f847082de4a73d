package recording

import (
	"errors"
	"fmt"
)

var (
	// ErrNothingParses is returned by Next when the first 100 lines of a file
	// are all malformed, or all lines of a shorter one. It is most likely not
	// of the format that it was taken for. The reader gives no more rows.
	ErrNothingParses = errors.New("nothing of the recording can be read")

	// ErrDamaged is returned by Next when a file breaks off or its compression
	// or framing is wrong. The rows before it stand; the reader gives no more.
	ErrDamaged = errors.New("damaged recording")

	// ErrOption is returned by Open and Create for options that can't be used,
	// and by Open, EachLine and Digest for what is no regular file, such as a
	// pipe. Nothing has been read.
	ErrOption = errors.New("invalid recording option")

	// ErrClosed is returned after Close.
	ErrClosed = errors.New("recording is closed")

	// ErrUnwritable is returned by Write for a row that the format cannot hold.
	// The row is not written, what was written before stands.
	ErrUnwritable = errors.New("row cannot be written")
)

// BadLine is a line of a recording that cannot be used.
type BadLine struct {
	File string
	// Line counts from 1; in columnar files it is the row. A record that spans
	// lines has the number of its first.
	Line int64
	// Column is the byte of the line at which the field begins, from 1; 0 where
	// there is no such thing.
	Column   int
	Field    string
	Got      string // at most 80 bytes of what is there
	Expected string
	// Raw is the line, at most its first 64 KB. It is valid during the call.
	Raw []byte
}

// Error describes the line.
func (b *BadLine) Error() string {
	at := ""
	if b.Column > 0 {
		at = fmt.Sprintf(" column %d", b.Column)
	}
	return fmt.Sprintf("%s line %d%s: field %s: got %q, expected %s", b.File, b.Line, at, b.Field, b.Got, b.Expected)
}

const (
	// maxGot and maxRaw bound what a BadLine repeats.
	maxGot = 80
	maxRaw = 64 << 10
)

// fault is what a source says of a line that it cannot use. It is an error so
// that sources return it; the reader makes a BadLine of it.
type fault struct {
	line     int64
	column   int
	field    string
	got      string
	expected string
	raw      []byte
}

func (f *fault) Error() string {
	return fmt.Sprintf("line %d: field %s: got %q, expected %s", f.line, f.field, f.got, f.expected)
}

func clip[T string | []byte](v T, n int) T {
	if len(v) > n {
		return v[:n]
	}
	return v
}
