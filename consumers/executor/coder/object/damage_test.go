package object

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestKindsOfDamage: each kind is told, and the object is read around it.
func TestKindsOfDamage(t *testing.T) {
	t.Parallel()
	data := noise(4, 2*4096+1000)
	other := noise(5, len(data))
	for _, c := range []Coding{SharedCoding(), SpreadCoding(4, 2), SpreadCoding(6, 4)} {
		for name, test := range map[string]struct {
			harm func(s, other stored, c Chunk) []byte // what the store answers
			want Kind
		}{
			"nothing":              {func(stored, stored, Chunk) []byte { return nil }, Missing},
			"one byte short":       {func(s, _ stored, c Chunk) []byte { return s.fetch(c)[:c.Bytes-1] }, Truncated},
			"one byte":             {func(s, _ stored, c Chunk) []byte { return s.fetch(c)[:1] }, Truncated},
			"a bit of the content": {func(s, _ stored, c Chunk) []byte { return flip(s.fetch(c), 77) }, Damaged},
			"another segment's": {func(s, _ stored, c Chunk) []byte {
				a, _ := s.Shape.Run(0, c.First, 1)
				return s.fetch(a)
			}, Misplaced},
			"another strip's": {func(s, _ stored, c Chunk) []byte {
				a, _ := s.Shape.Run(c.Segment, c.First+1, 1)
				return s.fetch(a)
			}, Misplaced},
			"another object's": {func(_, other stored, c Chunk) []byte { return other.fetch(c) }, Foreign},
			"zeros":            {func(_, _ stored, c Chunk) []byte { return make([]byte, c.Bytes) }, Foreign},
		} {
			s := put(t, c, 4096, "k", "v1", data)
			o := put(t, c, 4096, "k", "v2", other)
			d := decoderOf(t, s.Version)
			if err := d.Begin(1); err != nil {
				t.Fatal(err)
			}
			for i := 1; i < s.Shape.N; i++ {
				run, _ := s.Shape.Run(1, i, 1)
				s.add(t, d, run)
			}
			run, _ := s.Shape.Run(1, 0, 1)
			faults, err := d.Add(0, 1, test.harm(s, o, run))
			want := []Fault{{1, 0, test.want}}
			if err != nil || !slices.Equal(faults, want) || !slices.Equal(d.Faults(nil), want) {
				t.Errorf("%v, %s: %v, %v; %v", c, name, faults, d.Faults(nil), err)
			}
			var out bytes.Buffer
			if _, err := d.WriteRange(&out, 0, 4096); err != nil || !bytes.Equal(out.Bytes(), data[4096:8192]) {
				t.Errorf("%v, %s: %v", c, name, err)
			}
			if len(d.Faults(nil)) > 0 {
				t.Errorf("%v, %s: still %v after it was rebuilt", c, name, d.Faults(nil))
			}
			if frame, err := d.Repair(0, 1); err != nil || !bytes.Equal(frame, s.fetch(run)) {
				t.Errorf("%v, %s: repaired: %v", c, name, err)
			}
		}
	}
}

// TestTheSameContentElsewhereIsForeign: equal bytes of another version aren't this
// version's, or the deletion of that one would take them away.
func TestTheSameContentElsewhereIsForeign(t *testing.T) {
	t.Parallel()
	data := noise(6, 5000)
	s, o := put(t, SpreadCoding(4, 2), 4096, "k", "v1", data), put(t, SpreadCoding(4, 2), 4096, "k", "v2", data)
	d := decoderOf(t, s.Version)
	if err := d.Begin(0); err != nil {
		t.Fatal(err)
	}
	run, _ := o.Shape.Run(0, 0, 1)
	if faults, err := d.Add(0, 1, o.fetch(run)); err != nil || len(faults) != 1 || faults[0].Kind != Foreign {
		t.Errorf("%v, %v", faults, err)
	}
	if segment, strip, ok := s.Owns(s.fetch(run)); !ok || segment != 0 || strip != 0 {
		t.Errorf("its own frame: %d, %d, %v", segment, strip, ok)
	}
	if _, _, ok := s.Owns(o.fetch(run)); ok {
		t.Error("another's frame is owned")
	}
	for _, position := range [][2]int{{s.Shape.Segments(), 0}, {0, s.Shape.N}} {
		frame := make([]byte, TrailerBytes)
		trail(frame, identity("k", "v1"), position[0], position[1])
		if _, _, ok := s.Owns(frame); ok {
			t.Errorf("a position that there isn't is owned: %v", position)
		}
	}
	if _, _, ok := s.Owns(nil); ok {
		t.Error("nothing is owned")
	}
}

