package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"penstock/producers/otlp/span"
)

// Number is a whole number in JSON, as number or text: 5, "5" and 5.0 are one;
// null, "" and "-" are not there (P09).
type Number struct {
	Value int64
	Set   bool
}

// UnmarshalJSON reads it.
func (n *Number) UnmarshalJSON(b []byte) error {
	*n = Number{}
	s := string(b)
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		s = strings.TrimSpace(s)
	}
	if s == "" || s == "-" || s == "null" {
		return nil
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(s, 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
			return fmt.Errorf("%.40q, expected a whole number: %w", s, span.ErrMalformed)
		}
		v = int64(f)
	}
	*n = Number{Value: v, Set: true}
	return nil
}

// Text is a scalar in JSON as text; what is none is "".
type Text string

// UnmarshalJSON reads it.
func (t *Text) UnmarshalJSON(b []byte) error {
	*t = ""
	switch {
	case len(b) == 0 || b[0] == '{' || b[0] == '[' || bytes.Equal(b, []byte("null")):
	case b[0] == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*t = Text(s)
	default:
		*t = Text(b)
	}
	return nil
}

// value is an attribute's value as text: of a scalar, or of an array with one.
type value string

// UnmarshalJSON reads {"stringValue": "a"} and its like. What it does not know is
// "", and so is what is nested.
func (v *value) UnmarshalJSON(b []byte) error {
	*v = ""
	if len(b) == 0 || b[0] != '{' {
		var t Text
		err := t.UnmarshalJSON(b)
		*v = value(t)
		return err
	}
	var in struct {
		String Text `json:"stringValue"`
		Bool   Text `json:"boolValue"`
		Int    Text `json:"intValue"`
		Double Text `json:"doubleValue"`
		Array  *struct {
			Values []json.RawMessage `json:"values"`
		} `json:"arrayValue"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	for _, t := range [...]Text{in.String, in.Int, in.Double, in.Bool} {
		if t != "" {
			*v = value(t)
			return nil
		}
	}
	if in.Array != nil && len(in.Array.Values) == 1 {
		var only struct {
			String Text `json:"stringValue"`
			Int    Text `json:"intValue"`
		}
		if json.Unmarshal(in.Array.Values[0], &only) == nil {
			*v = value(only.String + only.Int)
		}
	}
	return nil
}
