package event_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/klauspost/compress/s2"

	"penstock/schemas/corpus"
	"penstock/schemas/event"
)

// bodies adds the bodies of a kind as they are and decompressed, since what is
// compressed is hard to change into something meaningful.
func bodies(f *testing.F, kind string) {
	for _, c := range corpus.Of(kind) {
		f.Add(c.Data, c.S2)
		if c.S2 {
			raw, err := s2.Decode(nil, c.Data)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(raw, false)
		}
	}
}

func encodingOf(compressed bool) string {
	if compressed {
		return event.EncodingS2
	}
	return ""
}

func FuzzDecode(f *testing.F) {
	bodies(f, "batch")
	f.Fuzz(func(t *testing.T, body []byte, compressed bool) {
		var d event.Decoder
		var got event.Requests
		if err := d.Decode(body, encodingOf(compressed), &got); err != nil {
			if !errors.Is(err, event.ErrUndecodable) || got.Len() != 0 || len(got.Owner.Codes) != 0 {
				t.Fatalf("%d rows beside %v", got.Len(), err)
			}
			return
		}
		for i := range got.Len() {
			r := got.Row(i)
			// A sender may know one half of a position; nobody uses that.
			if r.HasPlace() {
				if err := r.Check(); err != nil {
					t.Fatalf("row %d: %v", i, err)
				}
			}
		}
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

func FuzzDecodeGauges(f *testing.F) {
	bodies(f, "gauges")
	f.Fuzz(func(t *testing.T, body []byte, compressed bool) {
		var d event.GaugeDecoder
		var got event.Gauges
		if err := d.Decode(body, encodingOf(compressed), &got); err != nil {
			if !errors.Is(err, event.ErrUndecodable) || got.Len() != 0 {
				t.Fatalf("%d rows beside %v", got.Len(), err)
			}
			return
		}
		for i := range got.Len() {
			g := got.Row(i)
			if err := g.Check(); err != nil {
				t.Fatalf("row %d: %v", i, err)
			}
		}
	})
}

// headers adds headers as JSON.
func headers(f *testing.F) {
	for _, kind := range []string{"header", "mark"} {
		for _, c := range corpus.Of(kind) {
			f.Add(c.Data)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	headers(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var fields event.Fields
		if json.Unmarshal(body, &fields) != nil {
			return
		}
		h, err := event.ParseHeader(fields)
		if err != nil {
			if !errors.Is(err, event.ErrUndecodable) || !reflect.DeepEqual(h, event.Header{}) {
				t.Fatalf("%+v beside %v", h, err)
			}
			return
		}
		if again, err := event.ParseHeader(h.Fields()); err != nil || !reflect.DeepEqual(again, h) {
			t.Fatalf("got %+v, %v\nexpected %+v", again, err, h)
		}
	})
}

func FuzzParseMark(f *testing.F) {
	headers(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var fields event.Fields
		if json.Unmarshal(body, &fields) != nil {
			return
		}
		m, err := event.ParseMark(fields, 8)
		if err != nil {
			if !errors.Is(err, event.ErrUndecodable) || !reflect.DeepEqual(m, event.Mark{}) {
				t.Fatalf("%+v beside %v", m, err)
			}
			return
		}
		if again, err := event.ParseMark(m.Fields(), 8); err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("got %+v, %v\nexpected %+v", again, err, m)
		}
	})
}
