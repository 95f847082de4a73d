package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"penstock/infra/errorkind"
	"penstock/schemas/event"
	"penstock/schemas/scalar"
)

// csvSource reads RFC 4180 with a header row; fields are separated by what the
// header row's are: commas, or else tabs or semicolons. A quoted field may hold line
// ends. One that is never closed costs its own line only: the lines behind it
// are read again as records of their own.
type csvSource struct {
	lines   lineReader
	strings *interner
	comma   byte     // separates fields
	columns []column // of each field

	held   []heldLine // lines that were taken for part of a quoted field
	record []byte     // the record's lines, joined
	at     int64      // line of the record
	fields [][]byte
	quoted []byte // scratch for fields with doubled quotes
	bad    fault
}

type heldLine struct {
	text []byte
	line int64
	long bool
}

func newCSV(in *input, t *interner, note func(string)) (*csvSource, error) {
	head, _ := in.in.Peek(inputBuffer) // short at the end of the file
	s := &csvSource{lines: lineReader{in: in.in}, strings: t, comma: separatorOf(head)}
	err := s.read()
	if errors.Is(err, io.EOF) {
		return s, nil
	}
	var f *fault
	if errors.As(err, &f) {
		return nil, errorkind.Errorf(ErrNothingParses, "%s line %d: header row: got %.80q, expected %s", in.name, f.line, f.got, f.expected)
	}
	if err != nil {
		return nil, damaged(in.name, 0, err)
	}
	var unknown []string
	seen := uint32(0)
	for _, f := range s.fields {
		c, ok := columnOfHeader(f)
		if !ok {
			c = noColumn
			unknown = append(unknown, string(clip(f, maxGot)))
		} else if seen&(1<<c) != 0 {
			return nil, errorkind.Errorf(ErrNothingParses, "%s line %d: column %s is named twice", in.name, s.at, c)
		} else {
			seen |= 1 << c
		}
		s.columns = append(s.columns, c)
	}
	if f := missingColumn(seen); f != nil {
		return nil, errorkind.Errorf(ErrNothingParses, "%s line %d: header row has no column %s", in.name, s.at, f.field)
	}
	noteUnknown(note, unknown)
	return s, nil
}

func (s *csvSource) next(r *event.Request) error {
	if err := s.read(); err != nil {
		return err
	}
	if len(s.fields) != len(s.columns) {
		return s.fault(0, "record", fmt.Sprintf("%d fields", len(s.fields)), fmt.Sprintf("%d fields", len(s.columns)))
	}
	*r = event.NewRequest(0)
	seen := uint32(0)
	for i, b := range s.fields {
		c := s.columns[i]
		if c == noColumn || scalar.IsMissing(b) {
			continue
		}
		if !setText(r, c, b, s.strings) {
			return s.fault(0, c.String(), string(clip(b, maxGot)), columnExpected[c])
		}
		seen |= 1 << c
	}
	if seen&requiredMask != requiredMask {
		f := missingColumn(seen)
		return s.fault(0, f.field, "", f.expected)
	}
	return nil
}

func (s *csvSource) line() int64  { return s.at }
func (s *csvSource) blank() int64 { return s.lines.blank }
func (s *csvSource) close() error { return nil }

func (s *csvSource) raw() []byte { return s.record }

func (s *csvSource) fault(column int, field, got, expected string) error {
	s.bad = fault{line: s.at, column: column, field: field, got: got, expected: expected, raw: s.record}
	return &s.bad
}

