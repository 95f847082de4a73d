package awschunked

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"hash"
	"io"
)

// MinChunk is the fewest bytes of a chunk that another with data follows.
const MinChunk = 8 << 10

// maxLine bounds a line: a size with its extension, or a trailer.
const maxLine = 1 << 10

// Options say what is expected of a body.
type Options struct {
	// Signer checks signatures; nil: the body has none.
	Signer *Signer
	// Trailer is the name of the checksum behind the body, in lower case; empty: none
	// was announced.
	Trailer string
	// Length is how many bytes the data has.
	Length int64
}

// Reader gives the data of a body. One goroutine uses it.
type Reader struct {
	o   Options
	r   *bufio.Reader
	sum hash.Hash // of the chunk so far; nil without signatures
	// left is what is to be read of the current chunk, read the data of all so far.
	left, read int64
	// last is the size of the chunk before, −1 at the beginning; open that its line end
	// is to be read.
	last  int64
	open  bool
	value string
	err   error // what every further Read returns
}

// New returns a Reader of the body that r gives.
func New(r io.Reader, o Options) *Reader {
	c := &Reader{o: o, r: bufio.NewReaderSize(r, 4<<10), last: -1}
	if o.Signer != nil {
		c.sum = o.Signer.newHash()
	}
	return c
}

// Trailer is the value that stood behind the body, once Read has returned io.EOF.
func (c *Reader) Trailer() string { return c.value }

// Read implements io.Reader.
func (c *Reader) Read(p []byte) (int, error) {
	if c.err == nil && len(p) == 0 {
		return 0, nil
	}
	for c.err == nil && c.left == 0 {
		c.err = c.next()
	}
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	if c.sum != nil {
		_, _ = c.sum.Write(p[:n]) // never fails
	}
	c.left -= int64(n)
	c.read += int64(n)
	if err != nil {
		c.err = cut(err)
		return n, c.err
	}
	return n, nil
}

// next ends the chunk that was read and begins another; io.EOF after the last.
func (c *Reader) next() error {
	if c.open {
		if err := c.end(); err != nil {
			return err
		}
	}
	line, err := c.line()
	if err != nil {
		return err
	}
	size, ext, ok := parseSize(line)
	if !ok {
		return ErrMalformed
	}
	if c.o.Signer == nil {
		if len(ext) > 0 {
			return ErrMalformed
		}
	} else if err := c.o.Signer.announce(ext); err != nil {
		return err
	}
	if size == 0 {
		return c.finish()
	}
	if c.last >= 0 && c.last < MinChunk {
		return ErrChunkSize
	}
	if size > c.o.Length-c.read {
		return ErrLength
	}
	c.last, c.left, c.open = size, size, true
	return nil
}

// end reads the line end behind a chunk's data, and checks what was signed.
func (c *Reader) end() error {
	for _, want := range []byte("\r\n") {
		b, err := c.r.ReadByte()
		if err != nil {
			return cut(err)
		}
		if b != want {
			return ErrMalformed
		}
	}
	c.open = false
	return c.check()
}

// check compares the chunk that was read with its signature.
func (c *Reader) check() error {
	if c.o.Signer == nil {
		return nil
	}
	ok := c.o.Signer.chunk(c.sum.Sum(nil))
	c.sum.Reset()
	if !ok {
		return ErrSignature
	}
	return nil
}

// finish reads what stands behind the last chunk, to the body's end.
func (c *Reader) finish() error {
	if err := c.check(); err != nil { // the last chunk has no data, but a signature
		return err
	}
	if c.read != c.o.Length {
		return ErrLength
	}
	if err := c.trailer(); err != nil {
		return err
	}
	_, err := c.r.ReadByte()
	switch {
	case err == nil:
		return ErrMalformed
	case errors.Is(err, io.EOF):
		return io.EOF
	}
	return err
}

// trailer reads the lines behind the last chunk, and the empty one.
func (c *Reader) trailer() error {
	line, bare, err := c.anyLine()
	if err != nil {
		return err
	}
	if c.o.Trailer == "" {
		if len(line) > 0 {
			return ErrTrailer
		}
		return nil
	}
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || string(bytes.ToLower(bytes.TrimSpace(name))) != c.o.Trailer {
		return ErrTrailer
	}
	c.value = string(bytes.TrimSpace(value))
	if bare { // what is signed ends in LF, and some clients send it so, and then a line end
		if line, err = c.line(); err != nil || len(line) > 0 {
			return cmp.Or(err, ErrTrailer)
		}
	}
	if c.o.Signer != nil {
		if line, err = c.line(); err != nil {
			return err
		}
		if !c.o.Signer.trailer(c.o.Trailer, c.value, line) {
			return ErrSignature
		}
	}
	line, err = c.line()
	if err != nil {
		return err
	}
	if len(line) > 0 {
		return ErrTrailer
	}
	return nil
}

// line reads to a line end, which it does not return. What it returns is good until the
// next read.
func (c *Reader) line() ([]byte, error) {
	line, bare, err := c.anyLine()
	if err == nil && bare {
		err = ErrMalformed
	}
	return line, err
}

// anyLine reads a line, which may end in a bare LF.
func (c *Reader) anyLine() (line []byte, bare bool, err error) {
	line, err = c.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull) || len(line) > maxLine:
		return nil, false, ErrMalformed
	case err != nil:
		return nil, false, cut(err)
	}
	line, whole := bytes.CutSuffix(line[:len(line)-1], []byte("\r"))
	if bytes.IndexByte(line, '\r') >= 0 {
		return nil, false, ErrMalformed
	}
	return line, !whole, nil
}

// cut makes an end that comes too early ErrTruncated; other errors are the body's own.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrTruncated
	}
	return err
}

// parseSize reads the size of a chunk and what stands behind the semicolon.
func parseSize(line []byte) (size int64, ext []byte, ok bool) {
	digits, ext, _ := bytes.Cut(line, []byte(";"))
	if len(digits) == 0 || len(digits) > 15 { // 60 bits: no overflow
		return 0, nil, false
	}
	for _, d := range digits {
		switch {
		case d >= '0' && d <= '9':
			size = size<<4 | int64(d-'0')
		case d|0x20 >= 'a' && d|0x20 <= 'f':
			size = size<<4 | int64(d|0x20-'a'+10)
		default:
			return 0, nil, false
		}
	}
	return size, ext, true
}
