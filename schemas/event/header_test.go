package event_test

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/event"
)

func header() event.Fields {
	return event.Fields{
		"Penstock-Schema": {"request/1"}, "Penstock-Encoding": {"s2"}, "Penstock-Run": {"01ARZ3NDEKTSV4RRFFQ69G5FAV"},
		"Penstock-Seq": {"17"}, "Penstock-Rows": {"8192"}, "Penstock-Watermark": {"1431943200000000"},
		"Penstock-Malformed": {"3"}, "Penstock-Dropped": {"1-2;30;5;6", "4-4;1;7;7"},
	}
}

func mark() event.Fields {
	return event.Fields{
		"Penstock-Schema": {"mark/1"}, "Penstock-Run": {"r"}, "Penstock-Mark": {"barrier"},
		"Penstock-Watermark": {"1431943200000000"}, "Penstock-Upto": {"17,4,0"}, "Penstock-Dropped": {"2:1-2;30;5;6"},
	}
}

func TestHeadersOfABatch(t *testing.T) {
	h, err := event.ParseHeader(header())
	if err != nil {
		t.Fatal(err)
	}
	expected := event.Header{
		Schema: event.RequestSchema, Encoding: event.EncodingS2, Run: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Seq: 17, Rows: 8192,
		Watermark: 1431943200000000, Malformed: 3,
		Dropped: []event.Dropped{{First: 1, Last: 2, Rows: 30, From: 5, To: 6}, {First: 4, Last: 4, Rows: 1, From: 7, To: 7}},
	}
	if !reflect.DeepEqual(h, expected) {
		t.Errorf("got %+v\nexpected %+v", h, expected)
	}
	if got := h.Fields(); !reflect.DeepEqual(got, header()) {
		t.Errorf("got %v\nexpected %v", got, header())
	}
}

func TestHeadersOfAMark(t *testing.T) {
	m, err := event.ParseMark(mark(), 3)
	if err != nil {
		t.Fatal(err)
	}
	expected := event.Mark{
		Kind: event.Barrier, Run: "r", Watermark: 1431943200000000, Upto: []uint64{17, 4, 0},
		Dropped: []event.Dropped{{Partition: 2, First: 1, Last: 2, Rows: 30, From: 5, To: 6}},
	}
	if !reflect.DeepEqual(m, expected) {
		t.Errorf("got %+v\nexpected %+v", m, expected)
	}
	if got := m.Fields(); !reflect.DeepEqual(got, mark()) {
		t.Errorf("got %v\nexpected %v", got, mark())
	}
	if !event.IsMark(mark()) || event.IsMark(header()) {
		t.Error("a mark is told by its schema")
	}
}

func TestUnusableHeadersNameThem(t *testing.T) {
	const none = "\x00"
	for _, c := range []struct{ name, value, expected string }{
		{"Schema", "request/2", `header Penstock-Schema: got "request/2", expected request/1 or gauge/1: unknown schema`},
		{"Schema", none, `header Penstock-Schema: got "", expected request/1 or gauge/1: unknown schema`},
		{"Encoding", "gzip", `header Penstock-Encoding: got "gzip", expected none, s2 or jsonl: undecodable event`},
		{"Run", none, `header Penstock-Run: got "", expected 1 to 128 characters: undecodable event`},
		{"Run", strings.Repeat("r", 129), `header Penstock-Run: got "` + strings.Repeat("r", 60) + `", expected 1 to 128 characters: undecodable event`},
		{"Run", "a b", `header Penstock-Run: got "a b", expected printable ASCII without spaces: undecodable event`},
		{"Seq", "0", `header Penstock-Seq: got "0", expected a whole number of at least 1: undecodable event`},
		{"Seq", "18446744073709551615", `header Penstock-Seq: got "18446744073709551615", expected a whole number of at least 1: undecodable event`},
		{"Rows", "8193", `header Penstock-Rows: got "8193", expected a whole number from 0 to 8192: undecodable event`},
		{"Rows", none, `header Penstock-Rows: got "", expected a whole number from 0 to 8192: undecodable event`},
		{"Watermark", "1e9", `header Penstock-Watermark: got "1e9", expected a whole number from -2208988800000000 to 7258118400000000: undecodable event`},
		{"Malformed", "-1", `header Penstock-Malformed: got "-1", expected a whole number from 0 to 281474976710656: undecodable event`},
		{"Dropped", "2-1;1;0;0", `header Penstock-Dropped: got "2-1;1;0;0", expected first-last;rows;from;to: undecodable event`},
		{"Dropped", "1-2;1;9;8", `header Penstock-Dropped: got "1-2;1;9;8", expected first-last;rows;from;to: undecodable event`},
		{"Dropped", "1-2;1;0;9223372036854775807", `header Penstock-Dropped: got "1-2;1;0;9223372036854775807", expected first-last;rows;from;to: undecodable event`},
		{"Dropped", "3:1-2;1;0;0", `header Penstock-Dropped: got "3:1-2;1;0;0", expected first-last;rows;from;to: undecodable event`},
		{"Dropped", "1-2;1", `header Penstock-Dropped: got "1-2;1", expected first-last;rows;from;to: undecodable event`},
	} {
		f := header()
		if f["Penstock-"+c.name] = []string{c.value}; c.value == none {
			delete(f, "Penstock-"+c.name)
		}
		h, err := event.ParseHeader(f)
		if err == nil || err.Error() != c.expected {
			t.Errorf("%s %.60q: got\n%v\nexpected\n%s", c.name, c.value, err, c.expected)
		}
		if !errors.Is(err, event.ErrUndecodable) || !reflect.DeepEqual(h, event.Header{}) {
			t.Errorf("%s %.60q: got %+v beside %v", c.name, c.value, h, err)
		}
		if errors.Is(err, event.ErrSchema) != (c.name == "Schema") {
			t.Errorf("%s: only an unknown schema is ErrSchema", c.name)
		}
	}
}

