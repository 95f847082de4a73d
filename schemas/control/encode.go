package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Encode returns the canonical JSON of a message of this package, without a
// newline at the end: fields in the order of the structs, map keys sorted,
// times in UTC, empty lists as [] where a list is always there, no HTML
// escapes. Two equal messages have equal bytes. The error wraps ErrUnencodable.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(canonical(v)); err != nil {
		return nil, fmt.Errorf("encode %T: %w: %w", v, ErrUnencodable, err)
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if rest, ok := afterReplaced(out); ok {
		return nil, fmt.Errorf("encode %T: text that is not UTF-8 before %.40q: %w", v, rest, ErrUnencodable)
	}
	return out, nil
}

// afterReplaced returns what follows the first byte that was no UTF-8, which
// encoding/json spells as an escaped replacement character: by that, two owners
// could become one. A replacement character that was there before is not
// escaped.
func afterReplaced(b []byte) ([]byte, bool) {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return nil, false
		}
		if rest, ok := bytes.CutPrefix(b[i:], []byte(`\ufffd`)); ok {
			return rest, true
		}
		b = b[i+2:]
	}
}

// canonical returns the message with its times in UTC and its lists not nil.
func canonical(v any) any {
	switch m := v.(type) {
	case Decision:
		return m.canonical()
	case *Decision:
		if m != nil {
			return m.canonical()
		}
	case Command:
		return m.canonical()
	case *Command:
		if m != nil {
			return m.canonical()
		}
	case Outcome:
		m.At = utc(m.At)
		return m
	case *Outcome:
		if m != nil {
			return canonical(*m)
		}
	case Location:
		m.Since = utc(m.Since)
		return m
	case *Location:
		if m != nil {
			return canonical(*m)
		}
	case SplitAnswer:
		return m.canonical()
	case *SplitAnswer:
		if m != nil {
			return m.canonical()
		}
	case Switch:
		m.At, m.After = utc(m.At), utcOf(m.After)
		return m
	case *Switch:
		if m != nil {
			return canonical(*m)
		}
	}
	return v
}

func (d Decision) canonical() Decision {
	d.Window = d.Window.canonical()
	d.Operator.Rollback = utcOf(d.Operator.Rollback)
	if d.Reasons == nil {
		d.Reasons = []Reason{}
	}
	if d.Commands == nil {
		d.Commands = []CommandRef{}
	}
	return d
}

func (c Command) canonical() Command {
	c.Window = c.Window.canonical()
	if c.Placement != nil && c.Placement.Moves == nil {
		c.Placement = &Moves{Moves: []Move{}}
	}
	if c.Split != nil {
		c.Split = c.Split.canonical()
	}
	if c.Servers != nil {
		c.Servers = c.Servers.canonical()
	}
	if c.Coding != nil {
		c.Coding = c.Coding.canonical()
	}
	return c
}

func (w Window) canonical() Window { return Window{Start: utc(w.Start), End: utc(w.End)} }

// utc returns t in UTC without a monotonic reading.
func utc(t time.Time) time.Time { return t.UTC().Round(0) }

func utcOf(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := utc(*t)
	return &u
}

// decode reads JSON; text that is not UTF-8 is refused, for it would be
// replaced, and two owners could become one.
func decode(body []byte, what string, v any) error {
	if !utf8.Valid(body) {
		return fmt.Errorf("%s: not UTF-8: %w", what, ErrUndecodable)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrUndecodable, err)
	}
	return nil
}
