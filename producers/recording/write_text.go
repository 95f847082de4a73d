package recording

import (
	"bufio"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"penstock/infra/errorkind"
	"penstock/schemas/event"
)

// appendColumn appends the text of a column, nothing if it is absent.
func appendColumn(b []byte, r *event.Request, c column) []byte {
	if c >= firstText {
		return append(b, *textOf(r, c)...)
	}
	switch c {
	case colTime:
		return time.UnixMicro(r.Time).UTC().AppendFormat(b, time.RFC3339Nano)
	case colOp:
		return append(b, r.Op.String()...)
	case colLat, colLon:
		if !r.HasPlace() {
			return b
		}
		v := r.Lat
		if c == colLon {
			v = r.Lon
		}
		return strconv.AppendFloat(b, float64(v), 'g', -1, 32)
	case colTrace:
		if r.Trace == [16]byte{} {
			return b
		}
		return hex.AppendEncode(b, r.Trace[:])
	}
	v := intOf(r, c)
	if v == absentInt(c) && c != colMark && c != colBytes {
		return b
	}
	return strconv.AppendInt(b, v, 10)
}

// checkText refuses texts that would be read back as missing.
func checkText(r *event.Request) error {
	for c := firstText; c < numColumns; c++ {
		if s := *textOf(r, c); s == "-" || s == "null" {
			return errorkind.Errorf(ErrUnwritable, "column %s: %q would be read as missing", c, s)
		}
	}
	return nil
}

type csvEncoder struct {
	out  *bufio.Writer
	line []byte
}

func newCSVEncoder(out *bufio.Writer) *csvEncoder {
	e := &csvEncoder{out: out}
	e.line = append(e.line, strings.Join(columnNames[:], ",")...)
	e.line = append(e.line, '\n')
	return e
}

func (e *csvEncoder) write(r *event.Request) error {
	if err := checkText(r); err != nil {
		return err
	}
	for c := firstText; c < numColumns; c++ {
		if strings.Contains(*textOf(r, c)+"\n", "\r\n") {
			return errorkind.Errorf(ErrUnwritable, "column %s: CSV cannot hold a carriage return at the end of a line", c)
		}
	}
	for c := range numColumns {
		if c > 0 {
			e.line = append(e.line, ',')
		}
		from := len(e.line)
		e.line = appendColumn(e.line, r, c)
		if c >= firstText && strings.ContainsAny(string(e.line[from:]), ",\"\r\n") {
			text := string(e.line[from:])
			e.line = append(e.line[:from], '"')
			e.line = append(e.line, strings.ReplaceAll(text, `"`, `""`)...)
			e.line = append(e.line, '"')
		}
	}
	e.line = append(e.line, '\n')
	return e.flush()
}

// flush writes the line; the header row comes with the first.
func (e *csvEncoder) flush() error {
	_, err := e.out.Write(e.line)
	e.line = e.line[:0]
	return err
}

func (e *csvEncoder) finish() error {
	if err := e.flush(); err != nil {
		return err
	}
	return e.out.Flush()
}

type jsonEncoder struct {
	out  *bufio.Writer
	line []byte
}

func (e *jsonEncoder) write(r *event.Request) error {
	if err := checkText(r); err != nil {
		return err
	}
	b := append(e.line[:0], '{')
	for c := range numColumns {
		begin := len(b)
		if c > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, columnNames[c]...)
		b = append(b, '"', ':')
		value := len(b)
		switch {
		case c >= firstText:
			if *textOf(r, c) != "" {
				b = appendJSON(b, *textOf(r, c))
			}
		case c == colTime || c == colOp || c == colTrace:
			if b = appendColumn(append(b, '"'), r, c); len(b) > value+1 {
				b = append(b, '"')
			} else {
				b = b[:value]
			}
		default:
			b = appendColumn(b, r, c)
		}
		if len(b) == value {
			b = b[:begin] // absent
		}
	}
	e.line = append(b, '}', '\n')
	_, err := e.out.Write(e.line)
	return err
}

func (e *jsonEncoder) finish() error { return e.out.Flush() }

// appendJSON appends s, which is valid UTF-8, as a JSON string.
func appendJSON(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
