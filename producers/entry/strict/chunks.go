package strict

import "bytes"

// The places in a chunked body (RFC 9112 §7.1).
const (
	atSize       = iota // the first digit of a size
	inSize              // more digits, the extension or the line's end
	inExtension         //
	atSizeEnd           // the LF
	inData              //
	atDataCR            //
	atDataLF            //
	inTrailer           // a line of the trailer section, or the empty last
	atTrailerEnd        // the LF of a line
)

const (
	maxExtension = 256     // bytes of the extensions of one chunk
	maxTrailer   = 8 << 10 // bytes of a trailer section
	maxDigits    = 15      // of a size in hexadecimal: less than 2^60
)

// chunks follows a chunked body byte by byte.
type chunks struct {
	place     uint8
	size      int64 // left of the chunk
	count     int   // digits, bytes of the extension
	line      []byte
	trailers  int
	protected []string
}

func (c *chunks) reset() { *c = chunks{line: c.line[:0], protected: c.protected} }

// feed follows b and returns how many of its bytes belong to the body, whether
// they end it, and what is wrong with the byte after them.
func (c *chunks) feed(b []byte) (n int, done bool, r *Refusal) {
	for n < len(b) {
		if c.place == inData {
			m := min(int64(len(b)-n), c.size)
			n += int(m)
			if c.size -= m; c.size == 0 {
				c.place = atDataCR
			}
			continue
		}
		done, r = c.step(b[n])
		if r != nil {
			return n, false, r
		}
		n++
		if done {
			return n, true, nil
		}
	}
	return n, false, nil
}

func (c *chunks) step(b byte) (done bool, r *Refusal) {
	switch c.place {
	case atSize, inSize:
		return false, c.digit(b)
	case inExtension:
		if b == '\r' {
			c.place = atSizeEnd
		} else if c.count++; c.count > maxExtension || kinds[b]&valueChar == 0 {
			return false, RefusedChunk
		}
	case atSizeEnd:
		if b != '\n' {
			return false, RefusedChunk
		}
		if c.place = inData; c.size == 0 {
			c.place = inTrailer
		}
	case atDataCR:
		if b != '\r' {
			return false, RefusedChunk
		}
		c.place = atDataLF
	case atDataLF:
		if b != '\n' {
			return false, RefusedChunk
		}
		c.place = atSize
	case inTrailer, atTrailerEnd:
		return c.trailer(b)
	}
	return false, nil
}

func (c *chunks) digit(b byte) *Refusal {
	switch {
	case kinds[b]&hexChar != 0:
		if c.place == atSize {
			c.place, c.size, c.count = inSize, 0, 0
		}
		if c.count++; c.count > maxDigits {
			return RefusedChunk
		}
		d := b - '0'
		if b > '9' {
			d = (b | 0x20) - 'a' + 10
		}
		c.size = c.size<<4 | int64(d)
	case c.place == inSize && b == '\r':
		c.place = atSizeEnd
	case c.place == inSize && b == ';':
		c.place, c.count = inExtension, 0
	default:
		return RefusedChunk
	}
	return nil
}

func (c *chunks) trailer(b byte) (done bool, r *Refusal) {
	if c.trailers++; c.trailers > maxTrailer {
		return false, RefusedHeader
	}
	if c.place == inTrailer {
		if b == '\r' {
			c.place = atTrailerEnd
			return false, nil
		}
		if b == '\n' {
			return false, RefusedTrailer
		}
		c.line = append(c.line, b)
		return false, nil
	}
	if b != '\n' {
		return false, RefusedTrailer
	}
	if len(c.line) == 0 {
		return true, nil
	}
	if !isTrailer(c.line, c.protected) {
		return false, RefusedTrailer
	}
	c.place, c.line = inTrailer, c.line[:0]
	return false, nil
}

// isTrailer checks a line of a trailer section: no field that frames, routes or
// authenticates may come so late (RFC 9110 §6.5.1).
func isTrailer(line []byte, protected []string) bool {
	n := bytes.IndexByte(line, ':')
	if n <= 0 || !all(line[:n], tokenChar) || !all(line[n+1:], valueChar) {
		return false
	}
	name := line[:n]
	for _, p := range protected {
		if same(name, p) {
			return false
		}
	}
	return !same(name, "trailer") && !same(name, "connection") && !same(name, "upgrade") && !same(name, "te") &&
		(n < 9 || !same(name[:9], "penstock-"))
}
