package accesslog

import (
	"bytes"
	"fmt"
	"strings"
)

// Field is what a part of a line means.
type Field uint8

// The fields that a pattern may name. Ident, Login, Referer and Agent are
// matched and not used.
const (
	Host Field = iota
	Ident
	Login
	Time
	Request
	Status
	Bytes
	Referer
	Agent
	numFields
)

var fieldNames = [numFields]string{
	"host", "ident", "login", "time", "request", "status", "bytes", "referer", "agent",
}

// String returns the name as it stands in patterns and errors.
func (f Field) String() string { return fieldNames[f] }

// expected says in an error what a field is.
var expected = [numFields]string{
	"a client address", "an identity or -", "a user name or -",
	"a time such as 17/May/2015:10:05:03 +0000", "a request in double quotes",
	"a status of up to three digits or -", "a number of bytes or -",
	"a referer in double quotes", "a user agent in double quotes",
}

// element is a field and the literal that ends it; an empty literal is the end
// of the line.
type element struct {
	field  Field
	quoted bool // the field stands in double quotes and holds escapes
	until  string
}

// Format is a compiled pattern. It is immutable and safe for concurrent use.
type Format struct {
	name     string
	prefix   string // the literal before the first field
	elements []element
	has      [numFields]bool
}

// Name returns the name that the format was compiled under.
func (f *Format) Name() string { return f.name }

// The formats of Apache and NGINX. NGINX's predefined "combined" and Apache's
// are the same to the byte. Common lacks the referer and the user agent.
var (
	Combined = mustCompile("combined", `{host} {ident} {login} [{time}] "{request}" {status} {bytes} "{referer}" "{agent}"`)
	Common   = mustCompile("common", `{host} {ident} {login} [{time}] "{request}" {status} {bytes}`)
)

func mustCompile(name, pattern string) *Format {
	f, err := Compile(name, pattern)
	if err != nil {
		panic(err)
	}
	return f
}

// Compile reads a pattern: field names in braces, all else is literal. A field
// after a double quote is a quoted one and must be ended by a double quote.
// Two fields need a literal between them; a line must have a time, a request
// and a number of bytes. The error wraps ErrFormat.
func Compile(name, pattern string) (*Format, error) {
	prefix, rest, ok := strings.Cut(pattern, "{")
	if !ok {
		return nil, fmt.Errorf("format %s: no field in %.100q: %w", name, pattern, ErrFormat)
	}
	f := &Format{name: name, prefix: prefix}
	before := prefix
	for ok {
		var field, until string
		field, rest, ok = strings.Cut(rest, "}")
		if !ok {
			return nil, fmt.Errorf("format %s: field %.40q is not closed: %w", name, field, ErrFormat)
		}
		at, known := fieldByName(field)
		if !known || f.has[at] {
			return nil, fmt.Errorf("format %s: field %.40q is unknown or named twice: %w", name, field, ErrFormat)
		}
		f.has[at] = true
		until, rest, ok = strings.Cut(rest, "{")
		if ok && until == "" {
			return nil, fmt.Errorf("format %s: nothing between field %s and the next: %w", name, field, ErrFormat)
		}
		e := element{field: at, until: until, quoted: strings.HasSuffix(before, `"`)}
		if e.quoted && !strings.HasPrefix(until, `"`) {
			return nil, fmt.Errorf("format %s: the quote of field %s is not closed: %w", name, field, ErrFormat)
		}
		f.elements = append(f.elements, e)
		before = until
	}
	for _, must := range []Field{Time, Request, Bytes} {
		if !f.has[must] {
			return nil, fmt.Errorf("format %s: no field {%s}: %w", name, must, ErrFormat)
		}
	}
	return f, nil
}

func fieldByName(name string) (Field, bool) {
	for i, n := range fieldNames {
		if n == name {
			return Field(i), true
		}
	}
	return 0, false
}

// span is where a field stands in a line.
type span struct{ from, to int }

