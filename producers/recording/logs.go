package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"penstock/infra/errorkind"
	"penstock/producers/accesslog"
	"penstock/schemas/event"
)

// logSource reads an access log: lines of which each is a row, a part of one, or
// holds several in JSON.
type logSource struct {
	lines lineReader
	log   *accesslog.Lines
	text  []byte   // the line in hand
	torn  [][]byte // beginnings of lines at the end of the file
	ended bool
	bad   fault
}

// newLog tells the log's format from what is buffered of it, unless it is named.
func newLog(in *input, o *Options, note func(string)) (*logSource, error) {
	choice := o.Log
	choice.Sample = sample(in)
	log, chosen, err := accesslog.OpenLines(choice, o.AccessLog)
	if err != nil {
		return nil, errorkind.Errorf(ErrOption, "%s: %w", in.name, err)
	}
	if chosen.Lines > 0 {
		note(chosen.String())
	}
	return &logSource{lines: lineReader{in: in.in}, log: log}, nil
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
		var err error
		if s.log.More() {
			err = s.log.Next(r)
		} else {
			err = s.parse(r)
		}
		if err == nil {
			return nil
		}
		if errors.Is(err, accesslog.ErrHeader) || errors.Is(err, accesslog.ErrPart) {
			continue
		}
		var e *accesslog.LineError
		if errors.As(err, &e) {
			return s.fault(e)
		}
		return err
	}
}

// parse reads the next line.
func (s *logSource) parse(r *event.Request) error {
	if s.ended {
		return s.atEnd()
	}
	text, long, err := s.lines.next()
	if errors.Is(err, io.EOF) {
		s.ended, s.torn = true, s.log.Rest()
		return s.atEnd()
	}
	if err != nil {
		return err
	}
	s.text = text
	if long {
		return &accesslog.LineError{Field: "line", Got: "a longer line", Expected: fmt.Sprintf("at most %d bytes", maxLine)}
	}
	return s.log.Parse(text, r)
}

// atEnd tells of the lines whose rest never came, and then of the end.
func (s *logSource) atEnd() error {
	if len(s.torn) == 0 {
		return io.EOF
	}
	s.text, s.torn = s.torn[0], s.torn[1:]
	return &accesslog.LineError{Field: "line", Got: string(clip(s.text, maxGot)), Expected: "the parts behind it"}
}

func (s *logSource) fault(e *accesslog.LineError) error {
	s.bad = fault{line: s.lines.line, column: e.Column, field: e.Field, got: e.Got, expected: e.Expected, raw: s.text}
	return &s.bad
}

// ExplainLog says for the first lines of an access log what became of each field.
// tell gets their numbers; blank lines are left out. The choice of the format and
// the errors are as of Open.
func ExplainLog(name string, o Options, lines int, tell func(line int64, text []byte, records []accesslog.Explanation)) (accesslog.Choice, error) {
	in, err := openInput(name)
	if err != nil {
		return accesslog.Choice{}, err
	}
	in.skipBOM()
	choice := o.Log
	choice.Sample = sample(in)
	log, chosen, err := accesslog.OpenLines(choice, o.AccessLog)
	if err != nil {
		return chosen, errors.Join(errorkind.Errorf(ErrOption, "%s: %w", name, err), in.close())
	}
	reader := lineReader{in: in.in}
	for range lines {
		text, _, err := reader.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return chosen, errors.Join(damaged(name, reader.line, err), in.close())
		}
		tell(reader.line, text, log.Explain(text))
	}
	return chosen, in.close()
}