func TestUnusableMarksNameTheHeader(t *testing.T) {
	for _, c := range []struct{ name, value, expected string }{
		{"Schema", "request/1", `header Penstock-Schema: got "request/1", expected mark/1: unknown schema`},
		{"Mark", "start", `header Penstock-Mark: got "start", expected heartbeat, barrier or end: undecodable event`},
		{"Run", "é", `header Penstock-Run: got "é", expected printable ASCII without spaces: undecodable event`},
		{"Watermark", "", `header Penstock-Watermark: got "", expected a whole number from -2208988800000000 to 7258118400000000: undecodable event`},
		{"Upto", "1,2", `header Penstock-Upto: got "1,2", expected 3 sequences: undecodable event`},
		{"Upto", "1,2,-3", `header Penstock-Upto: got "-3", expected a sequence: undecodable event`},
		{"Dropped", "3:1-2;1;0;0", `header Penstock-Dropped: got "3:1-2;1;0;0", expected a partition below 3: undecodable event`},
		{"Dropped", "1-2;1;0;0", `header Penstock-Dropped: got "1-2;1;0;0", expected first-last;rows;from;to: undecodable event`},
	} {
		f := mark()
		f["Penstock-"+c.name] = []string{c.value}
		m, err := event.ParseMark(f, 3)
		if err == nil || err.Error() != c.expected || !errors.Is(err, event.ErrUndecodable) || !reflect.DeepEqual(m, event.Mark{}) {
			t.Errorf("%s %q: got %+v\n%v\nexpected\n%s", c.name, c.value, m, err, c.expected)
		}
	}
}

func TestHeadersComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dropped := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event.Dropped {
			d := event.Dropped{First: rapid.Uint64Range(1, 1<<40).Draw(t, "first"), Rows: rapid.Int64Range(0, 1<<40).Draw(t, "rows")}
			d.Last = d.First + rapid.Uint64Range(0, 1<<20).Draw(t, "more")
			d.From = rapid.Int64Range(event.MinTime, event.MaxTime).Draw(t, "from")
			d.To = rapid.Int64Range(d.From, event.MaxTime).Draw(t, "to")
			return d
		}), 0, 3).Draw(t, "dropped")
		run := rapid.StringMatching(`[!-~]{1,128}`).Draw(t, "run")
		watermark := rapid.Int64Range(event.MinTime, event.MaxTime).Draw(t, "watermark")
		h := event.Header{
			Schema: rapid.SampledFrom([]string{event.RequestSchema, event.GaugeSchema}).Draw(t, "schema"),
			Run:    run, Seq: rapid.Uint64Range(1, math.MaxInt64).Draw(t, "seq"), Rows: rapid.IntRange(0, event.MaxRows).Draw(t, "rows"),
			Watermark: watermark, Malformed: rapid.Int64Range(0, 1<<48).Draw(t, "malformed"), Dropped: dropped,
			Encoding: rapid.SampledFrom([]string{"", event.EncodingS2}).Draw(t, "encoding"),
		}
		got, err := event.ParseHeader(h.Fields())
		if len(h.Dropped) == 0 {
			h.Dropped = nil
		}
		if err != nil || !reflect.DeepEqual(got, h) {
			t.Fatalf("got %+v, %v\nexpected %+v", got, err, h)
		}
		m := event.Mark{
			Kind: rapid.SampledFrom([]event.MarkKind{event.Heartbeat, event.Barrier, event.End}).Draw(t, "kind"), Run: run, Watermark: watermark,
			Upto: rapid.SliceOfN(rapid.Uint64Range(0, math.MaxInt64), 1, 25).Draw(t, "upto"), Dropped: h.Dropped,
		}
		for i := range m.Dropped {
			m.Dropped[i].Partition = i % len(m.Upto)
		}
		if got, err := event.ParseMark(m.Fields(), len(m.Upto)); err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("got %+v, %v\nexpected %+v", got, err, m)
		}
	})
}

func TestPartitionIsXXH64(t *testing.T) {
	trace := [16]byte{15: 1}
	for _, c := range []struct {
		name, owner, user string
		trace             [16]byte
		expected          int
	}{
		// XXH64 of "a" with seed 0 is 0xd24ec4f1a98c6e5b.
		{"owner first", "a", "b", trace, int(0xd24ec4f1a98c6e5b % uint64(8))},
		{"then user", "", "a", trace, int(0xd24ec4f1a98c6e5b % uint64(8))},
		{"nothing", "", "", [16]byte{}, 0},
	} {
		if got := event.Partition(c.owner, c.user, c.trace, 8); got != c.expected {
			t.Errorf("%s: got %d, expected %d", c.name, got, c.expected)
		}
	}
	if got, other := event.Partition("", "", trace, 1<<30), event.Partition(string(trace[:]), "", trace, 1<<30); got != other {
		t.Errorf("a trace is hashed by its 16 bytes: got %d, expected %d", got, other)
	}
}

func TestFieldsIsTheShapeOfHeaders(t *testing.T) {
	// What is handed to NATS must not be shared between messages.
	h := event.Header{Schema: event.RequestSchema, Run: "r", Seq: 1}
	a, b := h.Fields(), h.Fields()
	a["Penstock-Run"][0] = "changed"
	if maps.EqualFunc(a, b, func(x, y []string) bool { return x[0] == y[0] }) {
		t.Error("two calls share memory")
	}
}
