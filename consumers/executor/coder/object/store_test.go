package object

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"
)

// stored is a version and its blobs, as stores would keep them.
type stored struct {
	*Version
	blobs [][]byte
}

// tester is what tests, benchmarks and rapid have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

var written = time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)

// put encodes data and writes each chunk where Shape says that it lies.
func put(t tester, c Coding, segment int64, key, id string, data []byte) stored {
	t.Helper()
	e, err := NewEncoder(c, segment)
	if err != nil {
		t.Fatal(err)
	}
	return putWith(t, e, key, id, data)
}

func putWith(t tester, e *Encoder, key, id string, data []byte) stored {
	t.Helper()
	if err := e.Reset(key, id); err != nil {
		t.Fatal(err)
	}
	var blobs [][]byte
	r := bytes.NewReader(data)
	for segment := 0; ; segment++ {
		s, err := e.Next(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for len(blobs) < s.Blobs() {
			blobs = append(blobs, nil)
		}
		for i := range s.N {
			c, err := s.Run(segment, i, 1)
			if err != nil {
				t.Fatal(err)
			}
			if int(c.Offset) != len(blobs[c.Blob]) {
				t.Fatalf("frame %d of segment %d at %d, want %d", i, segment, c.Offset, len(blobs[c.Blob]))
			}
			blobs[c.Blob] = append(blobs[c.Blob], e.Frames(i, 1)...)
		}
	}
	info := Info{Time: written, ContentType: "text/plain", Metadata: map[string]string{"b": "2", "a": "1"}}
	info.Places = placesOf(id, len(blobs))
	v, err := e.Finish(info)
	if err != nil {
		t.Fatal(err)
	}
	return stored{v, blobs}
}

func placesOf(id string, n int) (places []Place) {
	for i := range n {
		places = append(places, Place{fmt.Sprintf("store-%d", i), fmt.Sprintf("blobs/%s/%d", id, i)})
	}
	return places
}

// staged is what was put, as a write in (n,k) of which only some blobs landed leaves it.
func (s stored) staged(t tester, n, k int, landed func(blob int) bool) stored {
	t.Helper()
	shape, n, _ := s.Shape.Write(n, k)
	blobs, places := make([][]byte, shape.Blobs()), make([]Place, shape.Blobs())
	for i, p := range placesOf(s.ID, n) {
		if landed(i) {
			first, count := shape.Strips(i)
			for segment := range shape.Segments() {
				at := segment*shape.N + first
				blobs[i] = append(blobs[i], bytes.Join(inOrder(s)[at:at+count], nil)...)
			}
			places[i] = p
		}
	}
	v, err := s.Lie(shape.Cut, places)
	if err != nil {
		t.Fatal(err)
	}
	return stored{v, blobs}
}

// fetch answers a chunk as a store would: what there is of it.
func (s stored) fetch(c Chunk) []byte {
	b := s.blobs[c.Blob]
	return b[min(int(c.Offset), len(b)):min(int(c.Offset+c.Bytes), len(b))]
}

// add gives the decoder a run of strips through Room and Fill.
func (s stored) add(t tester, d *Decoder, c Chunk) []Fault {
	t.Helper()
	got := copy(d.Room(c.First, c.Count), s.fetch(c))
	faults, err := d.Fill(c.First, c.Count, int64(got))
	if err != nil {
		t.Fatal(err)
	}
	return faults
}

// read reads a byte range, giving the decoder all strips for which keep is true.
func (s stored) read(t tester, d *Decoder, offset, n int64, keep func(segment, strip int) bool) ([]byte, error) {
	t.Helper()
	var out bytes.Buffer
	var failed error
	err := s.Shape.Pieces(offset, n, func(p Piece) bool {
		if err := d.Begin(p.Segment); err != nil {
			t.Fatal(err)
		}
		for i := range s.Shape.N {
			if !keep(p.Segment, i) {
				continue
			}
			c, err := s.Shape.Run(p.Segment, i, 1)
			if err != nil {
				t.Fatal(err)
			}
			s.add(t, d, c)
		}
		before := out.Len()
		n, err := d.WriteRange(&out, p.From, p.To)
		if err != nil && n != 0 || out.Len()-before != int(n) {
			t.Fatalf("%v, and %d bytes handed out", err, n)
		}
		failed = err
		return err == nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), failed
}

func all(int, int) bool { return true }

func decoderOf(t tester, v *Version) *Decoder {
	t.Helper()
	d, err := NewDecoder(v)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// noise is bytes that follow from a seed.
func noise(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}

// sizes are the lengths at which something changes: none, one byte, around the rule for
// tiny objects, around strips, around segments of 8 KiB.
func sizes(c Coding) []int {
	tiny := c.K * minStrip
	return []int{0, 1, 2, tiny - 1, tiny, tiny + 1, 5000, 8191, 8192, 8193, 3*8192 - 1, 3 * 8192, 2*8192 + 5}
}

func codings() []Coding {
	cs := []Coding{SharedCoding()}
	for _, nk := range [][2]int{{1, 1}, {2, 1}, {3, 1}, {2, 2}, {3, 2}, {4, 2}, {5, 3}, {6, 4}, {7, 7}, {12, 6}, {64, 32}, {64, 64}} {
		cs = append(cs, SpreadCoding(nk[0], nk[1]))
	}
	return cs
}

func TestEverySizeComesBack(t *testing.T) {
	t.Parallel()
	for _, c := range codings() {
		e, err := NewEncoder(c, 8192)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range sizes(c) {
			data := noise(uint64(size), size)
			s := putWith(t, e, "k", "v", data)
			if s.Shape.Size != int64(size) || len(s.blobs) != s.Shape.Blobs() {
				t.Fatalf("%v %d: %+v, %d blobs", c, size, s.Shape, len(s.blobs))
			}
			for _, b := range s.blobs {
				if int64(len(b)) != s.Shape.BlobBytes() {
					t.Fatalf("%v %d: a blob of %d bytes, want %d", c, size, len(b), s.Shape.BlobBytes())
				}
			}
			d := decoderOf(t, s.Version)
			got, err := s.read(t, d, 0, int64(size), all)
			whole := s.NewWhole()
			_, _ = whole.Write(got)
			if err != nil || !bytes.Equal(got, data) || whole.Err() != nil {
				t.Fatalf("%v %d: %v, %v", c, size, err, whole.Err())
			}
			if _, _ = whole.Write([]byte{0}); !errors.Is(whole.Err(), ErrMismatch) {
				t.Fatal("a byte more than the object has passed")
			}
		}
	}
}
