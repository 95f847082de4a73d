package catalog

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"penstock/consumers/executor/coder/field"
	"penstock/consumers/executor/coder/object"
)

var epoch = time.Date(2015, 5, 17, 10, 0, 0, 0, time.UTC)

// samples are values of all tables.
func samples() map[Table][]byte {
	r := Record{
		Key: "key", Size: 1 << 40, ETag: "etag", Modified: epoch, Metadata: map[string]string{"a": "b", "c": ""},
		Checksums: []Checksum{{"CRC32C", "AAAA", false}, {"SHA256", "BBBB-2", true}},
		Headers:   Headers{"a", "b", "c", "d", "e", "f"}, Parts: []Piece{{"v", 1 << 40, 0}},
	}
	u := Upload{Created: epoch, Headers: r.Headers, Metadata: r.Metadata, Checksum: "CRC32", Composite: true}
	p := Part{Size: 5, ETag: "etag", Modified: epoch, Checksums: r.Checksums, Version: "v"}
	i := Intent{Since: epoch, Places: []object.Place{{Store: "s", Key: "k"}, {Store: "t", Key: "k"}}}
	return map[Table][]byte{
		buckets: field.AppendTime([]byte{valueFormat}, epoch), records: r.encode(), uploads: u.encode(), parts: p.encode(),
		intents: i.encode(), rests: Rest{true, []int{0, 3, 64}}.encode(),
		deletes: field.AppendText(appendNumber([]byte{valueFormat}, uint64(7)), "v"), repeats: (&Repeat{Version: "v", Due: epoch}).encode(),
	}
}

// again decodes a value and gives what it would be written as; false for tables whose values
// have a decoder elsewhere, or none.
func again(t Table, value []byte) (b []byte, err error, ok bool) {
	switch t {
	case buckets:
		x, err := decodeBucket("b", value)
		return field.AppendTime([]byte{valueFormat}, x.Created), err, true
	case records:
		r, manifest, err := decodeRecord("k", value)
		if manifest != "" {
			return nil, nil, false
		}
		return r.encode(), err, true
	case rests:
		r, err := decodeRest(value)
		return r.encode(), err, true
	case intents:
		i, err := decodeIntent("i", value)
		return i.encode(), err, true
	case deletes:
		d, err := decodeDeletion([]byte("s\x00k"), value)
		return field.AppendText(appendNumber([]byte{valueFormat}, d.seq), d.Version), err, true
	case repeats:
		r, err := decodeRepeat([]byte("s\x00k"), value)
		return r.encode(), err, true
	case uploads:
		u, err := decodeUpload("b", "k", "u", value)
		return u.encode(), err, true
	case parts:
		p, err := decodePart(1, value)
		return p.encode(), err, true
	case manifests, versions:
	}
	return nil, nil, false
}

// FuzzValues: what a decoder takes is what it would write.
func FuzzValues(f *testing.F) {
	for t, value := range samples() {
		f.Add(uint8(t), value)
		for i := range value {
			f.Add(uint8(t), value[:i])
		}
	}
	f.Fuzz(func(t *testing.T, table uint8, value []byte) {
		got, err, ok := again(Table(table), value)
		switch {
		case !ok:
		case err != nil:
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrFormat) {
				t.Fatalf("got error %v", err)
			}
		case !bytes.Equal(got, value):
			t.Fatalf("%v: %x is written as %x", Table(table), value, got)
		}
	})
}

// TestValuesOfAnotherFormat are refused as that, and values with a byte more or less as
// damaged.
func TestValuesOfAnotherFormat(t *testing.T) {
	t.Parallel()
	for table, value := range samples() {
		if got, err, _ := again(table, value); err != nil || !bytes.Equal(got, value) {
			t.Errorf("%v: %v", table, err)
		}
		if _, err, _ := again(table, append(bytes.Clone(value), 0)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%v with a byte more: %v", table, err)
		}
		for i := range value {
			if _, err, _ := again(table, value[:i]); !errors.Is(err, ErrDamaged) {
				t.Errorf("%v cut at %d: %v", table, i, err)
			}
		}
		other := bytes.Clone(value)
		other[0]++
		if _, err, _ := again(table, other); !errors.Is(err, ErrFormat) {
			t.Errorf("%v of another format: %v", table, err)
		}
	}
}

// FuzzChange: what ReadChange takes is what AppendChange writes.
func FuzzChange(f *testing.F) {
	c := Change{7, []Row{{records, []byte("b\x00k"), []byte("value")}, {rests, []byte("v"), nil}, {deletes, []byte("s\x00k"), []byte{}}}}
	whole := AppendChange(nil, c)
	f.Add(whole)
	f.Add(append(whole, whole...))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, rest, err := ReadChange(b)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrFormat) {
				t.Fatalf("got error %v", err)
			}
			return
		}
		if got := append(AppendChange(nil, c), rest...); !bytes.Equal(got, b) {
			t.Fatalf("%x is written as %x", b, got)
		}
	})
}

// TestCheckFinds damages a catalog in each way that Check is there for.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	s := samples()
	for name, tc := range map[string]struct {
		rows []Row
		want string
	}{
		"record of no bucket":   {[]Row{{records, []byte("b\x00k"), s[records]}}, "of no bucket"},
		"record of no version":  {[]Row{{records, []byte("b\x00k"), s[records]}}, "refers to version v, which isn't there"},
		"two of one version":    {[]Row{{records, []byte("b\x00k"), s[records]}, {records, []byte("b\x00l"), s[records]}}, "version v is of"},
		"version of nothing":    {[]Row{{versions, []byte("v"), []byte("x")}}, "of no record and no part"},
		"damaged version":       {[]Row{{versions, []byte("v"), []byte("x")}}, "catalog is damaged"},
		"rest of no version":    {[]Row{{rests, []byte("v"), s[rests]}}, "no such version"},
		"manifest of no record": {[]Row{{manifests, []byte("v"), s[rests]}}, "of no record"},
		"upload of no bucket":   {[]Row{{uploads, []byte("b\x00k\x00u"), s[uploads]}}, "of no bucket"},
		"part of no upload":     {[]Row{{parts, []byte("b\x00k\x00u\x00\x00\x01"), s[parts]}}, "of no upload"},
		"blob of two":           {[]Row{{intents, []byte("i"), s[intents]}, {deletes, []byte("s\x00k"), s[deletes]}}, "blob s/k is of"},
		"blob gone and queued":  {[]Row{{deletes, []byte("s\x00k"), s[deletes]}, {repeats, []byte("s\x00k"), s[repeats]}}, "blob s/k is of"},
	} {
		c, err := Open(t.TempDir()+"/catalog", Options{Coder: "c", NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		err = c.change(t.Context(), func(v *view) error {
			v.rows = tc.rows
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		report, err := c.Check(t.Context())
		if all := strings.Join(report.Problems, "\n"); err != nil || !strings.Contains(all, tc.want) {
			t.Errorf("%s: found %q (%v), want %q", name, all, err, tc.want)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
