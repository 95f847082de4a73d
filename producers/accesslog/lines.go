package accesslog

import (
	"errors"
	"fmt"
	"io"

	"penstock/schemas/event"
)

// ErrPart is returned by Lines.Parse for the part of a line whose rest is to
// come. It is no row, and nothing is wrong.
var ErrPart = errors.New("part of an access log line")

// Lines reads the lines of one log as they stand in its file: what a container
// runtime or syslog put around them is taken off, their parts are joined, and
// several records on one line are several rows. It is not safe for concurrent
// use.
type Lines struct {
	parser *Parser
	unwrap *Unwrapper
	record []byte
	rest   []byte
}

// OpenLines is Open for whole files: it returns what reads their lines.
func OpenLines(c ChoiceOptions, o Options) (*Lines, Choice, error) {
	p, choice, err := Open(c, o)
	if err != nil {
		return nil, Choice{}, err
	}
	return &Lines{parser: p, unwrap: NewUnwrapper(choice.Wrapping)}, choice, nil
}

// Parse fills r from the first record of a line without its end. The error is
// ErrPart, ErrHeader, or a *LineError; r is then of no use. Next gives the other
// records of the line, which must stay as it is until then.
func (l *Lines) Parse(line []byte, r *event.Request) error {
	l.record, l.rest = line, nil
	inner, whole, err := l.unwrap.Unwrap(line)
	switch {
	case errors.Is(err, ErrTooLong):
		return lineError("line", 1, line, fmt.Sprintf("at most %d bytes in all its parts", MaxLine))
	case err != nil:
		return err
	case !whole:
		return ErrPart
	case len(inner) == 0:
		return ErrHeader // a blank line within
	}
	l.rest = inner
	return l.Next(r)
}

// Next fills r from the next record of the line that Parse was given last. The
// error is io.EOF if there is none, or as of Parse.
func (l *Lines) Next(r *event.Request) error {
	if len(l.rest) == 0 {
		return io.EOF
	}
	l.record, l.rest = l.parser.Cut(l.rest)
	return l.parser.Parse(l.record, r)
}

// More reports whether Next has another record.
func (l *Lines) More() bool { return len(l.rest) > 0 }

// Record is what was parsed last, without what stood around it; valid as long as
// the line.
func (l *Lines) Record() []byte { return l.record }

// Held reports whether the beginning of a line is held: a position taken now
// would lose it.
func (l *Lines) Held() bool { return l.unwrap.Pending() }

// Rest returns the beginnings of lines whose rest never came, at the end of the
// log. Each is a line that is malformed.
func (l *Lines) Rest() [][]byte { return l.unwrap.Rest() }

// Explain says what became of each record of a line. Of a part, and of a line
// that isn't wrapped as the others are, it says so.
func (l *Lines) Explain(line []byte) []Explanation {
	inner, whole, err := l.unwrap.Unwrap(line)
	if err != nil {
		return []Explanation{{Fault: err}}
	}
	if !whole {
		return []Explanation{{Fault: ErrPart}}
	}
	var out []Explanation
	for len(inner) > 0 {
		var record []byte
		record, inner = l.parser.Cut(inner)
		out = append(out, l.parser.Explain(record))
	}
	return out
}
