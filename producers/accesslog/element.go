package accesslog

import (
	"bytes"
	"fmt"
	"strings"
)

// kind is what the cutting of a line knows of a field: where it ends, what may
// stand in it, and how an error calls it.
type kind uint8

const (
	kindText kind = iota
	kindHost
	kindIdent
	kindLogin
	kindTime
	kindRequest
	kindStatus
	kindBytes
	kindReferer
	kindAgent
	kindNumber
	// kindList is several values with ", " or " : " between them, as NGINX
	// writes one for each server that it tried.
	kindList
	// kindCaptures is HAProxy's list in braces, which isn't there, nor the blank
	// behind it, where nothing is captured.
	kindCaptures
	numKinds
)

// expected says in an error what a field is.
var expected = [numKinds]string{
	"a value", "a client address", "an identity or -", "a user name or -",
	"a time such as 17/May/2015:10:05:03 +0000", "a request in double quotes",
	"a status of up to three digits or -", "a number of bytes or -",
	"a referer in double quotes", "a user agent in double quotes",
	"a number or -", "a list or -", "a list in braces",
}

// escaping is how a server writes characters that could end a field.
type escaping uint8

const (
	escapeNone escaping = iota
	escapeC             // \xNN, \" and so on: Apache, NGINX
	escapeJSON          // \u00NN, \" and so on
	escapeHash          // #NN: HAProxy
)

// element is a field and the literal that ends it; an empty literal is the end
// of the line.
type element struct {
	name   string
	kind   kind
	quoted bool // stands in double quotes, which backslashes escape
	escape escaping
	// last says that the field ends at the last of its ending literals before
	// the next blank: an address before a port has colons of its own.
	last bool
	// maybe says that double quotes may stand around the field: HAProxy writes
	// them, where it is told to, around what it takes for a text.
	maybe bool
	time  *timeFormat // how the field's time is written, nil: in a usual way
	until string
}

// check reports whether a field may hold b.
func (e *element) check(b []byte) bool {
	switch e.kind {
	case kindHost:
		return isHost(b)
	case kindIdent:
		return len(b) > 0
	case kindLogin:
		return isLogin(b)
	}
	return true
}

// end returns where the field that begins at pos ends, −1 if its ending
// literal isn't there.
func (e *element) end(line []byte, pos int) int {
	switch {
	case e.quoted:
		end := quoteEnd(line, pos)
		if end < 0 || !hasAt(line, end, e.until) {
			return -1
		}
		return end
	case e.time != nil:
		end := pos + e.time.length(line[pos:])
		if end < pos || !hasAt(line, end, e.until) {
			return -1
		}
		return end
	case e.until == "":
		return len(line)
	case e.last:
		return lastInWord(line, pos, e.until)
	case e.kind == kindList && e.until[0] == ' ':
		return listEnd(line, pos, e.until)
	case e.kind == kindTime && hasAt(line, pos+clfLength, e.until):
		return pos + clfLength
	}
	if n := indexLiteral(line[pos:], e.until); n >= 0 {
		return pos + n
	}
	return -1
}

// hasAt reports whether a literal stands at a position; an empty one is the end
// of the line.
func hasAt(line []byte, at int, literal string) bool {
	if at > len(line) {
		return false
	}
	if literal == "" {
		return at == len(line)
	}
	return len(line)-at >= len(literal) && string(line[at:at+len(literal)]) == literal
}

