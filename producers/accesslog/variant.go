package accesslog

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/valyala/fastjson"

	"penstock/schemas/event"
)

// variant is one shape of a format as a parser uses it: its fields in hand, and
// its mapping bound to them.
type variant struct {
	format *Format
	bound  *bound // nil while a header is missing
	shape  *shape
	fields [][]byte
	checks []fieldCheck // of fields that hold more than text
	quiet  bool         // nobody asks what is wrong with a line

	json    fastjson.Parser
	root    *fastjson.Value // of the line in hand
	paths   []jsonPath
	numbers []byte // scratch for what JSON fields hold

	header    []byte // the line that named the fields
	separator byte
	quoted    []byte // scratch for fields with doubled quotes
}

// fieldCheck is a field whose content its kind restricts.
type fieldCheck struct {
	element *element
	slot    int
}

// errHeader is returned by cut for a line that holds no row.
var errHeader = &LineError{Field: "header"}

func newVariant(f *Format, s *shape) (*variant, error) {
	v := &variant{format: f, shape: s, separator: s.separator}
	if s.kind == shapeDelimited && s.names == nil {
		return v, nil
	}
	return v, v.bind(s.names)
}

// bind binds the mapping to fields of these names.
func (v *variant) bind(names []string) error {
	b, err := v.format.bind(v.shape, names)
	if err != nil {
		return err
	}
	v.bound = b
	v.fields = make([][]byte, max(len(b.names), len(names)))
	v.checks = nil
	if v.shape.text != nil {
		for i := range v.shape.text.elements {
			switch e := &v.shape.text.elements[i]; e.kind {
			case kindHost, kindIdent, kindLogin:
				v.checks = append(v.checks, fieldCheck{e, i})
			}
		}
	}
	if v.shape.kind == shapeJSON {
		v.paths = jsonPaths(b.names)
	}
	return nil
}

// cut finds the fields of a line. n of them were found before the fault.
func (v *variant) cut(line []byte) (n int, fault *LineError) {
	switch v.shape.kind {
	case shapeJSON:
		return v.cutJSON(line)
	case shapeDelimited:
		return v.cutDelimited(line)
	case shapeRegexp:
		return v.cutRegexp(line)
	}
	l := v.shape.text
	n, next := l.cut(line, v.fields)
	if next < 0 {
		return n, nil
	}
	if v.quiet {
		return n, errQuiet
	}
	return n, l.notMatched(line, n, next)
}

// errQuiet stands for the error of a line that another shape may fit: only if
// none does it is worth making.
var errQuiet = &LineError{Field: "line", Column: 1, Expected: "another shape"}

// cutRegexp is the last resort: any regular expression, at its price.
func (v *variant) cutRegexp(line []byte) (int, *LineError) {
	at := v.shape.rule.FindSubmatchIndex(line)
	if at == nil {
		return 0, lineError("line", 1, line, fmt.Sprintf("a match of %.100s", v.shape.rule))
	}
	for i := range v.fields {
		v.fields[i] = nil
		if from := at[2*i+2]; from >= 0 {
			v.fields[i] = line[from:at[2*i+3]]
		}
	}
	return len(v.fields), nil
}

// excluded returns why a line is not of the shape although its form is.
func (v *variant) excluded(line []byte) *LineError {
	for i, slot := range v.bound.only {
		if condition := v.shape.only[i]; v.fields[slot] == nil || !condition.rule.Match(v.fields[slot]) {
			return lineError(condition.name, v.column(line, slot), v.fields[slot], "what matches "+condition.rule.String())
		}
	}
	return nil
}

// column is where a field begins in its line, from 1; 1 where it is a copy.
func (v *variant) column(line []byte, slot int) int {
	b := v.fields[slot]
	at := cap(line) - cap(b)
	if at < 0 || at > len(line) || cap(b) == 0 {
		if v.shape.text != nil && cap(b) == 0 && b != nil {
			return len(line) + 1
		}
		return 1
	}
	if at == len(line) || &b[:1][0] == &line[at] {
		return at + 1
	}
	return 1
}

// explainFault makes the error of a line of which n fields were found and then
// came the fault, if any: the first field whose value is wrong goes before it.
func (p *Parser) explainFault(v *variant, line []byte, n int, fault *LineError) error {
	if v.quiet {
		return errQuiet
	}
	if v.bound == nil {
		return fault
	}
	best := &LineError{Column: len(line) + 2}
	for i := range v.checks {
		c := &v.checks[i]
		if b := v.fields[c.slot]; c.slot < n && !c.element.check(b) {
			best = earlier(best, lineError(c.element.name, v.column(line, c.slot), b, c.element.expected()))
		}
	}
	var r event.Request
	timed := false
	for i := range v.bound.rules {
		rule := &v.bound.rules[i]
		for j := range rule.sources {
			s := &rule.sources[j]
			if s.slot >= n {
				continue
			}
			value, out := p.value(v, rule.column, s)
			if out == outcomeSet && p.set(&r, rule.column, s, value) {
				timed = timed || rule.column == colTime
				break
			}
			if out == outcomeSet || out == outcomeWrong {
				best = earlier(best, v.valueError(line, rule.column, s, value, r.Bytes))
				break
			}
		}
	}
	switch {
	case best.Expected != "":
		return best
	case fault != nil:
		return fault
	case !timed:
		return v.untimed(line)
	}
	return lineError("line", 1, line, "a line of the format "+p.format.name)
}

func earlier(a, b *LineError) *LineError {
	if b.Column < a.Column {
		return b
	}
	return a
}

// untimed says that nothing tells the time.
func (v *variant) untimed(line []byte) error {
	for i := range v.bound.rules {
		if rule := &v.bound.rules[i]; rule.column == colTime {
			s := &rule.sources[0]
			column := 1
			var got []byte
			if s.slot >= 0 && v.fields[s.slot] != nil {
				column, got = v.column(line, s.slot), v.fields[s.slot]
			}
			return lineError(cmp.Or(s.name, "time"), column, got, columnExpected[colTime]+" (it may not be missing)")
		}
	}
	return errors.ErrUnsupported // cannot be: a mapping without a time is not compiled
}

// valueError says what is wrong with the value of a field.
func (v *variant) valueError(line []byte, c column, s *source, value []byte, bytes int64) *LineError {
	name, column, want := s.name, 1, columnExpected[c]
	if name == "" {
		name = c.String()
	}
	if s.slot >= 0 {
		column = v.column(line, s.slot)
		if v.shape.text != nil && s.direct {
			e := &v.shape.text.elements[s.slot]
			if e.kind != kindText || e.time != nil {
				want = e.expected()
			}
		}
	}
	if c == colTime && s.expr == nil {
		if us, ok := anyTime(value, s); ok && !isTime(us) {
			want = "a time between 1900 and 2200"
		}
	}
	if c == colBytes && bytes > event.MaxRequestBytes {
		want = fmt.Sprintf("at most %d bytes", int64(event.MaxRequestBytes))
	}
	return lineError(name, column, value, want)
}

// anyTime reads a time as set does, without its bounds.
func anyTime(b []byte, s *source) (int64, bool) {
	switch {
	case s.time != nil:
		return s.time.parse(b, nil)
	case s.common || len(b) == clfLength && b[2] == '/':
		return parseTime(b)
	}
	return parseAnyTime(b, s.unit, nil)
}

// missingField is a value that stands for none, but whose field is there.
var missingField = []byte{}
