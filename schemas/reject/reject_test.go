package reject_test

import (
	"errors"
	"strings"
	"testing"

	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/reject"
)

// TestExplain takes the decoders at their word: what they say of a field is found
// whatever they are asked to decode.
func TestExplain(t *testing.T) {
	_, header := event.ParseHeader(event.Fields{
		event.HeaderSchema: {event.RequestSchema}, event.HeaderRun: {"R"}, event.HeaderSeq: {"three"},
		event.HeaderRows: {"1"}, event.HeaderWatermark: {"1"},
	})
	_, ttl := control.DecodeCommand([]byte(`{"version":1,"kind":"placement","scope":"west","epoch":1,"mode":"act","ttl":"soon",
		"window":{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T01:00:00Z"},"reason":{"code":"LMatch"},"placement":{"moves":[]}}`))
	_, body := control.DecodeCommand([]byte("not JSON"))
	_, cut := control.DecodeCommand([]byte("{"))
	for _, c := range []struct {
		err             error
		field, expected string
	}{
		{header, "Penstock-Seq", "a whole number of at least 1"},
		{ttl, "ttl", "a duration such as 10m"},
		{body, "body", "a whole"},
		{cut, "body", "a whole"},
		{errors.New("column time: missing, expected timestamp[us, UTC]: no"), "time", "timestamp[us, UTC]"},
		{errors.New("column time: missing"), "time", "a whole"},
		{errors.New("got 3 rows, expected 4: no"), "body", "4"},
		{errors.New("batch 7: column lat: got 1e9, expected -90 to\r\n90"), "lat", "-90 to  90"},
		{errors.New("field"), "body", "a whole"},
		{errors.New(""), "body", "a whole"},
	} {
		if c.err == nil {
			t.Fatalf("field %s: no error to explain", c.field)
		}
		field, expected := reject.Explain(c.err, "a whole")
		if field != c.field || expected != c.expected {
			t.Errorf("%v: field %q expected %q, want %q and %q", c.err, field, expected, c.field, c.expected)
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"a\r\nb\x00c\x7f":        "a  b c ",
		strings.Repeat("é", 501): strings.Repeat("é", 500),
	} {
		if got := reject.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