// indexLiteral is bytes.Index without a conversion.
func indexLiteral(b []byte, lit string) int {
	if len(lit) == 1 {
		return bytes.IndexByte(b, lit[0])
	}
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

// lastInWord returns where the last literal begins in the word at pos.
func lastInWord(line []byte, pos int, lit string) int {
	word := line[pos:]
	if n := bytes.IndexAny(word, " \t\"]|,"); n >= 0 {
		word = word[:n]
	}
	// The literal may reach over what ends the word.
	for at := pos + len(word); at >= pos; at-- {
		if hasAt(line, at, lit) {
			return at
		}
	}
	return -1
}

// listEnd returns where a list of values ends that a blank follows: behind a
// word that has no comma at its end, unless a colon stands alone behind it.
func listEnd(line []byte, pos int, until string) int {
	for at := pos; ; at++ {
		n := bytes.IndexByte(line[at:], ' ')
		if n < 0 {
			return -1
		}
		at += n
		if at > pos && (line[at-1] == ',' || line[at-1] == ':' && at-1 > pos && line[at-2] == ' ') || hasAt(line, at, " : ") {
			continue
		}
		if hasAt(line, at, until) {
			return at
		}
		if len(until) == 1 {
			return -1
		}
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

// textLayout cuts lines by literals and fields.
type textLayout struct {
	prefix   string // the literal before the first field
	elements []element
	more     bool // columns behind the last one are left out
}

// cut finds the fields of a line, whose whole must match: n of them, and where
// the next begins. All matched if n is all of them and next is −1.
func (l *textLayout) cut(line []byte, fields [][]byte) (n, next int) {
	if len(line) < len(l.prefix) || string(line[:len(l.prefix)]) != l.prefix {
		return 0, 0
	}
	next = len(l.prefix)
	for n = range l.elements {
		e := &l.elements[n]
		from, end, behind := e.locate(line, next, l.more)
		if end < 0 {
			return n, next
		}
		fields[n] = nil
		if from >= 0 {
			fields[n] = line[from:end]
		}
		next = behind
	}
	if next < len(line) && (!l.more || line[next] != ' ') {
		return len(l.elements), next
	}
	return len(l.elements), -1
}

// locate returns where the content of the field at pos begins and ends, and what
// is behind its literal. end is −1 if the field isn't there, from if it is left
// out as it may be.
func (e *element) locate(line []byte, pos int, more bool) (from, end, behind int) {
	switch {
	case e.kind == kindCaptures:
		return e.captures(line, pos)
	case e.maybe && hasAt(line, pos, `"`):
		end = pos + 1 + bytes.IndexByte(line[pos+1:], '"')
		if end <= pos || !hasAt(line, end+1, e.until) && (!more || !hasAt(line, end+1, " ")) {
			return pos, -1, pos
		}
		return pos + 1, end, end + 1 + len(e.until)
	case e.until == "" && more && !e.quoted:
		end = wordEnd(line, pos)
	default:
		end = e.end(line, pos)
	}
	return pos, end, end + len(e.until)
}

// captures returns where what stands in braces begins and ends, and what is
// behind it. from is −1 where nothing was captured: the blank that would follow
// isn't there either.
func (e *element) captures(line []byte, pos int) (from, end, behind int) {
	if hasAt(line, pos, "{") {
		if n := indexLiteral(line[pos:], e.until); n >= 0 {
			return pos + 1, pos + n, pos + n + len(e.until)
		}
		return pos, -1, pos
	}
	after := strings.TrimPrefix(e.until[1:], " ")
	if after != "" && !hasAt(line, pos, after) {
		return pos, -1, pos
	}
	return -1, pos, pos + len(after)
}

func wordEnd(line []byte, pos int) int {
	if n := bytes.IndexByte(line[pos:], ' '); n >= 0 {
		return pos + n
	}
	return len(line)
}

// notMatched makes the error of the element n, which did not match at pos.
func (l *textLayout) notMatched(line []byte, n, pos int) *LineError {
	if n == len(l.elements) {
		// Only a format that ends with a literal gets here.
		last := l.elements[n-1].name
		return mismatch(last, line, pos, "the end of the line after "+last)
	}
	e := &l.elements[n]
	if pos < len(l.prefix) {
		return mismatch(e.name, line, 0, fmt.Sprintf("%q", l.prefix))
	}
	if e.quoted {
		if end := quoteEnd(line, pos); end >= 0 {
			return mismatch(e.name, line, end, fmt.Sprintf("%q after the field that begins at column %d", e.until, pos+1))
		}
	}
	want := e.expected()
	if e.until != "" {
		want = fmt.Sprintf("%s, ended by %q", want, e.until)
	}
	return mismatch(e.name, line, pos, want)
}

// expected says what the field holds.
func (e *element) expected() string {
	if e.time != nil {
		return "a time as " + e.time.pattern
	}
	return expected[e.kind]
}
