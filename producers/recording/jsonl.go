package recording

import (
	"bytes"
	"encoding/json"
	"fmt"

	"penstock/schemas/event"
	"penstock/schemas/scalar"
)

// jsonSource reads JSON objects whose names are the columns.
type jsonSource struct {
	objects *objectReader
	strings *interner
	note    func(string)
	noted   bool
	seen    uint32
	text    []byte // scratch for strings with escapes
	object  []byte
	at      int64 // line of object
	bad     fault
}

func newJSON(in *input, t *interner, note func(string)) *jsonSource {
	return &jsonSource{objects: newObjectReader(in.in), strings: t, note: note}
}

func (s *jsonSource) line() int64  { return s.at }
func (s *jsonSource) blank() int64 { return s.objects.blank }
func (s *jsonSource) close() error { return nil }
func (s *jsonSource) raw() []byte  { return s.object }

func (s *jsonSource) next(r *event.Request) error {
	b, end, err := s.objects.next()
	if err != nil {
		return err
	}
	s.object, s.at = b, s.objects.lines
	switch {
	case end == noObject:
		return s.fault("object", string(clip(b, maxGot)), "a JSON object")
	case end == longObject:
		return s.fault("object", "a longer object", fmt.Sprintf("at most %d bytes", maxLine))
	case end == cutObject:
		return s.fault("object", string(b[max(0, len(b)-maxGot):]), "the object's end on the same line")
	case !json.Valid(b):
		return s.fault("object", string(clip(b, maxGot)), syntaxOf(b))
	}
	*r = event.NewRequest(0)
	s.seen = 0
	if err := s.members(b, r); err != nil {
		return err
	}
	if s.seen&requiredMask != requiredMask {
		f := missingColumn(s.seen)
		return s.fault(f.field, "", f.expected)
	}
	return nil
}

func (s *jsonSource) fault(field, got, expected string) error {
	s.bad = fault{line: s.at, field: field, got: got, expected: expected, raw: s.object}
	return &s.bad
}

// syntaxOf says what the standard library has against the object.
func syntaxOf(b []byte) string {
	var v json.RawMessage
	if err := json.Unmarshal(b, &v); err != nil {
		return "JSON (" + err.Error() + ")"
	}
	return "JSON"
}

// members walks over an object that is known to be valid JSON.
func (s *jsonSource) members(b []byte, r *event.Request) error {
	i := skipSpace(b, 1)
	for b[i] != '}' {
		name, next := s.string(b, i)
		c, known := columnByName[string(name)]
		if !known && !s.noted {
			s.noted = true
			noteUnknown(s.note, []string{string(clip(name, maxGot))})
		}
		i = skipSpace(b, next)
		i = skipSpace(b, i+1) // the colon
		end := valueEnd(b, i)
		if known {
			if err := s.member(r, c, b[i:end]); err != nil {
				return err
			}
		}
		i = skipSpace(b, end)
		if b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return nil
}

// member sets one column. Of a name that stands twice the last value holds.
func (s *jsonSource) member(r *event.Request, c column, value []byte) error {
	text := value
	switch value[0] {
	case '"':
		text, _ = s.string(value, 0)
	case '{', '[', 't', 'f':
		return s.fault(c.String(), string(clip(value, maxGot)), columnExpected[c])
	}
	if scalar.IsMissing(text) {
		return nil
	}
	if !setText(r, c, text, s.strings) {
		return s.fault(c.String(), string(clip(text, maxGot)), columnExpected[c])
	}
	s.seen |= 1 << c
	return nil
}

// string returns the content of the string that begins at b[i] and the
// position behind it. It is valid until the next call.
func (s *jsonSource) string(b []byte, i int) ([]byte, int) {
	end := valueEnd(b, i)
	content := b[i+1 : end-1]
	if bytes.IndexByte(content, '\\') < 0 {
		return content, end
	}
	var v string
	if json.Unmarshal(b[i:end], &v) != nil {
		return nil, end // cannot be: the object is valid
	}
	s.text = append(s.text[:0], v...)
	return s.text, end
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
		for i++; b[i] != '"'; i++ {
			if b[i] == '\\' {
				i++
			}
		}
		return i + 1
	case '{', '[':
		depth := 0
		for {
			switch b[i] {
			case '"':
				i = valueEnd(b, i)
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
