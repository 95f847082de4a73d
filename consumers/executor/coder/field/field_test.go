package field

import (
	"bytes"
	"encoding/binary"
	"maps"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func encoded(text string, at time.Time, n uint64, m map[string]string) []byte {
	return AppendMap(binary.AppendUvarint(AppendTime(AppendText(nil, text), at), n), m)
}

// TestRoundTrip reads what was written, and nothing of what is cut off or goes on.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	at := time.Date(1969, 3, 1, 12, 0, 0, 5000, time.UTC)
	m := map[string]string{"b": "2", "a": "", "": "x"}
	whole := encoded("objects", at, 300, m)
	for cut := range len(whole) + 2 {
		r := Reader{Rest: append(bytes.Clone(whole), 0)[:cut]}
		text, when, n, got := r.Text("text", 7), r.Time("time"), r.Number("number", 300), r.Map("map", 3, 2)
		r.End()
		switch {
		case cut != len(whole) && r.Fault() == "":
			t.Errorf("%d of %d bytes are taken", cut, len(whole))
		case cut == len(whole) && (r.Fault() != "" || text != "objects" || !when.Equal(at) || n != 300 || !maps.Equal(got, m)):
			t.Errorf("%q: %q %v %d %v", r.Fault(), text, when, n, got)
		}
	}
}

// TestFaults: what is out of bounds, longer than it need be, or out of order.
func TestFaults(t *testing.T) {
	t.Parallel()
	for want, take := range map[string]func(r *Reader){
		"n: not a number in bounds": func(r *Reader) { r.Rest = []byte{9}; r.Number("n", 8) },
		"l: not a number in bounds": func(r *Reader) { r.Rest = []byte{0x81, 0}; r.Number("l", 8) },
		"t: not a number in bounds": func(r *Reader) { r.Rest = []byte{3, 'a', 'b', 'c'}; r.Text("t", 2) },
		"m: out of order":           func(r *Reader) { r.Rest = []byte{2, 1, 'b', 0, 1, 'b', 0}; r.Map("m", 2, 1) },
		"p: not a number in bounds": func(r *Reader) { r.Rest = []byte{2, 1, 'a', 0, 1, 'b', 0}; r.Map("p", 1, 1) },
		"the first":                 func(r *Reader) { r.Rest = []byte{1}; r.Fail("the first"); r.Number("n", 8); r.End() },
	} {
		var r Reader
		take(&r)
		if r.Fault() != want || len(r.Rest) > 0 {
			t.Errorf("fault %q with %d bytes left, expected %q", r.Fault(), len(r.Rest), want)
		}
		if n, text := r.Number("n", 8), r.Text("t", 8); n != 0 || text != "" {
			t.Errorf("%s: got %d and %q after it", want, n, text)
		}
	}
}

// FuzzReader takes fields from any bytes: what is taken without a fault is written as it
// was.
func FuzzReader(f *testing.F) {
	f.Add(encoded("objects", time.Unix(1, 0), 7, map[string]string{"a": "b"}))
	f.Add([]byte{0x80, 0, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := Reader{Rest: b}
		text, at, n, m := r.Text("text", 100), r.Time("time"), r.Number("number", 1<<40), r.Map("map", 10, 100)
		r.End()
		if r.Fault() == "" && !bytes.Equal(encoded(text, at, n, m), b) {
			t.Errorf("%x became %q %v %d %v", b, text, at, n, m)
		}
	})
}