// match finds the fields of a line, whose whole must match. Fields that the
// format lacks are left as they were. It returns how many elements matched and
// where the next begins; the line matched if n is all of them and next its
// length.
func (f *Format) match(line []byte, at *[numFields]span) (n, next int) {
	if len(line) < len(f.prefix) || string(line[:len(f.prefix)]) != f.prefix {
		return 0, 0
	}
	next = len(f.prefix)
	for n = range f.elements {
		e := &f.elements[n]
		end := e.end(line, next)
		if end < 0 {
			return n, next
		}
		at[e.field] = span{next, end}
		next = end + len(e.until)
	}
	return len(f.elements), next
}

// matches reports whether the whole line is of the format's shape.
func (f *Format) matches(line []byte, at *[numFields]span) bool {
	n, next := f.match(line, at)
	return n == len(f.elements) && next == len(line)
}

// end returns where the field that begins at pos ends, −1 if its ending
// literal isn't there.
func (e *element) end(line []byte, pos int) int {
	if e.quoted {
		end := quoteEnd(line, pos)
		if end < 0 || len(line)-end < len(e.until) || string(line[end:end+len(e.until)]) != e.until {
			return -1
		}
		return end
	}
	if e.until == "" {
		return len(line)
	}
	var n int
	if len(e.until) == 1 {
		n = bytes.IndexByte(line[pos:], e.until[0])
	} else {
		n = indexLiteral(line[pos:], e.until)
	}
	if n < 0 {
		return -1
	}
	return pos + n
}

// indexLiteral is bytes.Index without a conversion.
func indexLiteral(b []byte, lit string) int {
	for from := 0; ; {
		n := bytes.IndexByte(b[from:], lit[0])
		if n < 0 || len(b)-from-n < len(lit) {
			return -1
		}
		from += n
		if string(b[from:from+len(lit)]) == lit {
			return from
		}
		from++
	}
}

// quoteEnd returns the position of the first double quote at or after pos that
// no backslash escapes, −1 if there is none.
func quoteEnd(line []byte, pos int) int {
	for pos < len(line) {
		n := bytes.IndexByte(line[pos:], '"')
		if n < 0 {
			return -1
		}
		end := pos + n
		slashes := 0
		for i := end - 1; i >= pos && line[i] == '\\'; i-- {
			slashes++
		}
		if slashes%2 == 0 {
			return end
		}
		// An escaped quote; what precedes it is settled, so the count of
		// backslashes may begin anew behind it.
		pos = end + 1
	}
	return -1
}

// notMatched makes the error of the element n, which did not match at pos.
func (f *Format) notMatched(line []byte, n, pos int) *LineError {
	if n == len(f.elements) {
		// Only a format that ends with a literal gets here.
		last := f.elements[n-1].field
		return mismatch(last, line, pos, "the end of the line after "+last.String())
	}
	e := &f.elements[n]
	if pos < len(f.prefix) {
		return mismatch(e.field, line, 0, fmt.Sprintf("%q", f.prefix))
	}
	if e.quoted {
		if end := quoteEnd(line, pos); end >= 0 {
			return mismatch(e.field, line, end, fmt.Sprintf("%q after the field that begins at column %d", e.until, pos+1))
		}
	}
	if e.until == "" {
		return mismatch(e.field, line, pos, expected[e.field])
	}
	return mismatch(e.field, line, pos, fmt.Sprintf("%s, ended by %q", expected[e.field], e.until))
}

// detectLines is how many lines Detect reads at most.
const detectLines = 100

// Detect returns which of Combined and Common more of the sample's first 100
// lines are of; Combined if neither is ahead. It is a file's one format: a
// combined line that was cut behind its bytes is malformed, not a common one.
func Detect(sample []byte) *Format {
	var combined, common int
	var at [numFields]span
	for range detectLines {
		line, rest, whole := bytes.Cut(sample, []byte{'\n'})
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if len(line) > 0 {
			if Combined.matches(line, &at) {
				combined++
			} else if Common.matches(line, &at) && wellFormedTail(line, at) {
				common++
			}
		}
		if !whole {
			break
		}
		sample = rest
	}
	if common > combined {
		return Common
	}
	return Combined
}

// wellFormedTail tells a common line from one of a longer format, whose last
// field takes in all the rest.
func wellFormedTail(line []byte, at [numFields]span) bool {
	_, ok := parseBytes(line[at[Bytes].from:at[Bytes].to])
	return ok
}
