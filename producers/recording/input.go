package recording

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"penstock/infra/errorkind"
)

// input is an open file behind its decompressor.
type input struct {
	name   string
	file   *os.File
	in     *bufio.Reader // plain bytes
	plain  bool          // the file itself is not compressed
	finish func()        // gives the decompressor's memory back
}

const (
	inputBuffer = 64 << 10
	// maxWindow bounds the memory that a zst file may ask for.
	maxWindow = 128 << 20
)

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	bom       = []byte("\xef\xbb\xbf")
)

// openInput opens a file and tells its compression by the first bytes.
func openInput(name string) (*input, error) {
	f, err := openRegular(name)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	i, err := unpack(name, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return i, nil
}

// openRegular opens a file, and nothing but a file: a recording is read for its
// digest first and for its rows then, and what a pipe gives is gone after the
// first time. It looks before it opens, for to open a pipe waits for a writer.
// The error wraps ErrOption or is the file system's.
func openRegular(name string) (*os.File, error) {
	if name == "-" {
		return nil, irregular("- (standard input)")
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, irregular(name + " (" + kindOf(info.Mode()) + ")")
	}
	return os.Open(name)
}

func irregular(what string) error {
	return errorkind.Errorf(ErrOption, "%s is not a regular file: a recording is read more than once, write it to a file first", what)
}

// kindOf names what is no regular file.
func kindOf(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&os.ModeNamedPipe != 0:
		return "a pipe"
	case m&os.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// unpack puts the decompressor before a file that needs one.
func unpack(name string, f *os.File) (*input, error) {
	i := &input{name: name, file: f, in: bufio.NewReaderSize(f, inputBuffer), plain: true, finish: func() {}}
	magic, _ := i.in.Peek(4)
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		z, err := gzip.NewReader(i.in)
		if err != nil {
			return nil, errorkind.Errorf(ErrDamaged, "%s: gzip header: %w", name, err)
		}
		i.plain, i.in = false, bufio.NewReaderSize(z, inputBuffer)
	case bytes.HasPrefix(magic, zstdMagic):
		// One decoder at a time: no goroutines to leak.
		z, err := zstd.NewReader(i.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, errorkind.Errorf(ErrDamaged, "%s: zstd header: %w", name, err)
		}
		i.plain, i.in, i.finish = false, bufio.NewReaderSize(z, inputBuffer), z.Close
	}
	return i, nil
}

// skipBOM leaves out a byte order mark.
func (i *input) skipBOM() {
	if head, _ := i.in.Peek(len(bom)); bytes.Equal(head, bom) {
		_, _ = i.in.Discard(len(bom)) // what was peeked can be discarded
	}
}

func (i *input) close() error {
	i.finish()
	i.finish = func() {}
	return i.file.Close()
}

// seekable returns the plain content as something that columnar readers can
// seek in: the file itself, or a temporary copy of what was compressed. The
// copy is removed from its folder at once and vanishes when it is closed.
func (i *input) seekable() (*os.File, error) {
	if i.plain {
		return i.file, nil
	}
	tmp, err := os.CreateTemp("", "penstock-recording-*")
	if err != nil {
		return nil, fmt.Errorf("%s: unpack: %w", i.name, err)
	}
	if err := os.Remove(tmp.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: unpack: %w", i.name, err), tmp.Close())
	}
	if _, err := io.Copy(tmp, i.in); err != nil {
		return nil, errors.Join(damaged(i.name, 0, err), tmp.Close())
	}
	return tmp, nil
}

// damaged names the file and the line after which it could not be read.
func damaged(name string, line int64, err error) error {
	if errors.Is(err, errColumnType) {
		return errorkind.Errorf(ErrNothingParses, "%s: %w", name, err)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return errorkind.Errorf(ErrDamaged, "%s breaks off after line %d: %w", name, line, err)
}
