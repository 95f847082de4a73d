package spanfile

import (
	"bufio"
	"errors"
	"io"
)

// maxDocument bounds a JSON document; a longer one is malformed.
const maxDocument = 256 << 20

// documents cuts JSON into objects. Arrays around them are opened: what they hold
// are documents, too.
//
// If the first object ends on the line where it began, and the next begins on
// another one, objects stand on lines: one that is not complete at the end of its
// line is cut there. Otherwise objects go over lines, and only the end of the file
// cuts one.
type documents struct {
	in    *bufio.Reader
	buf   []byte
	line  int64 // at which the object that next returned begins
	now   int64 // line of the next byte
	lines bool  // objects stand on lines
	any   bool  // one has been read whole
}

// How a document ended, if not well.
var (
	errCut     = errors.New("a whole JSON object")
	errLong    = errors.New("a JSON object of at most 256 MB")
	errForeign = errors.New("a JSON object")
)

func newDocuments(in *bufio.Reader) *documents { return &documents{in: in, now: 1} }

// next returns the next object, valid until the next call, or what stands in its
// place with one of the three errors above. Other errors are io.EOF and the
// file's.
func (d *documents) next() ([]byte, error) {
	for {
		c, err := d.in.ReadByte()
		if err != nil {
			return nil, err
		}
		switch c {
		case '\n':
			d.now++
		case ' ', '\t', '\r', ',', '[', ']', 0x1e: // and the separator of JSON text sequences
		case '{':
			d.line, d.buf = d.now, append(d.buf[:0], c)
			return d.object()
		default:
			d.line, d.buf = d.now, append(d.buf[:0], c)
			return d.foreign()
		}
	}
}

// foreign reads to the end of the line, or to what may be an object.
func (d *documents) foreign() ([]byte, error) {
	for {
		c, err := d.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return d.buf, errForeign
		}
		if err != nil {
			return nil, err
		}
		if c == '\n' {
			d.now++
			return d.buf, errForeign
		}
		if len(d.buf) < buffer {
			d.buf = append(d.buf, c)
		}
	}
}

// object reads on behind an opening brace up to the closing one.
func (d *documents) object() ([]byte, error) {
	depth, quoted, escaped, long := 1, false, false, false
	for {
		if _, err := d.in.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				return d.buf, errCut
			}
			return nil, err
		}
		chunk, _ := d.in.Peek(d.in.Buffered()) // what is buffered is there
		n, cut := 0, false
		for n < len(chunk) && depth > 0 && !cut {
			c := chunk[n]
			n++
			switch {
			case c == '\n':
				d.now++
				// A text has no line end in it.
				cut = quoted || d.lines
				escaped = false
			case escaped:
				escaped = false
			case quoted:
				escaped, quoted = c == '\\', c != '"'
			case c == '"':
				quoted = true
			case c == '{', c == '[':
				depth++
			case c == '}', c == ']':
				depth--
			}
		}
		if long = long || len(d.buf)+n > maxDocument; !long {
			d.buf = append(d.buf, chunk[:n]...)
		}
		_, _ = d.in.Discard(n) // what was peeked can be discarded
		switch {
		case long && (cut || depth == 0):
			return d.buf, errLong
		case cut:
			return d.buf, errCut
		case depth == 0:
			d.whole()
			return d.buf, nil
		}
	}
}

// whole learns from the first object whether objects stand on lines.
func (d *documents) whole() {
	if d.any {
		return
	}
	d.any = true
	if d.line != d.now {
		return
	}
	// A list on one line may have its next line after the comma, so the object
	// must be all that is left of its own.
	_, _ = d.in.Peek(1) // or the end, which is not a line's
	rest, _ := d.in.Peek(min(d.in.Buffered(), 64))
	for _, c := range rest {
		switch c {
		case '\n':
			d.lines = true
			return
		case ' ', '\t', '\r':
		default:
			return
		}
	}
}

// each calls f for each object of the file; what is none is bad.
func (r *reader) each(in *bufio.Reader, f func(line int64, raw []byte) error) error {
	d := newDocuments(in)
	for n := 0; ; n++ {
		if n%64 == 0 {
			if err := r.stopped(); err != nil {
				return err
			}
		}
		raw, err := d.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errCut), errors.Is(err, errLong), errors.Is(err, errForeign):
			r.bad(d.line, raw, err)
		case err != nil:
			return broken(err)
		default:
			if err := f(d.line, raw); err != nil {
				r.bad(d.line, raw, err)
			}
		}
	}
}
