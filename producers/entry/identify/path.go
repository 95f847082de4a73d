package identify

import (
	"bytes"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Normal returns the normal form of a path as it stands in a target, without
// query (RFC 3986 §6.2.2): "/u/%61lice/./x/../y" is "/u/alice/y". Empty segments
// stay, but for those that dot segments take along, as most services read it.
func Normal(path string) string {
	if strings.IndexByte(path, '%') < 0 && !strings.Contains(path, "/.") {
		return path
	}
	b := unescape(path)
	out := make([]byte, 0, len(b))
	i := 0
	if len(b) > 0 && b[0] == '/' {
		i = 1
	}
	for i <= len(b) {
		end := i
		for end < len(b) && b[end] != '/' {
			end++
		}
		switch segment := b[i:end]; string(segment) {
		case ".":
		case "..":
			out = parent(out)
		default:
			out = append(append(out, '/'), segment...)
		}
		i = end + 1
	}
	if len(out) == 0 {
		return "/"
	}
	return string(out)
}

// parent takes the last segment off that is not empty, with the empty ones after it.
func parent(path []byte) []byte {
	for len(path) > 0 && path[len(path)-1] == '/' {
		path = path[:len(path)-1]
	}
	return path[:max(bytes.LastIndexByte(path, '/'), 0)]
}

// doubtful reports whether a path in its normal form has a segment that is none or
// one up to some services: those that undo escapes twice or early, take a backslash
// for a slash, or cut off what follows a semicolon.
func doubtful(path string) bool {
	if strings.IndexByte(path, '%') < 0 && strings.IndexByte(path, ';') < 0 && strings.IndexByte(path, '\\') < 0 {
		return false
	}
	for range maxEscapes {
		once, err := url.PathUnescape(path)
		if err != nil || once == path {
			break
		}
		path = once
	}
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if name, _, _ := strings.Cut(part, ";"); name == "." || name == ".." {
			return true
		}
	}
	return false
}

// maxEscapes is how many times escapes are undone to see what a service could.
const maxEscapes = 3

// unescape undoes the escapes of unreserved characters and writes the others in
// capitals.
func unescape(s string) []byte {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '%' || i+2 >= len(s) || unhex(s[i+1]) < 0 || unhex(s[i+2]) < 0 {
			b = append(b, c)
			continue
		}
		v := byte(unhex(s[i+1])<<4 | unhex(s[i+2]))
		i += 2
		if unreserved(v) {
			b = append(b, v)
		} else {
			b = append(b, '%', hex[v>>4], hex[v&15])
		}
	}
	return b
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// segment is one segment of a pattern.
type segment struct {
	prefix, suffix string // the text, if it is neither star nor capture
	star, capture  bool
	most           int // segments that a capture takes
}

// Pattern matches paths and may take a part of them. Make one with
// CompilePattern.
type Pattern struct {
	segments []segment
	rest     bool // ends in **
	captures bool
}

// CompilePattern reads a pattern. name is what may stand in braces; with "" the
// pattern takes nothing. The error wraps ErrRule.
func CompilePattern(pattern, name string) (*Pattern, error) {
	if pattern == "" || pattern[0] != '/' {
		return nil, fmt.Errorf("path %q does not begin with a slash: %w", pattern, ErrRule)
	}
	p := new(Pattern)
	if pattern == "/" {
		return p, nil
	}
	parts := strings.Split(strings.TrimSuffix(pattern[1:], "/"), "/")
	for i, part := range parts {
		if part == "**" {
			if i < len(parts)-1 {
				return nil, fmt.Errorf("path %q: ** stands at the end only: %w", pattern, ErrRule)
			}
			p.rest = true
			break
		}
		s, err := compileSegment(part, name)
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", pattern, err)
		}
		if s.capture && p.captures {
			return nil, fmt.Errorf("path %q: {%s} stands there twice: %w", pattern, name, ErrRule)
		}
		p.captures = p.captures || s.capture
		p.segments = append(p.segments, s)
	}
	return p, nil
}

func compileSegment(part, name string) (segment, error) {
	if part == "*" {
		return segment{star: true}, nil
	}
	from, to := strings.IndexByte(part, '{'), strings.IndexByte(part, '}')
	if from < 0 && to < 0 && part != "" && strings.IndexByte(part, '*') < 0 {
		return segment{prefix: strings.TrimPrefix(Normal("/"+part), "/")}, nil
	}
	if from < 0 || to < from || strings.Count(part, "{") > 1 || strings.Count(part, "}") > 1 || strings.IndexByte(part, '*') >= 0 {
		return segment{}, fmt.Errorf("segment %q is neither text, nor *, nor has it one {%s}: %w", part, name, ErrRule)
	}
	s := segment{prefix: part[:from], suffix: part[to+1:], capture: true, most: 1}
	inner, count, counted := strings.Cut(part[from+1:to], ":")
	if counted {
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > 100 || s.prefix != "" || s.suffix != "" {
			return segment{}, fmt.Errorf("segment %q: expected {%s:N}, 1 to 100 segments, alone: %w", part, name, ErrRule)
		}
		s.most = n
	}
	if name == "" || inner != name {
		return segment{}, fmt.Errorf("segment %q: expected {%s}: %w", part, name, ErrRule)
	}
	return s, nil
}

// Captures reports whether the pattern takes a part of a path.
func (p *Pattern) Captures() bool { return p.captures }

// Match reports whether the pattern matches a path in its normal form, and what
// it takes of it. Before text and * empty segments don't count; where something is
// to be taken an empty segment is nobody's, and nothing matches.
func (p *Pattern) Match(path string) (taken string, ok bool) {
	for _, s := range p.segments {
		part, rest := next(path)
		for part == "" && !s.capture && strings.HasPrefix(rest, "/") {
			part, rest = next(rest)
		}
		if part == "" {
			return "", false
		}
		switch {
		case s.star:
		case !s.capture:
			if part != s.prefix {
				return "", false
			}
		default:
			if len(part) <= len(s.prefix)+len(s.suffix) || !strings.HasPrefix(part, s.prefix) || !strings.HasSuffix(part, s.suffix) {
				return "", false
			}
			if taken, rest = segments(path, s.most); taken == "" {
				return "", false
			}
			taken = taken[len(s.prefix) : len(taken)-len(s.suffix)]
		}
		path = rest
	}
	if !p.rest && strings.Trim(path, "/") != "" {
		return "", false
	}
	return taken, true
}

// segments returns up to most segments of a path, with the slashes between
// them, and what follows; nothing if there is an empty one before others.
func segments(path string, most int) (taken, rest string) {
	rest, end := path, 0
	for ; most > 0; most-- {
		segment, after := next(rest)
		if segment == "" {
			if strings.Trim(rest, "/") != "" {
				return "", path
			}
			break
		}
		end, rest = end+1+len(segment), after
	}
	return path[1:end], rest
}

// next returns the first segment of a path and what follows it, from its slash.
func next(path string) (segment, rest string) {
	if path == "" || path[0] != '/' {
		return "", path
	}
	if n := strings.IndexByte(path[1:], '/'); n >= 0 {
		return path[1 : n+1], path[n+1:]
	}
	return path[1:], ""
}
