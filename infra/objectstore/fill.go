package objectstore

import "io"

// Fill reads until buf is full or r has ended, which whole says. io.ReadFull would
// not do where content is taken in: it can't tell the end from the
// io.ErrUnexpectedEOF of a reader that was cut off, and the half object would be
// stored as a whole one.
func Fill(r io.Reader, buf []byte) (n int, whole bool, err error) {
	const idle = 100 // as bufio
	for empty := 0; n < len(buf); {
		m, err := r.Read(buf[n:])
		n += m
		switch {
		case err == io.EOF: // only io.EOF itself is the end
			return n, true, nil
		case err != nil:
			return n, false, err
		case m > 0:
			empty = 0
		default:
			if empty++; empty > idle {
				return n, false, io.ErrNoProgress
			}
		}
	}
	return n, false, nil
}
