package recording

import (
	"encoding/json"
	"fmt"

	"penstock/schemas/event"
	"penstock/schemas/object"
	"penstock/schemas/scalar"
)

// jsonSource reads JSON objects whose names are the columns.
type jsonSource struct {
	objects *objectReader
	strings *interner
	note    func(string)
	noted   bool
	seen    uint32
	walk    object.Walker
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
	for s.walk.Begin(b); ; {
		name, value, ok := s.walk.Next()
		if !ok {
			return nil
		}
		c, known := columnByName[string(name)]
		if !known {
			if !s.noted {
				s.noted = true
				noteUnknown(s.note, []string{string(clip(name, maxGot))})
			}
			continue
		}
		if err := s.member(r, c, value); err != nil {
			return err
		}
	}
}

// member sets one column. Of a name that stands twice the last value holds.
func (s *jsonSource) member(r *event.Request, c column, value []byte) error {
	text := value
	switch value[0] {
	case '"':
		text = s.walk.Text(value)
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
