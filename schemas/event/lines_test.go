package event_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"penstock/schemas/corpus"
	"penstock/schemas/event"
)

// lineOf writes a row as another language would: with the standard library, and
// nothing that is absent.
func lineOf(t testing.TB, r *event.Request) []byte {
	t.Helper()
	m := map[string]any{"time": r.Time, "mark": r.Mark, "op": r.Op.String(), "bytes": r.Bytes}
	text := func(name, v string) {
		if v != "" {
			m[name] = v
		}
	}
	number := func(name string, v, absent int64) {
		if v != absent {
			m[name] = v
		}
	}
	text("id", r.ID)
	text("user", r.User)
	text("owner", r.Owner)
	text("from_component", r.FromComponent)
	text("from_site", r.FromSite)
	text("to_component", r.ToComponent)
	text("to_site", r.ToSite)
	text("to_server", r.ToServer)
	text("class", r.Class)
	text("outcome", r.Outcome)
	number("wait_us", r.Wait, event.NullInt)
	number("service_us", r.Service, event.NullInt)
	number("network_us", r.Network, event.NullInt)
	number("overdue_us", r.Overdue, event.NullInt)
	number("status", int64(r.Status), event.NullStatus)
	number("n", int64(r.N), 0)
	number("k", int64(r.K), 0)
	if r.Trace != [16]byte{} {
		m["trace"] = hex.EncodeToString(r.Trace[:])
	}
	if r.HasPlace() {
		m["lat"], m["lon"] = r.Lat, r.Lon
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func linesOf(t testing.TB, b *event.Requests) []byte {
	t.Helper()
	var out bytes.Buffer
	for i := range b.Len() {
		r := b.Row(i)
		out.Write(lineOf(t, &r))
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// Rows are the same whether they come as lines or in columns.
func TestLinesAreTheRowsOfColumns(t *testing.T) {
	var d event.Decoder
	var got event.Requests
	for _, rows := range []int{0, 1, 1000, event.MaxRows, 3} {
		b := fullBatch(rows)
		body := linesOf(t, b)
		if err := d.Decode(body, event.EncodingJSONL, &got); err != nil {
			t.Fatalf("%d rows: %v", rows, err)
		}
		clear(body) // Nothing of the result lives in it.
		sameRows(t, &got, b)
	}
}

func TestSpellingsOfLines(t *testing.T) {
	var got event.Requests
	for _, f := range corpus.Of("lines") {
		if f.Path() != "good/lines-spellings" {
			continue
		}
		if err := new(event.Decoder).Decode(f.Data, event.EncodingJSONL, &got); err != nil {
			t.Fatal(err)
		}
	}
	a := event.NewRequest(1_431_857_103_000_000)
	a.Op, a.Bytes, a.Wait, a.Service, a.Status, a.N, a.Lat = event.Write, 5, 5, -7, 404, 6, 37.5
	b := event.NewRequest(1_431_857_103_500_000)
	b.Bytes, b.Owner = 5, "b"
	c := event.NewRequest(1_431_857_103_123_456)
	c.Mark, c.Bytes, c.Owner, c.Status = event.Future, event.MaxRequestBytes, "7", 0
	expected := []event.Request{a, b, c}
	if got.Len() != len(expected) {
		t.Fatalf("%d rows", got.Len())
	}
	for i, e := range expected {
		if g := got.Row(i); !sameRow(g, e) {
			t.Errorf("row %d: got\n%+v\nexpected\n%+v", i, g, e)
		}
	}
	escaped := `{"time":1431857103,"op":"read","bytes":1,"user":"\u0061\"\\\ud83d\ude00","owner":"\u00e9"}`
	if err := new(event.Decoder).Decode([]byte(escaped), event.EncodingJSONL, &got); err != nil {
		t.Fatal(err)
	}
	if r := got.Row(0); r.User != `a"\😀` || r.Owner != "é" {
		t.Errorf("user %q, owner %q", r.User, r.Owner)
	}
}

func TestLinesBeyondTheLimits(t *testing.T) {
	line := []byte(`{"time":1431857103,"op":"read","bytes":1}` + "\n")
	for _, c := range []struct {
		name, expected string
		body           []byte
	}{
		{"rows", "more than 8192 rows, expected at most 8192", bytes.Repeat(line, event.MaxRows+1)},
		{"bytes", "body of 8388609 bytes, expected at most 8388608", make([]byte, event.MaxDecoded+1)},
	} {
		got := fullBatch(7)
		err := new(event.Decoder).Decode(c.body, event.EncodingJSONL, got)
		if err == nil || !strings.HasPrefix(err.Error(), c.expected+": ") || !errors.Is(err, event.ErrUndecodable) || got.Len() != 0 {
			t.Errorf("%s: %d rows and %v, expected %s", c.name, got.Len(), err, c.expected)
		}
	}
	var got event.Requests
	if err := new(event.Decoder).Decode(bytes.Repeat(line, event.MaxRows), event.EncodingJSONL, &got); err != nil || got.Len() != event.MaxRows {
		t.Errorf("%d rows, %v", got.Len(), err)
	}
}

// What one reader skips is checked all the same: a batch is good for all groups
// of an aggregator or for none.
func TestColumnsThatAreSkippedOnLines(t *testing.T) {
	b := fullBatch(100)
	var d event.Decoder
	d.Columns("owner", "bytes")
	got := *fullBatch(7)
	if err := d.Decode(linesOf(t, b), event.EncodingJSONL, &got); err != nil {
		t.Fatal(err)
	}
	if got.Len() != 100 || got.Status != nil || got.Op != nil || got.User.Codes != nil || got.Trace != nil {
		t.Errorf("%d rows; status %v, op %v", got.Len(), got.Status, got.Op)
	}
	for i := range got.Len() {
		if got.Owner.At(i) != b.Owner.At(i) || got.Bytes[i] != b.Bytes[i] || got.Time[i] != b.Time[i] {
			t.Fatalf("row %d is not as sent", i)
		}
	}
	bad := `{"time":1431857103,"op":"read","bytes":1,"status":"good"}`
	if err := d.Decode([]byte(bad), event.EncodingJSONL, &got); err == nil {
		t.Error("a bad status passes where nobody reads it")
	}
}

// Decoding lines allocates for names that are new to the batch, not for rows.
func TestLinesAllocatePerName(t *testing.T) {
	b := new(event.Requests)
	for i := range 4000 {
		r := event.NewRequest(1_431_943_200_000_000 + int64(i))
		r.Owner, r.User, r.ToSite, r.Bytes, r.Status = fmt.Sprint("owner-", i%20), "é", "east", int64(i), 200
		b.Append(&r)
	}
	body := linesOf(t, b)
	var d event.Decoder
	var got event.Requests
	decode := func() {
		if err := d.Decode(body, event.EncodingJSONL, &got); err != nil {
			t.Fatal(err)
		}
	}
	decode()
	// Under the race detector pools forget every other time what they are given,
	// and the standard library's check of each line has one.
	if n := testing.AllocsPerRun(5, decode); n >= 4000 {
		t.Errorf("%v allocations for 22 names in 4000 rows", n)
	}
}

func FuzzDecodeLines(f *testing.F) {
	for _, kind := range []string{"lines", "request"} {
		for _, c := range corpus.Of(kind) {
			f.Add(c.Data)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var d event.Decoder
		var got event.Requests
		if err := d.Decode(body, event.EncodingJSONL, &got); err != nil {
			if !errors.Is(err, event.ErrUndecodable) || got.Len() != 0 || len(got.Owner.Codes) != 0 {
				t.Fatalf("%d rows beside %v", got.Len(), err)
			}
			return
		}
		for i := range got.Len() {
			r := got.Row(i)
			if math.IsNaN(float64(r.Lat)) != math.IsNaN(float64(r.Lon)) {
				r.Lat, r.Lon = 0, 0 // One half of a position; nobody uses that.
			}
			if err := r.Check(); err != nil {
				t.Fatalf("row %d: %v", i, err)
			}
		}
		// What was read as lines is what columns hold.
		var e event.Encoder
		again, err := e.Encode(nil, &got)
		if err != nil {
			t.Fatal(err)
		}
		var second event.Requests
		if err := d.Decode(again, event.EncodingS2, &second); err != nil {
			t.Fatal(err)
		}
		sameRows(t, &second, &got)
	})
}

// BenchmarkEncodings decodes full batches of one kind of traffic in each encoding.
func BenchmarkEncodings(b *testing.B) {
	batch := new(event.Requests)
	for i := range event.MaxRows {
		r := event.NewRequest(1_431_943_200_000_000 + int64(i)*100)
		r.User, r.Owner = fmt.Sprintf("user-%d", i*7%2500), fmt.Sprintf("owner-%d", i*13%500)
		r.ToComponent, r.ToSite, r.FromSite = "osn", []string{"us-east", "us-central", "us-west"}[i%3], "us-west"
		r.Bytes, r.Status, r.Wait, r.Service, r.Network = int64(i), 200, 10, 2000+int64(i%50), 61_000
		r.Lat, r.Lon = 30.25+float32(i%100)/8, -80.5
		batch.Append(&r)
	}
	lines := linesOf(b, batch)
	var e event.Encoder
	arrow, err := e.Encode(nil, batch)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, encoding string
		body           []byte
	}{{"arrow-s2", event.EncodingS2, arrow}, {"jsonl", event.EncodingJSONL, lines}} {
		b.Run(c.name, func(b *testing.B) {
			var d event.Decoder
			var into event.Requests
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Decode(c.body, c.encoding, &into); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*event.MaxRows/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(len(c.body))/event.MaxRows, "bytes/row")
		})
	}
}
