package recording

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is the longest line, or object, that is read.
const maxLine = 1 << 20

// lineReader cuts a file into lines and keeps at most maxLine bytes of one.
type lineReader struct {
	in    *bufio.Reader
	buf   []byte
	line  int64 // number of the line that next returned
	blank int64
}

// next returns the next line that isn't blank, without its end; it is valid
// until the next call. long says that it had more than maxLine bytes, of which
// the first are returned. The error is io.EOF, or the file's; of a line that
// breaks off in the middle with the file's error nothing is returned.
func (l *lineReader) next() (line []byte, long bool, err error) {
	for {
		line, long, err = l.any()
		if err != nil || len(line) > 0 {
			return line, long, err
		}
		l.blank++
	}
}

// any is next without passing over blank lines.
func (l *lineReader) any() (line []byte, long bool, err error) {
	line, long, err = l.read()
	if err != nil {
		return nil, false, err
	}
	l.line++
	return bytes.TrimSuffix(line, []byte{'\r'}), long, nil
}

func (l *lineReader) read() (line []byte, long bool, err error) {
	part, err := l.in.ReadSlice('\n')
	if err == nil {
		return part[:len(part)-1], false, nil
	}
	l.buf = l.buf[:0]
	for {
		if room := maxLine - len(l.buf); len(part) > room {
			end := errEnd(part, err)
			if len(part)-end > room {
				long = true
			}
			part = part[:min(len(part), room)]
		}
		l.buf = append(l.buf, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(l.buf, []byte{'\n'}), long, nil
		case errors.Is(err, io.EOF):
			if len(l.buf) == 0 {
				return nil, false, io.EOF
			}
			return l.buf, long, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
		part, err = l.in.ReadSlice('\n')
	}
}

// errEnd is the length of the line end in part.
func errEnd(part []byte, err error) int {
	if err == nil && len(part) > 0 {
		return 1
	}
	return 0
}
