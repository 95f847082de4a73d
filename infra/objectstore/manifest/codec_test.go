package manifest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/infra/objectstore"
)

func drawDocument(t *rapid.T) *document {
	d := &document{header: header{
		Identity: rapid.String().Draw(t, "identity"), Counter: rapid.Uint64().Draw(t, "counter"),
		Changes: rapid.Uint64().Draw(t, "changes"), Sweeps: rapid.Uint64().Draw(t, "sweeps"),
		Mark: objectstore.Mark{State: objectstore.Retired, Version: rapid.Uint64().Draw(t, "version"), Site: rapid.String().Draw(t, "site")},
	}}
	if rapid.Bool().Draw(t, "held") {
		d.Lease = &lease{ID: newID(), Beat: rapid.Uint64().Draw(t, "beat"), TTLMillis: 1000}
	}
	d.entries = []entry{}
	for _, name := range rapid.SliceOfDistinct(rapid.StringN(1, 20, -1), rapid.ID[string]).Draw(t, "names") {
		e := entry{name: name, blob: rapid.String().Draw(t, "blob"), size: rapid.Int64Min(0).Draw(t, "size")}
		if rapid.Bool().Draw(t, "plain") {
			e.version = rapid.StringN(1, 9, -1).Draw(t, "version")
		} else {
			e.sum = sha256.Sum256([]byte(name))
		}
		i, _ := d.find(name)
		d.entries = append(d.entries[:i], append([]entry{e}, d.entries[i:]...)...)
	}
	return d
}

func TestCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDocument(t)
		b, err := d.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(b)
		if err != nil || !reflect.DeepEqual(got, d) {
			t.Fatalf("%+v comes back as %+v, %v", d, got, err)
		}
		if len(b) > 0 {
			i := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			b[i] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
			if _, err := decode(b); err == nil {
				t.Fatalf("a document with a wrong bit at %d is taken", i)
			}
		}
	})
}

// FuzzDecode: no bytes make decode panic, and what it takes it writes again.
func FuzzDecode(f *testing.F) {
	d := many(3)
	b, err := d.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decode(sealed(b))
		if err != nil {
			return
		}
		again, err := d.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decode(again); err != nil || !reflect.DeepEqual(back, d) {
			t.Fatalf("written again: %v", err)
		}
	})
}

// sealed gives bytes the checksum that lets decode look at them.
func sealed(b []byte) []byte {
	d := document{}
	head, _ := d.encode()
	if bytes.HasPrefix(b, []byte(magic)) && len(b) >= 8 {
		return seal(b[:len(b)-4])
	}
	return seal(append(head[:4:4], b...))
}

func many(n int) *document {
	d := &document{header: header{Identity: newID(), Counter: uint64(n), Ops: make([]string, maxOps)}}
	for i := range d.Ops {
		d.Ops[i] = newID()
	}
	for i := range n {
		name := fmt.Sprintf("photos/2015/%05d.jpg", i)
		d.entries = append(d.entries, entry{name: name, blob: newBlob(time.Now()), size: int64(i) * 1000, sum: sha256.Sum256([]byte(name))})
	}
	return d
}

// TestDocumentSize: an object takes about 60 bytes of a document, so that a
// megabyte holds the 10,000 of a large owner.
func TestDocumentSize(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 10_000} {
		b, err := many(n).encode()
		ok(t, err)
		t.Logf("%6d objects: %d bytes, %.1f each", n, len(b), float64(len(b))/float64(max(n, 1)))
		if len(b) > 700+65*n {
			t.Errorf("%d objects take %d bytes", n, len(b))
		}
	}
}

func BenchmarkPut(b *testing.B) {
	for _, n := range []int{0, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := NewMemory(nil)
			s := open(b, m, Options{Grace: time.Nanosecond})
			body, err := many(n).encode()
			ok(b, err)
			_, err = m.Set(b.Context(), "o", body, "")
			ok(b, err)
			b.ReportAllocs()
			for b.Loop() {
				_, err := s.Put(b.Context(), "o", "photos/2015/00500.jpg", strings.NewReader("x"), writable)
				ok(b, err)
			}
		})
	}
}
