package accesslog

import (
	"bytes"
	"fmt"
	"strings"
)

// cutDelimited splits a line at its separators. A line that names the fields
// binds the mapping to them.
func (v *variant) cutDelimited(line []byte) (int, *LineError) {
	d := v.shape.delimited
	if d.Header != "" && bytes.HasPrefix(line, []byte(d.Header)) {
		return v.readHeader(line, line[len(d.Header):])
	}
	if d.Comment != "" && bytes.HasPrefix(line, []byte(d.Comment)) {
		return 0, errHeader
	}
	if v.bound == nil {
		if d.Header != "" {
			return 0, lineError("header", 1, line, fmt.Sprintf("a line that begins with %q before the first row", d.Header))
		}
		return v.readHeader(line, line)
	}
	// What comes again, as where files were joined, is a header again.
	if v.header != nil && len(line) == len(v.header) && bytes.Equal(line, v.header) {
		return 0, errHeader
	}
	n := v.split(line)
	if n != len(v.bound.names) && (!v.shape.more || n < len(v.bound.names)) {
		return min(n, len(v.bound.names)), lineError("record", 1, fmt.Appendf(nil, "%d fields", n), fmt.Sprintf("%d fields", len(v.bound.names)))
	}
	return n, nil
}

// readHeader binds the mapping to the fields that a header names.
func (v *variant) readHeader(line, names []byte) (int, *LineError) {
	if v.shape.separator == 0 {
		v.separator = headerSeparator(names)
	}
	var list []string
	for name := range bytes.SplitSeq(names, []byte{v.separator}) {
		name = bytes.Trim(bytes.TrimSpace(name), `"`)
		list = append(list, strings.ToLower(string(name)))
		if len(list) > maxNames {
			return 0, lineError("header", 1, line, fmt.Sprintf("at most %d fields", maxNames))
		}
	}
	b := *v
	if err := b.bind(list); err != nil {
		return 0, lineError("header", 1, line, "the names of the fields, with a time and a request among them")
	}
	*v = b
	v.header = bytes.Clone(line)
	return 0, errHeader
}

// maxNames bounds the fields of a header.
const maxNames = 1000

// headerSeparator tells what separates the names: tabs, commas, semicolons or
// bars, whichever there are most of.
func headerSeparator(b []byte) byte {
	best, most := byte('\t'), 0
	for _, c := range []byte("\t,;|") {
		if n := bytes.Count(b, []byte{c}); n > most {
			best, most = c, n
		}
	}
	return best
}

// split cuts a line into v.fields and returns how many there are. A field in
// double quotes may hold separators, and quotes doubled (RFC 4180).
func (v *variant) split(line []byte) int {
	v.quoted = v.quoted[:0]
	if cap(v.quoted) < len(line) {
		v.quoted = make([]byte, 0, len(line))
	}
	n, rest := 0, line
	for {
		var field []byte
		if len(rest) > 0 && rest[0] == '"' {
			field, rest = v.unquote(rest)
		} else {
			field = rest
			if i := bytes.IndexByte(rest, v.separator); i >= 0 {
				field = rest[:i]
			}
			rest = rest[len(field):]
		}
		if n < len(v.fields) {
			v.fields[n] = field
		}
		n++
		if len(rest) == 0 {
			return n
		}
		rest = rest[1:]
	}
}

// unquote reads a field in quotes and returns what stands behind it. Without a
// closing quote before a separator it is taken as it stands.
func (v *variant) unquote(b []byte) (field, rest []byte) {
	from := len(v.quoted)
	for i := 1; i < len(b); i++ {
		if b[i] != '"' {
			v.quoted = append(v.quoted, b[i])
			continue
		}
		if i+1 < len(b) && b[i+1] == '"' {
			v.quoted = append(v.quoted, '"')
			i++
			continue
		}
		if i+1 == len(b) || b[i+1] == v.separator {
			return v.quoted[from:], b[i+1:]
		}
		break
	}
	v.quoted = v.quoted[:from]
	if i := bytes.IndexByte(b, v.separator); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}
