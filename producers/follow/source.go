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
// must go back.
type packed struct {
	file *os.File
	kind string
	r    io.Reader // nil: not begun
	at   int64
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
	p.r, p.zstd, p.at = nil, nil, 0
}

func (p *packed) readAt(b []byte, at int64) (int, error) {
	if p.r == nil || at < p.at {
		if err := p.begin(); err != nil {
			return 0, err
		}
	}
	if skip := at - p.at; skip > 0 {
		n, err := io.CopyN(io.Discard, p.r, skip)
		p.at += n
		if err != nil {
			return 0, p.broken(err)
		}
	}
	n := 0
	for n < len(b) {
		m, err := p.r.Read(b[n:])
		n, p.at = n+m, p.at+int64(m)
		if err != nil {
			return n, p.broken(err)
		}
	}
	return n, nil
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
