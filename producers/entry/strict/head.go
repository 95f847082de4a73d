package strict

import (
	"bytes"
	"slices"
)

// head is what the framing of a message follows from.
type head struct {
	length  int64 // of the body; -1 for chunks
	upgrade bool  // asks for another protocol, without a body
	simple  bool  // of HTTP/1.1, and has nothing but a head
}

// fields is what the header's lines said so far.
type fields struct {
	host, length, coding    []byte
	hosts, lengths, codings int
	upgrade, expects        bool
	old                     bool // HTTP/1.0
	authority               []byte
	protected               []string
	expectsUnknown          bool
}

// parseHead checks a head, from its request line to its empty line, both with
// their line ends. Bare LF was refused before.
func parseHead(b []byte, protected []string) (head, *Refusal) {
	line, rest := cut(b)
	f := fields{protected: protected}
	if r := f.requestLine(line); r != nil {
		return head{}, r
	}
	for {
		if line, rest = cut(rest); len(line) == 0 {
			break
		}
		if r := f.line(line); r != nil {
			return head{}, r
		}
	}
	return f.head()
}

// cut returns the first line without its CR LF, and what follows it.
func cut(b []byte) (line, rest []byte) {
	n := bytes.IndexByte(b, '\n')
	return b[:n-1], b[n+1:]
}

