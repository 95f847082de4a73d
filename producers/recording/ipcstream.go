package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"penstock/infra/errorkind"
	"penstock/schemas/columnar"
)

const (
	// maxMeta is the longest metadata of an IPC message that is read.
	maxMeta = 64 << 20
	// maxBuffer is what one compressed buffer of a message may unpack to.
	maxBuffer = 1 << 30
	ipcMarker = 0xffffffff
)

// ipcStream passes an Arrow stream on, a message at a time, once the message
// is all there and what it says of itself has been checked: Arrow's reader
// takes memory for whatever length it is told.
//
// An IPC file is a stream between its magic and its footer. It is read as one,
// up to the mark of the stream's end or the footer, so that a packed file needs
// no unpacking. Files and streams of before Arrow 0.15 are not read.
type ipcStream struct {
	in    io.Reader
	file  bool
	now   bytes.Buffer // the message that is being passed on
	ended bool         // the mark of the end was there
	err   error
}

// newIPCStream steps over the magic of a file.
func newIPCStream(in io.Reader, file bool) (*ipcStream, error) {
	if file {
		// The magic is filled up to eight bytes.
		if _, err := io.CopyN(io.Discard, in, 8); err != nil {
			return nil, err
		}
	}
	return &ipcStream{in: in, file: file}, nil
}

// Read implements io.Reader.
func (s *ipcStream) Read(p []byte) (int, error) {
	for s.now.Len() == 0 {
		if s.err != nil {
			return 0, s.err
		}
		if s.err = s.load(); s.err != nil {
			s.now.Reset() // nothing of a message that is refused
		}
	}
	return s.now.Read(p)
}

// load reads the next message; io.EOF behind the last.
func (s *ipcStream) load() error {
	s.now.Reset()
	n, err := s.number()
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	marked := n == ipcMarker
	if err == nil && marked {
		n, err = s.number()
	}
	if err != nil {
		return truncated(err)
	}
	// Not all writers of files mark the end. What then comes is the footer.
	if n == 0 || s.file && !marked {
		s.ended = true
		return io.EOF
	}
	if !marked {
		return errorkind.Errorf(ErrDamaged, "message without marker")
	}
	if n > maxMeta {
		return errorkind.Errorf(ErrDamaged, "message of %d bytes of metadata, expected at most %d", n, maxMeta)
	}
	from := s.now.Len()
	if err := s.take(int64(n)); err != nil {
		return err
	}
	size, err := columnar.Check(s.now.Bytes()[from:])
	if err != nil {
		return err
	}
	body := s.now.Len()
	if err := s.take(size); err != nil {
		return err
	}
	all := s.now.Bytes()
	return columnar.CheckBody(all[from:body], all[body:], maxBuffer)
}

func (s *ipcStream) number() (uint32, error) {
	var b [4]byte
	if _, err := io.ReadFull(s.in, b[:]); err != nil {
		return 0, err
	}
	s.now.Write(b[:])
	return binary.LittleEndian.Uint32(b[:]), nil
}

// take reads n bytes, in pieces: memory grows with what is there, not with
// what was promised.
func (s *ipcStream) take(n int64) error {
	_, err := io.CopyN(&s.now, s.in, n)
	return truncated(err)
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
