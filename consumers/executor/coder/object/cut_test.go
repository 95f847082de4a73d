package object

import (
	"bytes"
	"errors"
	"math/bits"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// TestStagedVersionsAreReadAndSettled: of a write in any (n,k) any k blobs that landed
// give every range, with every k that the version has; and settling puts the same bytes
// into two blobs as a write with k = 1 does. Of the sets of blobs CI tries a part,
// PENSTOCK_WHOLE=1 all.
func TestStagedVersionsAreReadAndSettled(t *testing.T) {
	t.Parallel()
	data := noise(50, 4050)
	whole := put(t, SharedCoding(), 4096, "k", "v", data)
	tried := 0
	for k := 1; k <= 6; k++ {
		for n := k; n <= 2*k; n++ {
			for set := range uint(1) << n {
				if bits.OnesCount(set) < k {
					continue
				}
				if tried++; k > 1 && tried%71 != 0 && os.Getenv("PENSTOCK_WHOLE") == "" {
					continue
				}
				s := whole.staged(t, n, k, func(blob int) bool { return set>>blob&1 == 1 })
				if s.Shape.Staged() != (k > 1) || s.Lacking() != 2*k-bits.OnesCount(set) || s.AsMeant(SharedCoding()) != (k == 1 && set == 3) {
					t.Fatalf("(%d,%d) set %b: %+v, %d lacking", n, k, set, s.Shape, s.Lacking())
				}
				readEveryWay(t, s, data)
				settle(t, s, whole)
			}
		}
	}
}

// readEveryWay reads with every (n,k) that a table may name, the last chunks that there
// are rather than the first.
func readEveryWay(t *testing.T, s stored, data []byte) {
	t.Helper()
	d := decoderOf(t, s.Version)
	for asked := range 8 {
		n, k := s.Clamp(2*asked, asked)
		chunks, err := s.Chunks(nil, 0, k)
		if err != nil || n < k || n > len(chunks) || k%s.Shape.Cut != 0 || k < s.Shape.Cut {
			t.Fatalf("(%d,%d) of %d chunks, cut %d: %v", n, k, len(chunks), s.Shape.Cut, err)
		}
		if err := d.Begin(0); err != nil {
			t.Fatal(err)
		}
		for _, c := range chunks[len(chunks)-k:] {
			if int64(len(s.fetch(c))) != c.Bytes {
				t.Fatalf("chunk %+v isn't in its blob", c)
			}
			if faults := s.add(t, d, c); len(faults) > 0 {
				t.Fatal(faults)
			}
		}
		var out bytes.Buffer
		if _, err := d.WriteRange(&out, 0, int64(len(data))); err != nil || !bytes.Equal(out.Bytes(), data) {
			t.Fatalf("(%d,%d): %v", n, k, err)
		}
	}
}

func settle(t *testing.T, s, want stored) {
	t.Helper()
	d := decoderOf(t, s.Version)
	if err := d.Begin(0); err != nil {
		t.Fatal(err)
	}
	chunks, err := s.Chunks(nil, 0, s.Shape.Cut)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chunks {
		s.add(t, d, c)
	}
	meant := s.Shape.Meant()
	for blob := range meant.Blobs() {
		frames, err := d.Repair(meant.Strips(blob))
		if err != nil || !bytes.Equal(frames, want.blobs[blob]) {
			t.Fatalf("blob %d: %v", blob, err)
		}
	}
	v, err := s.Lie(meant.Cut, want.Places)
	if err != nil || !v.AsMeant(SharedCoding()) {
		t.Fatal(err)
	}
	a, err := v.MarshalBinary()
	b, _ := want.MarshalBinary()
	if err != nil || !bytes.Equal(a, b) {
		t.Fatalf("settled, and not as if written so: %v", err)
	}
}

// TestBlobsOfAnEncoder are what the shape says, cut by cut, and Finish records the cut.
func TestBlobsOfAnEncoder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(codings()).Draw(t, "coding")
		data := noise(51, rapid.IntRange(1, 4096).Draw(t, "size"))
		want := put(t, c, 4096, "k", "v", data)
		e, err := NewEncoder(c, 4096)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Reset("k", "v"); err != nil {
			t.Fatal(err)
		}
		s, err := e.Next(bytes.NewReader(data))
		if err != nil || !e.Ended() {
			t.Fatalf("%v, ended %v", err, e.Ended())
		}
		s, n, k := s.Write(rapid.IntRange(0, 20).Draw(t, "n"), rapid.IntRange(0, 8).Draw(t, "k"))
		if n < k || n > s.Blobs() || k != s.Cut {
			t.Fatalf("(%d,%d) in %d blobs cut %d", n, k, s.Blobs(), s.Cut)
		}
		var frames [][]byte
		for blob := range s.Blobs() {
			frames = append(frames, bytes.Clone(e.Blob(s, blob)))
			if int64(len(frames[blob])) != s.BlobBytes() {
				t.Fatalf("blob %d of %d bytes, want %d", blob, len(frames[blob]), s.BlobBytes())
			}
		}
		if !bytes.Equal(bytes.Join(frames, nil), bytes.Join(inOrder(want), nil)) {
			t.Fatal("other frames")
		}
		v, err := e.Finish(Info{Cut: s.Cut, Places: placesOf("v", s.Blobs())})
		if err != nil || v.Shape != s || v.Lacking() != 0 || v.AsMeant(c) == s.Staged() {
			t.Fatalf("%v: %+v, want %+v", err, v.Shape, s)
		}
	})
}

// TestLargeOnesAreNeverStaged: more than a segment, or copies.
func TestLargeOnesAreNeverStaged(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 1, 3839, 4097, 100_000} {
		if s, n, k := SharedCoding().shape(size, 4096).Write(12, 6); s.Cut != 1 || n != 2 || k != 1 || s.Validate() != nil {
			t.Errorf("%d bytes: (%d,%d) cut %d", size, n, k, s.Cut)
		}
	}
	if s, n, k := SpreadCoding(6, 4).shape(4096, 4096).Write(5, 1); s.Cut != 4 || n != 5 || k != 4 {
		t.Errorf("spread: (%d,%d) cut %d", n, k, s.Cut)
	}
	e, _ := NewEncoder(SharedCoding(), 4096)
	if err := e.Reset("k", "v"); err != nil {
		t.Fatal(err)
	}
	r := bytes.NewReader(make([]byte, 5000))
	for segment, ended := range []bool{false, true} {
		if _, err := e.Next(r); err != nil || e.Ended() != ended {
			t.Errorf("segment %d: %v, ended %v", segment, err, e.Ended())
		}
	}
	if _, err := e.Finish(Info{Cut: 2, Places: placesOf("v", 4)}); !errors.Is(err, ErrCoding) {
		t.Errorf("two segments in four blobs: %v", err)
	}
	v := put(t, SharedCoding(), 4096, "k", "v", noise(52, 4000))
	if _, err := v.Chunks(nil, 0, 7); !errors.Is(err, ErrCoding) {
		t.Error(err)
	}
	if _, err := v.Chunks(nil, 1, 6); !errors.Is(err, ErrRange) {
		t.Error(err)
	}
}
