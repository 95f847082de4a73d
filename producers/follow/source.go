package follow

import (
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// source is an open file that is read at positions of its content, compressed or
// not.
type source struct {
	file   *os.File
	packed *packed // nil if it is not compressed
}

// openSource opens a regular file.
func openSource(path string) (*source, os.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	fi, err := file.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, errNotRegular)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	s := &source{file: file}
	var magic [4]byte
	n, _ := file.ReadAt(magic[:], 0) // fewer bytes are no magic
	if kind := packedKind(magic[:n]); kind != "" {
		s.packed = &packed{file: file, kind: kind}
	}
	return s, fi, nil
}

// readAt fills b from the position. Fewer bytes come with io.EOF, or with
// errIncomplete if the end of a compressed file is not its end.
func (s *source) readAt(b []byte, at int64) (int, error) {
	if s.packed != nil {
		return s.packed.readAt(b, at)
	}
	return s.file.ReadAt(b, at)
}

// head is what there is of the content's first bytes.
func (s *source) head(n int) ([]byte, error) {
	b := make([]byte, n)
	n, err := s.readAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

func (s *source) close() {
	if s.packed != nil {
		s.packed.stop()
	}
	_ = s.file.Close() // it was only read
}

func packedKind(magic []byte) string {
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return "gzip"
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	case bytes.HasPrefix(magic, []byte("BZh")):
		return "bzip2"
	}
	return ""
}

// packed reads a compressed file forwards, from its beginning again where it
// must go further back than the line that was not whole at the end of the last
// read: else reading a long file would take the square of its length.
type packed struct {
	file *os.File
	kind string
	r    io.Reader // nil: not begun
	at   int64
	kept []byte // the bytes before at that are behind the last line end
	zstd *zstd.Decoder
}

func (p *packed) begin() error {
	p.stop()
	in := io.NewSectionReader(p.file, 0, 1<<62)
	var err error
	switch p.kind {
	case "gzip":
		p.r, err = gzip.NewReader(in)
	case "zstd":
		p.zstd, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(128<<20))
		p.r = p.zstd
	default:
		p.r = bzip2.NewReader(in)
	}
	if err != nil {
		p.stop()
		return fmt.Errorf("%w: %w", errIncomplete, err)
	}
	return nil
}

func (p *packed) stop() {
	if p.zstd != nil {
		p.zstd.Close()
	}
	p.r, p.zstd, p.at, p.kept = nil, nil, 0, p.kept[:0]
}

func (p *packed) readAt(b []byte, at int64) (int, error) {
	n := 0
	switch back := p.at - at; {
	case p.r == nil || back > int64(len(p.kept)):
		if err := p.begin(); err != nil {
			return 0, err
		}
	case back > 0:
		n = copy(b, p.kept[len(p.kept)-int(back):])
		if int64(n) < back {
			return n, nil // what is kept is longer than what was asked for
		}
	}
	if skip := at - p.at; skip > 0 {
		skipped, err := io.CopyN(io.Discard, p.r, skip)
		p.at += skipped
		if err != nil {
			return 0, p.broken(err)
		}
	}
	for n < len(b) {
		m, err := p.r.Read(b[n:])
		n, p.at = n+m, p.at+int64(m)
		if err != nil {
			p.keep(b[:n])
			return n, p.broken(err)
		}
	}
	p.keep(b)
	return n, nil
}

// keep keeps what of the bytes read last is behind their last line end.
func (p *packed) keep(b []byte) {
	p.kept = append(p.kept[:0], b[bytes.LastIndexByte(b, '\n')+1:]...)
}

// broken tells the end of the content from one of the file only. After the
// latter reading begins again: the file may have grown.
func (p *packed) broken(err error) error {
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	p.stop()
	return fmt.Errorf("%w: %w", errIncomplete, err)
}
