package recording

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// objectReader cuts a stream into JSON objects. Objects stand on lines or
// directly behind each other; one doesn't go over a line end, so that a cut
// object costs its own line only.
type objectReader struct {
	in    *bufio.Reader
	buf   []byte
	lines int64 // line of the object that next returned
	ended bool  // the object's line has been read to its end
	blank int64
	fresh bool // nothing but blanks on this line so far
}

// end says how an object, or what stands in its place, ended.
type objectEnd uint8

const (
	wholeObject objectEnd = iota
	cutObject             // by the end of the line or of the file
	longObject            // over maxLine bytes
	noObject              // something else; its line is skipped
)

func newObjectReader(in *bufio.Reader) *objectReader {
	return &objectReader{in: in, lines: 1, fresh: true}
}

// next returns the next object, valid until the next call. The error is io.EOF
// or the file's; of an object that the file's error cuts nothing is returned.
func (o *objectReader) next() ([]byte, objectEnd, error) {
	c, err := o.skipBlank()
	if err != nil {
		return nil, 0, err
	}
	o.fresh = false
	o.buf = o.buf[:0]
	if c != '{' {
		return o.skipLine(c)
	}
	return o.object()
}

// skipBlank returns the first byte that is not white space.
func (o *objectReader) skipBlank() (byte, error) {
	if o.ended {
		o.lines++
		o.ended, o.fresh = false, true
	}
	for {
		c, err := o.in.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			if o.fresh {
				o.blank++
			}
			o.lines++
			o.fresh = true
		case ' ', '\t', '\r':
		default:
			return c, nil
		}
	}
}

// skipLine reads to the end of the line what is no object.
func (o *objectReader) skipLine(c byte) ([]byte, objectEnd, error) {
	o.buf = append(o.buf, c)
	for {
		part, err := o.in.ReadSlice('\n')
		o.keep(part)
		switch {
		case err == nil:
			o.ended = true
			return bytes.TrimRight(o.buf, "\r\n"), noObject, nil
		case errors.Is(err, io.EOF):
			return o.buf, noObject, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, 0, err
		}
	}
}

// keep appends to buf as far as there is room and reports whether there was.
func (o *objectReader) keep(part []byte) bool {
	room := maxLine - len(o.buf)
	o.buf = append(o.buf, clip(part, room)...)
	return len(part) <= room
}

// object reads on behind an opening brace up to the closing one.
func (o *objectReader) object() ([]byte, objectEnd, error) {
	o.buf = append(o.buf, '{')
	depth, quoted, escaped, long := 1, false, false, false
	for {
		if _, err := o.in.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				return o.buf, cutObject, nil
			}
			return nil, 0, err
		}
		chunk, _ := o.in.Peek(o.in.Buffered()) // what is buffered is there
		n := 0
		for n < len(chunk) && depth > 0 {
			c := chunk[n]
			if c == '\n' {
				break
			}
			n++
			switch {
			case escaped:
				escaped = false
			case quoted:
				switch c {
				case '\\':
					escaped = true
				case '"':
					quoted = false
				}
			case c == '"':
				quoted = true
			case c == '{', c == '[':
				depth++
			case c == '}', c == ']':
				depth--
			}
		}
		if !o.keep(chunk[:n]) {
			long = true
		}
		cut := depth > 0 && n < len(chunk)
		if cut {
			n++ // the line end
			o.ended = true
		}
		_, _ = o.in.Discard(n) // what was peeked can be discarded
		switch {
		case long && (cut || depth == 0):
			return o.buf, longObject, nil
		case cut:
			return bytes.TrimSuffix(o.buf, []byte{'\r'}), cutObject, nil
		case depth == 0:
			return o.buf, wholeObject, nil
		}
	}
}
