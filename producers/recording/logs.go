package recording

import (
	"errors"
	"fmt"

	"penstock/producers/accesslog"
	"penstock/schemas/event"
)

// logSource reads an access log.
type logSource struct {
	lines  lineReader
	parser *accesslog.Parser
	text   []byte
	bad    fault
}

// newLog tells the log's format from what is buffered of it.
func newLog(in *input, o accesslog.Options) (*logSource, error) {
	sample, _ := in.in.Peek(inputBuffer) // short at the end of the file
	parser, err := accesslog.NewParser(accesslog.Detect(sample), o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", in.name, err, ErrOption)
	}
	return &logSource{lines: lineReader{in: in.in}, parser: parser}, nil
}

func (s *logSource) line() int64  { return s.lines.line }
func (s *logSource) blank() int64 { return s.lines.blank }
func (s *logSource) close() error { return nil }
func (s *logSource) raw() []byte  { return s.text }

func (s *logSource) next(r *event.Request) error {
	text, long, err := s.lines.next()
	if err != nil {
		return err
	}
	s.text = text
	if long {
		s.bad = fault{field: "line", got: "a longer line", expected: fmt.Sprintf("at most %d bytes", maxLine)}
	} else if err := s.parser.Parse(text, r); err == nil {
		return nil
	} else {
		var e *accesslog.LineError
		if !errors.As(err, &e) {
			return err
		}
		s.bad = fault{column: e.Column, field: e.Field, got: e.Got, expected: e.Expected}
	}
	s.bad.line, s.bad.raw = s.lines.line, text
	return &s.bad
}
