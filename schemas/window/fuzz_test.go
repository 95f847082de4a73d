package window_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/klauspost/compress/s2"

	"penstock/schemas/corpus"
	"penstock/schemas/window"
)

func FuzzDecodeTable(f *testing.F) {
	for _, c := range corpus.Of("pane") {
		raw, err := s2.Decode(nil, c.Data)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, false)
		f.Add(c.Data, true)
	}
	f.Fuzz(func(t *testing.T, body []byte, compressed bool) {
		if !compressed {
			body = s2.Encode(nil, body)
		}
		got, err := window.DecodeTable(body)
		if err != nil {
			if !errors.Is(err, window.ErrUndecodable) || got != nil {
				t.Fatalf("%v beside %v", got, err)
			}
			return
		}
		if merged := window.Merge(got.Rollup, got); dump(merged) != dump(got) {
			t.Fatalf("a decoded pane is not sorted:\n%s", dump(got))
		}
		again, err := got.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		second, err := window.DecodeTable(again)
		if err != nil || dump(second) != dump(got) {
			t.Fatalf("got\n%v, %v\nexpected\n%s", second, err, dump(got))
		}
	})
}

func FuzzDecodeCommit(f *testing.F) {
	for _, c := range corpus.Of("commit") {
		f.Add(c.Data)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := window.DecodeCommit(body)
		if err != nil {
			if !errors.Is(err, window.ErrUndecodable) || got != nil {
				t.Fatalf("%v beside %v", got, err)
			}
			return
		}
		again, err := got.Encode()
		if err != nil || !json.Valid(again) {
			t.Fatalf("%s, %v", again, err)
		}
		second, err := window.DecodeCommit(again)
		if err != nil {
			t.Fatal(err)
		}
		if third, err := second.Encode(); err != nil || !bytes.Equal(third, again) {
			t.Fatalf("got %s, %v\nexpected %s", third, err, again)
		}
	})
}
