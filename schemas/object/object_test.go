package object_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"penstock/schemas/object"
)

var seeds = []string{
	`{}`, ` `, `{ }`, `{"a":1}`, `{"a" : "b" , "c":{"d":[1,{"}":"]"}]},"e":null}`,
	`{"\u0061\"":"x\\","":"\u00e9\n","q":-1.5e9 ,"z":true}`, `{"a":1,"a":2}`, `{"a":[]}`, `[1]`,
}

// FuzzWalker: what is walked over is what the standard library finds.
func FuzzWalker(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	var w object.Walker
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.TrimLeft(b, " \t\r\n")
		if len(b) == 0 || b[0] != '{' || !json.Valid(b) {
			return
		}
		var expected map[string]json.RawMessage
		if err := json.Unmarshal(b, &expected); err != nil {
			return
		}
		got := map[string]json.RawMessage{}
		w.Begin(b)
		for {
			name, value, ok := w.Next()
			if !ok {
				break
			}
			got[string(name)] = append(json.RawMessage{}, value...)
			if value[0] == '"' {
				var text string
				if err := json.Unmarshal(value, &text); err != nil {
					t.Fatal(err)
				}
				// The library replaces what is not UTF-8; here it stays to be refused.
				if raw := w.Text(value); utf8.Valid(raw) && text != string(raw) {
					t.Fatalf("text of %s: got %q, expected %q", value, raw, text)
				}
			}
		}
		if utf8.Valid(b) && !reflect.DeepEqual(got, expected) {
			t.Fatalf("got %s\nexpected %s", got, expected)
		}
	})
}