func (f *fields) requestLine(line []byte) *Refusal {
	m := bytes.IndexByte(line, ' ')
	if m < 0 {
		return firstFault(line, RefusedLine)
	}
	method, rest := line[:m], line[m+1:]
	if r := CheckMethod(method); r == RefusedMethodName {
		return firstFault(line, r)
	} else if r != nil {
		return r
	}
	t := bytes.LastIndexByte(rest, ' ')
	if t < 0 {
		return firstFault(line, RefusedLine) // as HTTP/0.9 was
	}
	target, version := rest[:t], rest[t+1:]
	switch {
	case string(version) == "HTTP/1.1":
	case string(version) == "HTTP/1.0":
		f.old = true
	case len(version) == 8 && string(version[:5]) == "HTTP/" && isDigit(version[5]) && version[6] == '.' && isDigit(version[7]):
		return RefusedVersion
	default:
		return firstFault(line, RefusedLine)
	}
	if !all(target, targetChar) {
		if bytes.IndexByte(target, ' ') >= 0 {
			return firstFault(line, RefusedLine)
		}
		return firstFault(line, RefusedTarget)
	}
	return f.target(method, target)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// firstFault prefers what a line's bytes say to what its parts would.
func firstFault(line []byte, otherwise *Refusal) *Refusal {
	for _, c := range line {
		if c == '\r' {
			return RefusedLineEnd
		}
		if kinds[c]&valueChar == 0 {
			return RefusedByte
		}
	}
	return otherwise
}

func (f *fields) target(method, target []byte) *Refusal {
	switch {
	case len(target) == 0:
		return RefusedLine
	case target[0] == '/':
	case string(target) == "*":
		if string(method) != "OPTIONS" {
			return RefusedTarget
		}
		return nil
	default:
		scheme := bytes.Index(target, []byte("://"))
		if scheme < 0 || !same(target[:scheme], "http") && !same(target[:scheme], "https") {
			return RefusedTarget
		}
		target = target[scheme+3:]
		n := bytes.IndexAny(target, "/?")
		if n < 0 {
			n = len(target)
		}
		f.authority, target = target[:n], target[n:]
		if !IsHost(f.authority) {
			return RefusedHost
		}
	}
	if !escapes(target) {
		return RefusedTarget
	}
	return nil
}

func (f *fields) line(line []byte) *Refusal {
	if line[0] == ' ' || line[0] == '\t' {
		return RefusedFold
	}
	n := bytes.IndexByte(line, ':')
	if n <= 0 || !all(line[:n], tokenChar) {
		return firstFault(line, RefusedField)
	}
	name, value := line[:n], trim(line[n+1:])
	if !all(value, valueChar) {
		return firstFault(line, RefusedByte)
	}
	return f.field(name, value)
}

// field notes the fields that framing and routing go by, by the length of their
// names.
func (f *fields) field(name, value []byte) *Refusal {
	switch len(name) {
	case len("host"):
		if same(name, "host") {
			f.hosts++
			f.host = value
		}
	case len("content-length"):
		if same(name, "content-length") {
			f.lengths++
			f.length = value
			if name[len("content")] == '_' {
				return RefusedLength
			}
		}
	case len("transfer-encoding"):
		if same(name, "transfer-encoding") {
			f.codings++
			f.coding = value
			if name[len("transfer")] == '_' {
				return RefusedCoding
			}
		}
	case len("expect"):
		if same(name, "expect") {
			f.expects = true
			f.expectsUnknown = f.expectsUnknown || !same(value, "100-continue")
		}
	case len("upgrade"):
		f.upgrade = f.upgrade || same(name, "upgrade")
	case len("connection"):
		if same(name, "connection") {
			return f.connectionNames(value)
		}
	}
	return nil
}

// connectionNames refuses names in a Connection field that would have a proxy
// take off what services decide by.
func (f *fields) connectionNames(value []byte) *Refusal {
	for len(value) > 0 {
		word := value
		if n := bytes.IndexByte(value, ','); n >= 0 {
			word, value = value[:n], value[n+1:]
		} else {
			value = nil
		}
		word = trim(word)
		switch {
		case len(word) == 0, same(word, "keep-alive"), same(word, "close"), same(word, "upgrade"), same(word, "te"):
			continue
		case !IsToken(word):
			return RefusedConnection
		}
		if slices.ContainsFunc(f.protected, func(name string) bool { return same(word, name) }) ||
			len(word) > 9 && (same(word[:9], "penstock-") || same(word[:min(len(word), 12)], "x-forwarded-")) {
			return RefusedConnection
		}
	}
	return nil
}

// Protected are the headers, in small letters, that a Connection field may not
// name whatever the options.
var Protected = []string{
	"host", "content-length", "transfer-encoding", "authorization", "cookie", "forwarded", "traceparent",
	"tracestate", "content-type", "content-encoding", "expect", "range", "cache-control",
}

// head draws the conclusions (RFC 9112 §3.2, §6).
func (f *fields) head() (head, *Refusal) {
	switch {
	case f.hosts > 1, f.hosts == 0 && !f.old, f.hosts == 1 && !IsHost(f.host):
		return head{}, RefusedHost
	case f.authority != nil && f.hosts == 1 && !bytes.EqualFold(f.authority, f.host):
		return head{}, RefusedHost
	case f.lengths > 0 && f.codings > 0:
		return head{}, RefusedFraming
	case f.lengths > 1:
		return head{}, RefusedLength
	case f.expectsUnknown:
		return head{}, RefusedExpect
	}
	var h head
	if f.lengths == 1 {
		var ok bool
		if h.length, ok = length(f.length); !ok {
			return head{}, RefusedLength
		}
	}
	if f.codings > 0 {
		if r := f.checkCoding(); r != nil {
			return head{}, r
		}
		h.length = -1
	}
	h.upgrade = f.upgrade && h.length == 0
	h.simple = h.length == 0 && !f.upgrade && !f.expects && !f.old
	return h, nil
}

// IsLength reports whether s is a Content-Length: up to 18 digits.
func IsLength(s string) bool {
	_, ok := length(s)
	return ok
}

func length[T text](b T) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	n := int64(0)
	for i := range len(b) {
		if !isDigit(b[i]) {
			return 0, false
		}
		n = n*10 + int64(b[i]-'0')
	}
	return n, true
}

func (f *fields) checkCoding() *Refusal {
	if f.codings > 1 || f.old {
		return RefusedCoding
	}
	if string(f.coding) == "chunked" || len(f.coding) == 7 && bytes.EqualFold(f.coding, []byte("chunked")) {
		return nil
	}
	// A list of codings or one coding that isn't chunked could be right; it is
	// only not served. Anything that isn't a list of tokens is no coding, and
	// neither is chunked before another.
	words := bytes.Split(f.coding, []byte(","))
	for i, w := range words {
		if w = trim(w); !IsToken(w) || i < len(words)-1 && bytes.EqualFold(w, []byte("chunked")) {
			return RefusedCoding
		}
	}
	return RefusedUnknownCode
}