// flip returns b with one bit changed.
func flip(b []byte, bit int) []byte {
	b = slices.Clone(b)
	bit %= 8 * len(b)
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

// harm does one random thing to random blobs, as stores do.
func harm(t *rapid.T, s, other stored) stored {
	blobs := make([][]byte, len(s.blobs))
	for i := range s.blobs {
		blobs[i] = slices.Clone(s.blobs[i])
	}
	for range rapid.IntRange(0, 2*s.Shape.N).Draw(t, "harms") {
		i := rapid.IntRange(0, len(blobs)-1).Draw(t, "blob")
		run, _ := s.Shape.Run(rapid.IntRange(0, s.Shape.Segments()-1).Draw(t, "segment"),
			rapid.IntRange(0, s.Shape.N-1).Draw(t, "strip"), 1)
		whole := int64(len(blobs[run.Blob])) >= run.Offset+run.Bytes
		switch rapid.IntRange(0, 6).Draw(t, "harm") {
		case 0:
			if len(blobs[i]) > 0 {
				blobs[i] = flip(blobs[i], rapid.IntRange(0, 8*len(blobs[i])-1).Draw(t, "bit"))
			}
		case 1:
			blobs[i] = blobs[i][:rapid.IntRange(0, len(blobs[i])).Draw(t, "length")]
		case 2:
			j := rapid.IntRange(0, len(blobs)-1).Draw(t, "with")
			blobs[i], blobs[j] = blobs[j], blobs[i]
		case 3:
			blobs[i] = slices.Clone(other.blobs[min(i, len(other.blobs)-1)])
		case 4:
			if whole {
				copy(blobs[run.Blob][run.Offset:run.Offset+run.Bytes], noise(uint64(i), int(run.Bytes)))
			}
		case 5:
			if whole {
				clear(blobs[run.Blob][run.Offset : run.Offset+run.Bytes])
			}
		default:
			if whole { // everything after it moves by a byte
				blobs[run.Blob] = slices.Delete(blobs[run.Blob], int(run.Offset), int(run.Offset)+1)
			}
		}
	}
	return stored{s.Version, blobs}
}

// TestNeverAWrongByte: whatever happens to blobs, any range reads right or ends in
// ErrTooFew without a byte, and does so exactly as a slow count of whole strips says.
func TestNeverAWrongByte(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(codings()).Draw(t, "coding")
		data := noise(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 3*4096).Draw(t, "size"))
		s := put(t, c, 4096, "k", "v1", data)
		frames := inOrder(s)
		if s.Shape.Layout == Shared { // as a write leaves it, of which some blobs didn't land
			spare := 0
			s = s.staged(t, 12, rapid.IntRange(1, 6).Draw(t, "cut"), func(int) bool {
				spare++
				return spare > s.Shape.Cut || rapid.Bool().Draw(t, "landed")
			})
		}
		other := put(t, c, 4096, "k", "v2", noise(9, rapid.IntRange(1, 3*4096).Draw(t, "other's size")))
		hurt := harm(t, s, other)
		offset := rapid.IntRange(0, len(data)).Draw(t, "offset")
		n := rapid.IntRange(0, len(data)-offset).Draw(t, "n")
		d := decoderOf(t, s.Version)
		got, err := hurt.read(t, d, int64(offset), int64(n), all)
		if err == nil && !bytes.Equal(got, data[offset:offset+n]) || err != nil && !errors.Is(err, ErrTooFew) {
			t.Fatalf("%d bytes at %d: %v", n, offset, err)
		}
		if !bytes.HasPrefix(data[offset:offset+n], got) {
			t.Fatal("wrong bytes before an error")
		}
		if (err == nil) != readable(s, hurt, offset, n) {
			t.Fatalf("%v, although the strips say otherwise", err)
		}
		repair(t, s, hurt, frames, d)
	})
}

// readable says by comparing strips with the originals whether a range can be read.
func readable(s, hurt stored, offset, n int) bool {
	ok := true
	_ = s.Shape.Pieces(int64(offset), int64(n), func(p Piece) bool {
		whole, needed := 0, true
		for i := range s.Shape.N {
			run, _ := s.Shape.Run(p.Segment, i, 1)
			if s.Landed(run.Blob) && bytes.Equal(hurt.fetch(run), s.fetch(run)) {
				whole++
			} else if i >= p.First && i <= p.Last {
				needed = false
			}
		}
		ok = ok && (needed || whole >= s.Shape.K)
		return ok
	})
	return ok
}

// repair rebuilds everything that can be and compares it with the frames that were
// encoded.
func repair(t *rapid.T, s, hurt stored, frames [][]byte, d *Decoder) {
	for segment := range s.Shape.Segments() {
		if err := d.Begin(segment); err != nil {
			t.Fatal(err)
		}
		for i := range s.Shape.N {
			run, _ := s.Shape.Run(segment, i, 1)
			hurt.add(t, d, run)
		}
		lacking := d.Lacking()
		for _, f := range d.Faults(nil) {
			frame, err := d.Repair(f.Strip, 1)
			if (err == nil) != (lacking == 0) || err == nil && !bytes.Equal(frame, frames[segment*s.Shape.N+f.Strip]) {
				t.Fatalf("%v with %d lacking: %v", f, lacking, err)
			}
		}
	}
}