// read reads the next record into fields.
func (s *csvSource) read() error {
	text, line, long, err := s.nextLine(false)
	if err != nil {
		return err
	}
	s.at = line
	s.record = append(s.record[:0], text...)
	if long {
		return s.fault(0, "line", "a longer line", fmt.Sprintf("at most %d bytes", maxLine))
	}
	end := len(s.record)
	q := quotes{comma: s.comma}
	q.scan(s.record, 0)
	var more []heldLine
	for q.state == inQuotes {
		text, line, long, err := s.nextLine(true)
		if err == nil && (long || len(s.record)+1+len(text) > maxLine) {
			more = append(more, heldLine{bytes.Clone(text), line, long})
		}
		if err != nil || long || len(s.record)+1+len(text) > maxLine {
			// A file's own error comes again when it is read further.
			s.hold(more)
			opened := min(q.opened, end)
			s.record = s.record[:end]
			return s.fault(opened+1, "record", string(clip(s.record[opened:], maxGot)),
				fmt.Sprintf("a closing quote within %d bytes", maxLine))
		}
		more = append(more, heldLine{bytes.Clone(text), line, false})
		s.record = append(append(s.record, '\n'), text...)
		q.scan(s.record, len(s.record)-len(text))
	}
	if q.state == badQuote {
		s.hold(more)
		s.record = s.record[:end]
		return s.fault(0, "record", string(clip(s.record, maxGot)),
			"double quotes around a whole field and doubled within it")
	}
	s.split()
	return nil
}

// nextLine returns the next line, blank ones only within a quoted field.
func (s *csvSource) nextLine(quoted bool) ([]byte, int64, bool, error) {
	for len(s.held) > 0 {
		h := s.held[0]
		s.held = s.held[1:]
		if quoted || len(h.text) > 0 {
			return h.text, h.line, h.long, nil
		}
		s.lines.blank++
	}
	read := s.lines.next
	if quoted {
		read = s.lines.any
	}
	text, long, err := read()
	return text, s.lines.line, long, err
}

func (s *csvSource) hold(lines []heldLine) {
	s.held = append(lines, s.held...)
}

// quotes follows the double quotes of a record over its lines.
type quotes struct {
	comma  byte
	state  quoteState
	opened int // where in the record the last quoted field begins
}

type quoteState uint8

const (
	fieldStart quoteState = iota
	inBare
	inQuotes
	afterQuote
	badQuote
)

// scan goes on with the line of the record that begins at from.
func (q *quotes) scan(record []byte, from int) {
	// Most lines have no quotes at all.
	if q.state == fieldStart && bytes.IndexByte(record[from:], '"') < 0 {
		return
	}
	for i, c := range record[from:] {
		switch q.state {
		case fieldStart:
			switch c {
			case '"':
				q.state, q.opened = inQuotes, from+i
			case q.comma:
			default:
				q.state = inBare
			}
		case inBare:
			switch c {
			case q.comma:
				q.state = fieldStart
			case '"':
				q.state = badQuote
				return
			}
		case inQuotes:
			if c == '"' {
				q.state = afterQuote
			}
		case afterQuote:
			switch c {
			case '"':
				q.state = inQuotes
			case q.comma:
				q.state = fieldStart
			default:
				q.state = badQuote
				return
			}
		}
	}
}

// split cuts the record, whose quotes are known to be right, into fields.
func (s *csvSource) split() {
	s.fields, s.quoted = s.fields[:0], s.quoted[:0]
	// The scratch holds no more than the record: it never moves while fields
	// point into it.
	if cap(s.quoted) < len(s.record) {
		s.quoted = make([]byte, 0, len(s.record))
	}
	b := s.record
	for {
		if len(b) > 0 && b[0] == '"' {
			from := len(s.quoted)
			b = b[1:]
			for {
				n := bytes.IndexByte(b, '"')
				s.quoted = append(s.quoted, b[:n]...)
				b = b[n+1:]
				if len(b) == 0 || b[0] != '"' {
					break
				}
				s.quoted = append(s.quoted, '"')
				b = b[1:]
			}
			s.fields = append(s.fields, s.quoted[from:])
		} else {
			n := bytes.IndexByte(b, s.comma)
			if n < 0 {
				n = len(b)
			}
			s.fields = append(s.fields, b[:n])
			b = b[n:]
		}
		if len(b) == 0 {
			return
		}
		b = b[1:] // the separator
		if len(b) == 0 {
			s.fields = append(s.fields, b)
			return
		}
	}
}
