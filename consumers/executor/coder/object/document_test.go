package object

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/consumers/executor/coder/field"
)

// sign puts the SHA-256 behind a body, so that what is wrong in it is looked at.
func sign(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(slices.Clone(body), sum[:]...)
}

// TestDocumentsComeBack: what is parsed is what was meant, and is written as it was.
func TestDocumentsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(codings()).Draw(t, "coding")
		v := &Version{
			Key:         rapid.StringN(1, 100, maxKey).Draw(t, "key"),
			ID:          rapid.StringN(1, 20, maxID).Draw(t, "id"),
			Time:        time.UnixMicro(rapid.Int64Range(-1e15, 1e17).Draw(t, "time")).UTC(),
			Coding:      c,
			Shape:       c.shape(rapid.Int64Range(0, 4*4096).Draw(t, "size"), 4096),
			ETag:        rapid.StringN(0, 20, maxETag).Draw(t, "etag"),
			ContentType: rapid.StringN(0, 20, maxContentType).Draw(t, "type"),
		}
		if m := rapid.MapOfN(rapid.StringN(1, 10, 40), rapid.StringN(0, 10, 40), 0, 20).Draw(t, "metadata"); len(m) > 0 {
			v.Metadata = m
		}
		copy(v.SHA256[:], noise(rapid.Uint64().Draw(t, "sums"), 32))
		v.Shape, _, _ = v.Shape.Write(0, rapid.IntRange(0, 7).Draw(t, "cut"))
		absent := rapid.IntRange(0, max(0, v.Shape.Blobs()-v.Shape.Cut)).Draw(t, "absent")
		for i := range v.Shape.Blobs() {
			p := Place{rapid.StringN(1, 10, maxStore).Draw(t, "store"), fmt.Sprint(i)}
			if absent > 0 && rapid.Bool().Draw(t, "landed") {
				absent--
				p = Place{}
			}
			v.Places = append(v.Places, p)
		}
		for i := range v.Shape.Segments() * v.Shape.N {
			v.Sums = append(v.Sums, uint64(i)*0x9e3779b97f4a7c15)
		}
		b, err := v.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(b)
		if err != nil || !reflect.DeepEqual(got, v) {
			t.Fatalf("%v: %+v, want %+v", err, got, v)
		}
		again, err := got.AppendBinary([]byte("before"))
		if err != nil || !bytes.Equal(again, append([]byte("before"), b...)) {
			t.Fatalf("not written as it was: %v", err)
		}
	})
}