// TestAWrongDocumentIsFound: strips that fit a document of another encoding in all but
// what is rebuilt give ErrMismatch, and no byte.
func TestAWrongDocumentIsFound(t *testing.T) {
	t.Parallel()
	data := noise(7, 4000)
	for _, c := range []Coding{SharedCoding(), SpreadCoding(4, 2), SpreadCoding(3, 1)} {
		s := put(t, c, 4096, "k", "v", data)
		s.Sums[0]++
		d := decoderOf(t, s.Version)
		var out bytes.Buffer
		got, err := s.read(t, d, 0, int64(len(data)), all)
		if !errors.Is(err, ErrMismatch) || len(got)+out.Len() > 0 {
			t.Errorf("%v: %v and %d bytes", c, err, len(got))
		}
		if _, err := d.Repair(0, 1); !errors.Is(err, ErrMismatch) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// TestDecoderOutOfOrder: calls that aren't allowed change nothing.
func TestDecoderOutOfOrder(t *testing.T) {
	t.Parallel()
	data := noise(8, 9000)
	s := put(t, SpreadCoding(4, 2), 4096, "k", "v", data)
	d := decoderOf(t, s.Version)
	if _, err := d.WriteRange(nil, 0, 0); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	if _, err := d.Fill(0, 1, 10); !errors.Is(err, ErrState) || d.Room(0, 1) != nil || d.Faults(nil) != nil {
		t.Error(err)
	}
	if _, err := d.Add(0, 1, nil); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	if _, err := d.Repair(0, 1); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	for _, segment := range []int{-1, 3} {
		if err := d.Begin(segment); !errors.Is(err, ErrRange) {
			t.Error(err)
		}
	}
	if err := d.Begin(2); err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]int{{-1, 1}, {0, 0}, {4, 1}, {3, 2}} {
		if _, err := d.Fill(r[0], r[1], 1); !errors.Is(err, ErrRange) || d.Room(r[0], r[1]) != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
	for _, r := range [][2]int64{{-1, 1}, {2, 1}, {0, 9000 - 2*4096 + 1}} {
		if _, err := d.WriteRange(nil, r[0], r[1]); !errors.Is(err, ErrRange) {
			t.Errorf("%v: %v", r, err)
		}
	}
	if n, err := d.WriteRange(nil, 5, 5); n != 0 || err != nil {
		t.Error("an empty range needs nothing:", err)
	}
	if err := d.Reset(&Version{}); !errors.Is(err, ErrDocument) {
		t.Error(err)
	}
}

// TestAStripIsAddedTwice: the first answer stays, a second one that is damaged harms
// nothing through Add; through Fill, whose memory is overwritten, it counts.
func TestAStripIsAddedTwice(t *testing.T) {
	t.Parallel()
	s := put(t, SpreadCoding(4, 2), 4096, "k", "v", noise(10, 4096))
	d := decoderOf(t, s.Version)
	if err := d.Begin(0); err != nil {
		t.Fatal(err)
	}
	run, _ := s.Shape.Run(0, 1, 1)
	s.add(t, d, run)
	s.add(t, d, run)
	if d.Lacking() != 1 {
		t.Errorf("%d lacking", d.Lacking())
	}
	if faults, err := d.Add(1, 1, []byte("x")); err != nil || faults != nil || d.Lacking() != 1 {
		t.Errorf("%v, %v, %d lacking", faults, err, d.Lacking())
	}
	d.Room(1, 1)[0] ^= 1
	if faults, err := d.Fill(1, 1, run.Bytes); err != nil || len(faults) != 1 || d.Lacking() != 2 {
		t.Errorf("%v, %v, %d lacking", faults, err, d.Lacking())
	}
}

type failing struct{ after int }

func (w *failing) Write(b []byte) (int, error) {
	if w.after -= len(b); w.after < 0 {
		return max(0, w.after+len(b)), errors.ErrUnsupported
	}
	return len(b), nil
}

func TestTheWritersErrorIsTold(t *testing.T) {
	t.Parallel()
	s := put(t, SpreadCoding(4, 2), 4096, "k", "v", noise(11, 4096))
	d := decoderOf(t, s.Version)
	if err := d.Begin(0); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		run, _ := s.Shape.Run(0, i, 1)
		s.add(t, d, run)
	}
	if n, err := d.WriteRange(&failing{3000}, 0, 4096); n != 3000 || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%d, %v", n, err)
	}
}
