package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"penstock/producers/accesslog"
	"penstock/schemas/event"
)

// logSource reads an access log: lines, out of what a container runtime or
// syslog put around them, of which each is a row, or holds several in JSON.
type logSource struct {
	lines  lineReader
	unwrap *accesslog.Unwrapper
	parser *accesslog.Parser
	text   []byte   // the record in hand
	rest   []byte   // of its line, behind it
	torn   [][]byte // beginnings of lines at the end of the file
	ended  bool
	bad    fault
}

// newLog tells the log's format from what is buffered of it, unless it is named.
func newLog(in *input, o *Options, note func(string)) (*logSource, error) {
	choice := o.Log
	choice.Sample = sample(in)
	parser, chosen, err := accesslog.Open(choice, o.AccessLog)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", in.name, err, ErrOption)
	}
	if chosen.Lines > 0 {
		note(chosen.String())
	}
	return &logSource{lines: lineReader{in: in.in}, parser: parser, unwrap: accesslog.NewUnwrapper(chosen.Wrapping)}, nil
}

// sample is what is buffered of a file's beginning.
func sample(in *input) []byte {
	b, _ := in.in.Peek(inputBuffer) // short at the end of the file
	return bytes.TrimPrefix(b, bom)
}

func (s *logSource) line() int64  { return s.lines.line }
func (s *logSource) blank() int64 { return s.lines.blank }
func (s *logSource) close() error { return nil }
func (s *logSource) raw() []byte  { return s.text }

func (s *logSource) next(r *event.Request) error {
	for {
		if len(s.rest) == 0 {
			if err := s.read(); err != nil {
				return err
			}
			continue
		}
		s.text, s.rest = s.parser.Cut(s.rest)
		err := s.parser.Parse(s.text, r)
		if errors.Is(err, accesslog.ErrHeader) {
			continue
		}
		return s.fault(err)
	}
}

// read puts the next line into rest; nothing where it was only a part of one.
func (s *logSource) read() error {
	if s.ended {
		return s.atEnd()
	}
	text, long, err := s.lines.next()
	if errors.Is(err, io.EOF) {
		s.ended, s.torn = true, s.unwrap.Rest()
		return s.atEnd()
	}
	if err != nil {
		return err
	}
	s.text = text
	if long {
		return s.wrong(&accesslog.LineError{Field: "line", Got: "a longer line", Expected: fmt.Sprintf("at most %d bytes", maxLine)})
	}
	inner, whole, err := s.unwrap.Unwrap(text)
	if errors.Is(err, accesslog.ErrTooLong) {
		return s.wrong(&accesslog.LineError{Field: "line", Got: "a longer line", Expected: fmt.Sprintf("at most %d bytes in all its parts", accesslog.MaxLine)})
	}
	if err != nil {
		return s.fault(err)
	}
	if whole && len(inner) == 0 {
		s.lines.blank++
	}
	if whole {
		s.rest = inner
	}
	return nil
}

// atEnd tells of the lines whose rest never came, and then of the end.
func (s *logSource) atEnd() error {
	if len(s.torn) == 0 {
		return io.EOF
	}
	s.text, s.torn = s.torn[0], s.torn[1:]
	return s.wrong(&accesslog.LineError{Field: "line", Got: string(clip(s.text, maxGot)), Expected: "the parts behind it"})
}

// fault makes one of what the parser found.
func (s *logSource) fault(err error) error {
	if err == nil {
		return nil
	}
	var e *accesslog.LineError
	if !errors.As(err, &e) {
		return err
	}
	return s.wrong(e)
}

func (s *logSource) wrong(e *accesslog.LineError) error {
	s.bad = fault{line: s.lines.line, column: e.Column, field: e.Field, got: e.Got, expected: e.Expected, raw: s.text}
	return &s.bad
}