// TestAnyDamageToADocumentIsFound: every bit, every length.
func TestAnyDamageToADocumentIsFound(t *testing.T) {
	t.Parallel()
	b, err := put(t, SpreadCoding(3, 2), 4096, "k", "v", noise(30, 5000)).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(b) {
		if _, err := Parse(flip(b, bit)); !errors.Is(err, ErrDocument) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	for n := range b {
		if _, err := Parse(b[:n]); !errors.Is(err, ErrDocument) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if _, err := Parse(append(slices.Clone(b), 0)); !errors.Is(err, ErrDocument) {
		t.Fatal(err)
	}
	if _, err := Parse(make([]byte, MaxDocument+1)); !errors.Is(err, ErrDocument) {
		t.Fatal(err)
	}
}

func TestAnUnknownSchemaIsLeftAlone(t *testing.T) {
	t.Parallel()
	b, err := put(t, SpreadCoding(3, 2), 4096, "k", "v", nil).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	body := slices.Clone(b[:len(b)-sha256.Size])
	body[4] = documentSchema + 1
	if _, err := Parse(sign(body)); !errors.Is(err, ErrSchema) {
		t.Error(err)
	}
}

// TestBodiesThatAreRefused are signed rightly: only what they say is wrong.
func TestBodiesThatAreRefused(t *testing.T) {
	t.Parallel()
	head := append([]byte(documentMagic), documentSchema)
	text := func(b []byte, texts ...string) []byte {
		for _, s := range texts {
			b = field.AppendText(b, s)
		}
		return b
	}
	numbers := func(b []byte, ns ...uint64) []byte {
		for _, n := range ns {
			b = binary.AppendUvarint(b, n)
		}
		return b
	}
	sums := make([]byte, 32+16)
	start := numbers(text(head, "k", "v"), 0)
	empty := numbers(start, 2, 3, 2, 2, 3, 1, 1, 4096, 0) // shape of nothing: copies
	good := numbers(text(append(slices.Clone(empty), sums...), "", ""), 0, 0)
	if _, err := Parse(sign(good)); err != nil {
		t.Fatal("the good one:", err)
	}
	for name, body := range map[string][]byte{
		"no key":               numbers(text(head, "", "v"), 0),
		"endless key":          append(slices.Clone(head), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
		"a key longer than b":  numbers(head, 1000),
		"a varint too long":    append(slices.Clone(head), 0x81, 0x00, 'k'),
		"a count too long":     append(slices.Clone(good[:len(good)-1]), 0x80, 0x00),
		"a varint cut off":     append(slices.Clone(head), 0x80),
		"a varint of 11 bytes": append(slices.Clone(head), bytes.Repeat([]byte{0x80}, 11)...),
		"bytes after it":       append(slices.Clone(good), 0),
		"shared of 119":        numbers(start, 1, 119, 60, 1, 119, 60, 1, 4096, 0),
		"layouts differ":       numbers(text(append(numbers(start, 1, 120, 60, 2, 3, 1, 1, 4096, 0), sums...), "", ""), 0, 0),
		"a size beyond all":    numbers(start, 2, 3, 2, 2, 3, 2, 2, 4096, 1<<63),
		"a million segments":   numbers(text(append(numbers(start, 2, 3, 2, 2, 3, 2, 2, 4096, 1<<36), sums...), "", ""), 0, 0),
		"sums cut off":         numbers(text(append(numbers(start, 2, 3, 2, 2, 3, 2, 2, 4096, 1000), sums...), "", ""), 0, 0),
		"metadata unordered":   numbers(text(numbers(text(append(slices.Clone(empty), sums...), "", ""), 2), "b", "", "a", ""), 0),
		"metadata twice":       numbers(text(numbers(text(append(slices.Clone(empty), sums...), "", ""), 2), "a", "", "a", ""), 0),
		"too much metadata":    numbers(text(append(slices.Clone(empty), sums...), "", ""), maxFields+1),
		"a place of no blob":   text(numbers(text(append(slices.Clone(empty), sums...), "", ""), 0, 1), "s", "k"),
		"too few blobs":        numbers(text(numbers(text(append(numbers(start, 2, 1, 1, 2, 1, 1, 1, 4096, 1), sums...), "", ""), 0, 1), "", ""), 0, 0, 0, 0, 0, 0, 0, 0),
		"half a place":         numbers(text(numbers(text(append(numbers(start, 2, 1, 1, 2, 1, 1, 1, 4096, 1), sums...), "", ""), 0, 1), "s", ""), 0, 0, 0, 0, 0, 0, 0, 0),
		"a cut of spread":      numbers(text(append(numbers(start, 2, 3, 2, 2, 3, 2, 1, 4096, 0), sums...), "", ""), 0, 0),
		"no cut":               numbers(text(append(numbers(start, 1, 120, 60, 1, 120, 60, 0, 4096, 0), sums...), "", ""), 0, 0),
		"not UTF-8":            numbers(text(append(slices.Clone(empty), sums...), "\xff", ""), 0, 0),
		"a time beyond all":    numbers(text(append(numbers(numbers(text(head, "k", "v"), 1<<63), 2, 3, 2, 2, 3, 1, 1, 4096, 0), sums...), "", ""), 0, 0),
	} {
		if v, err := Parse(sign(body)); !errors.Is(err, ErrDocument) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

// TestVersionsThatCantBeWritten are refused before anything is.
func TestVersionsThatCantBeWritten(t *testing.T) {
	t.Parallel()
	many := make(map[string]string)
	for i := range maxFields + 1 {
		many[fmt.Sprint(i)] = ""
	}
	for name, change := range map[string]func(*Version){
		"key":           func(v *Version) { v.Key = "" },
		"id":            func(v *Version) { v.ID = strings.Repeat("x", maxID+1) },
		"etag":          func(v *Version) { v.ETag = strings.Repeat("x", maxETag+1) },
		"type":          func(v *Version) { v.ContentType = "\xff" },
		"metadata":      func(v *Version) { v.Metadata = map[string]string{"": "x"} },
		"metadata size": func(v *Version) { v.Metadata = map[string]string{"a": strings.Repeat("x", maxMetadata)} },
		"fields":        func(v *Version) { v.Metadata = many },
		"sums":          func(v *Version) { v.Sums = v.Sums[1:] },
		"places":        func(v *Version) { v.Places = v.Places[1:] },
		"one place":     func(v *Version) { v.Places = []Place{v.Places[0], v.Places[0], v.Places[2]} },
		"store":         func(v *Version) { v.Places = []Place{{"", "x"}, v.Places[1], v.Places[2]} },
		"half a place":  func(v *Version) { v.Places = []Place{{"s", ""}, v.Places[1], v.Places[2]} },
		"too few":       func(v *Version) { v.Places = []Place{{}, {}, v.Places[2]} },
		"cut":           func(v *Version) { v.Shape.Cut = 0 },
		"cut of spread": func(v *Version) { v.Shape.Cut = 1 },
		"coding":        func(v *Version) { v.Coding.K = 9 },
		"shape":         func(v *Version) { v.Shape.Size = -1 },
		"layout":        func(v *Version) { v.Coding = SharedCoding() },
		"time":          func(v *Version) { v.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		v := *put(t, SpreadCoding(3, 2), 4096, "k", "v", noise(31, 5000)).Version
		v.Metadata = maps.Clone(v.Metadata)
		change(&v)
		if b, err := v.AppendBinary([]byte("x")); !errors.Is(err, ErrDocument) || string(b) != "x" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := NewDecoder(&v); !errors.Is(err, ErrDocument) {
			t.Errorf("%s: a decoder: %v", name, err)
		}
	}
}

// TestTheGreatestDocumentFits in the bound that readers allocate by.
func TestTheGreatestDocumentFits(t *testing.T) {
	t.Parallel()
	c := SpreadCoding(MaxSpread, 1)
	v := &Version{
		Key: strings.Repeat("k", maxKey), ID: strings.Repeat("v", maxID), ETag: strings.Repeat("e", maxETag),
		ContentType: strings.Repeat("c", maxContentType), Coding: c, Metadata: make(map[string]string),
		Shape: c.shape(MinSegment*(MaxStrips/MaxSpread), MinSegment),
		Sums:  make([]uint64, MaxStrips),
	}
	for i := range maxFields {
		name := fmt.Sprintf("%04d", i)
		v.Metadata[name] = strings.Repeat("m", maxMetadata/maxFields-len(name))
	}
	for i := range MaxSpread {
		v.Places = append(v.Places, Place{strings.Repeat("s", maxStore), fmt.Sprintf("%0*d", maxKey, i)})
	}
	b, err := v.MarshalBinary()
	if err != nil || len(b) > MaxDocument {
		t.Fatalf("%d bytes of %d: %v", len(b), MaxDocument, err)
	}
	if got, err := Parse(b); err != nil || !reflect.DeepEqual(got.Places, v.Places) {
		t.Fatal(err)
	}
}

func TestAsMeant(t *testing.T) {
	t.Parallel()
	s := put(t, SpreadCoding(4, 2), 4096, "k", "v", noise(32, 5000))
	for c, want := range map[Coding]bool{SpreadCoding(4, 2): true, SpreadCoding(6, 4): false, SpreadCoding(4, 3): false, SharedCoding(): false} {
		if s.AsMeant(c) != want {
			t.Errorf("%+v: %v", c, !want)
		}
	}
}

// FuzzParse: bodies are signed, so that the fuzzer gets behind the checksum. What is
// parsed is valid and written as it was.
func FuzzParse(f *testing.F) {
	for _, name := range goldenNames() {
		// Long ones have the same fields and more checksums, and take minutes to minimise.
		if b := golden(f, name, "document"); len(b) < 512 {
			f.Add(b[:len(b)-sha256.Size])
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b := sign(body)
		v, err := Parse(b)
		if err != nil {
			if !errors.Is(err, ErrDocument) && !errors.Is(err, ErrSchema) {
				t.Fatal(err)
			}
			return
		}
		if again, err := v.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%v: %x became %x", err, b, again)
		}
		if _, err := NewDecoder(v); err != nil {
			t.Fatal(err)
		}
	})
}
