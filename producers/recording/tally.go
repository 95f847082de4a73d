package recording

import "penstock/infra/errorkind"

// hopeless is how many bad lines without a good one end a file.
const hopeless = 100

// tally counts the lines of a file and tells of the bad ones.
type tally struct {
	name      string
	tell      func(BadLine) // nil: nobody is told
	rows, bad int64
	first     BadLine // the first bad line, for ErrNothingParses
}

// report hands a bad line on. It fails when the file is hopeless.
func (t *tally) report(b *fault) error {
	line := BadLine{
		File: t.name, Line: b.line, Column: b.column, Field: b.field,
		Got: clip(b.got, maxGot), Expected: b.expected, Raw: clip(b.raw, maxRaw),
	}
	if t.bad == 0 {
		t.first = line
		t.first.Raw = nil
	}
	t.bad++
	if t.tell != nil {
		t.tell(line)
	}
	if t.rows == 0 && t.bad >= hopeless {
		return t.nothing()
	}
	return nil
}

// end fails if the file has ended and no line was of use.
func (t *tally) end() error {
	if t.rows == 0 && t.bad > 0 {
		return t.nothing()
	}
	return nil
}

func (t *tally) nothing() error {
	return errorkind.Errorf(ErrNothingParses, "%s: none of the first %d lines can be read; %s", t.name, t.bad, t.first.Error())
}
