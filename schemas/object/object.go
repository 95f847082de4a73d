// Package object walks over the members of JSON objects without building
// anything of them: the rows of recordings and of events come so, millions of
// them.
//
// A [Walker] relies on JSON that is known to be valid (json.Valid); of anything
// else it panics. It has no other failures.
package object

import (
	"bytes"
	"encoding/json"
)

// Walker goes over the members of one object after the other. The zero value is
// ready. What it returns is valid until its next call.
type Walker struct {
	b    []byte
	at   int
	name []byte
	text []byte
}

// Begin starts with an object, which is valid JSON and begins with its brace.
func (w *Walker) Begin(b []byte) {
	w.b, w.at = b, skipSpace(b, 1)
}

// Next returns the next member's name and its value as it stands; false after
// the last.
func (w *Walker) Next() (name, value []byte, ok bool) {
	if w.b[w.at] == '}' {
		return nil, nil, false
	}
	end := valueEnd(w.b, w.at)
	name = text(&w.name, w.b[w.at:end])
	i := skipSpace(w.b, end)
	i = skipSpace(w.b, i+1) // the colon
	end = valueEnd(w.b, i)
	value = w.b[i:end]
	i = skipSpace(w.b, end)
	if w.b[i] == ',' {
		i = skipSpace(w.b, i+1)
	}
	w.at = i
	return name, value, true
}

// Text returns the content of a value that is a string.
func (w *Walker) Text(value []byte) []byte { return text(&w.text, value) }

func text(scratch *[]byte, quoted []byte) []byte {
	content := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(content, '\\') < 0 {
		return content
	}
	var v string
	if json.Unmarshal(quoted, &v) != nil {
		return nil // cannot be: the object is valid
	}
	*scratch = append((*scratch)[:0], v...)
	return *scratch
}

func skipSpace(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n' {
		i++
	}
	return i
}

// valueEnd returns the position behind the value that begins at b[i].
func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		depth := 0
		for {
			switch b[i] {
			case '"':
				i = stringEnd(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			i++
			if depth == 0 {
				return i
			}
		}
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

func stringEnd(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}
