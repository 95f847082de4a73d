package shipping

import (
	"bytes"
	"errors"
	"testing"

	"penstock/consumers/executor/coder/catalog"
)

func samples() []blob {
	id := catalog.Identity{Coder: "objects", Instance: "i", Term: 3}
	change := catalog.Change{Seq: 5, Rows: []catalog.Row{{Table: 1, Key: []byte("k"), Value: []byte("v")}}}
	return []blob{
		{kind: kindOwner, id: id},
		{kind: kindLog, id: id, numbers: [3]uint64{5, 5}, body: catalog.AppendChange(nil, change)},
		{kind: kindPart, id: id, numbers: [3]uint64{5, 1}, body: catalog.AppendRow(nil, change.Rows[0])},
		{kind: kindSnapshot, id: id, numbers: [3]uint64{5, 7, 1}, body: make([]byte, sumBytes)},
	}
}

// FuzzBlob: blobs are refused, or mean what was sealed.
func FuzzBlob(f *testing.F) {
	for _, b := range samples() {
		f.Add(b.seal(), byte(b.kind), false)
		f.Add(b.seal(), byte(b.kind), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, k byte, mend bool) {
		if mend { // past the checksum, which fuzzing can't guess
			raw = reseal(raw)
		}
		b, err := unseal("a blob", kind(k), raw)
		if err != nil {
			if !errors.Is(err, ErrTorn) && !errors.Is(err, ErrFormat) {
				t.Fatalf("got error %v", err)
			}
			return
		}
		again, err := unseal("again", kind(k), b.seal())
		if err != nil || again.id != b.id || again.numbers != b.numbers || !bytes.Equal(again.body, b.body) {
			t.Fatalf("%+v became %+v, %v", b, again, err)
		}
		if list, err := b.changes("a blob"); err == nil && list[0].Seq != b.numbers[0] {
			t.Fatalf("changes %v", list)
		}
		_, _ = b.rows("a blob")
	})
}

// reseal gives bytes the checksum they need.
func reseal(raw []byte) []byte {
	if len(raw) < sumBytes {
		return raw
	}
	return seal(bytes.Clone(raw[:len(raw)-sumBytes]))
}

// TestUnseal: every bit that is flipped, and every cut, is found; another format is told as
// that.
func TestUnseal(t *testing.T) {
	t.Parallel()
	for _, b := range samples() {
		raw := b.seal()
		for i := range raw {
			if _, err := unseal("x", b.kind, raw[:i]); !errors.Is(err, ErrTorn) {
				t.Fatalf("%q cut at %d: %v", b.kind, i, err)
			}
			flipped := bytes.Clone(raw)
			flipped[i] ^= 1
			if _, err := unseal("x", b.kind, flipped); !errors.Is(err, ErrTorn) {
				t.Fatalf("%q flipped at %d: %v", b.kind, i, err)
			}
		}
		raw[len(blobMagic)]++
		if _, err := unseal("x", b.kind, reseal(raw)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q of another format: %v", b.kind, err)
		}
		if _, err := unseal("x", 'x', b.seal()); !errors.Is(err, ErrTorn) {
			t.Errorf("%q as another kind: %v", b.kind, err)
		}
	}
}

// FuzzName: a key that is a name is that name's only key.
func FuzzName(f *testing.F) {
	for _, n := range []name{
		{kind: kindLog, term: 1, first: 1, last: 1<<64 - 1},
		{kind: kindPart, term: 1<<32 - 1, first: 9, part: 1<<32 - 1},
		{kind: kindSnapshot, term: 2, first: 3},
	} {
		f.Add(n.key("objects"))
	}
	f.Add("objects/log/1-2-3.log")
	f.Add("objects/log/00000001-+000000000000001-0000000000000002.log")
	f.Fuzz(func(t *testing.T, key string) {
		if n, ok := parseName("objects", key); ok && n.key("objects") != key {
			t.Fatalf("%q is %+v, whose key is %q", key, n, n.key("objects"))
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, n := range []name{
		{kind: kindLog, term: 1, first: 1, last: 1<<64 - 1},
		{kind: kindPart, term: 1<<32 - 1, first: 9, part: 1<<32 - 1},
		{kind: kindSnapshot, term: 2, first: 3},
	} {
		if got, ok := parseName("objects", n.key("objects")); !ok || got != n {
			t.Errorf("%s: %+v, want %+v", n.key("objects"), got, n)
		}
	}
}

// TestCovered counts, for each change, the stores that have it.
func TestCovered(t *testing.T) {
	t.Parallel()
	log := func(first, last uint64) name {
		return name{kind: kindLog, term: 1, first: first, last: last, bytes: 10}
	}
	snap := func(term uint32, from uint64) name { return name{kind: kindSnapshot, term: term, first: from} }
	for what, tc := range map[string]struct {
		stores [][]name
		need   int
		term   uint32
		upTo   uint64
		want   bool
		from   uint64
	}{
		"nothing of nothing":      {[][]name{nil}, 1, 1, 0, true, 0},
		"nothing of something":    {[][]name{nil}, 1, 1, 1, false, 0},
		"one store":               {[][]name{{log(3, 5), log(1, 2)}}, 1, 1, 5, true, 0},
		"a hole":                  {[][]name{{log(1, 2), log(4, 5)}}, 1, 1, 5, false, 0},
		"overlapping":             {[][]name{{log(1, 3), log(2, 5)}}, 1, 1, 5, true, 0},
		"too short":               {[][]name{{log(1, 3)}}, 1, 1, 4, false, 0},
		"in turns":                {[][]name{{log(1, 2), log(5, 6)}, {log(1, 4)}, {log(3, 6)}}, 2, 1, 6, true, 0},
		"in turns, one too few":   {[][]name{{log(1, 2)}, {log(1, 4)}, {log(3, 6)}}, 2, 1, 6, false, 0},
		"behind a snapshot":       {[][]name{{snap(1, 4), log(5, 6)}}, 1, 1, 6, true, 4},
		"snapshot in too few":     {[][]name{{snap(1, 4), log(5, 6)}, {log(5, 6)}}, 2, 1, 6, false, 0},
		"later term, no snapshot": {[][]name{{log(1, 6)}}, 1, 2, 6, false, 0},
		"later term":              {[][]name{{snap(2, 6), snap(1, 6)}}, 1, 2, 6, true, 6},
		"snapshot after it":       {[][]name{{snap(2, 9)}}, 1, 2, 6, true, 9},
	} {
		got := covered(tc.stores, tc.need, tc.term, tc.upTo)
		if got.whole != tc.want || got.from != tc.from {
			t.Errorf("%s: %+v, want %v from %d", what, got, tc.want, tc.from)
		}
	}
}
