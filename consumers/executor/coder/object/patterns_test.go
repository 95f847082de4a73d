package object

import (
	"bytes"
	"errors"
	"math/bits"
	"os"
	"testing"
)

// TestAnyKChunksOfSharedRebuild tries every set of k of the 2k chunks, for every k, of
// one stored object; and every set of k−1, which must not be enough. Of the sets of 5
// and 6 CI tries every seventh, PENSTOCK_WHOLE=1 all: inverting matrices is slow under
// the race detector.
func TestAnyKChunksOfSharedRebuild(t *testing.T) {
	t.Parallel()
	data := noise(1, 2*4096+3000)
	s := put(t, SharedCoding(), 4096, "k", "v", data)
	d := decoderOf(t, s.Version)
	var out bytes.Buffer
	tried := 0
	for k := 1; k <= 6; k++ {
		n := 2 * k
		for set := range uint(1) << n {
			if size := bits.OnesCount(set); size != k && size != k-1 {
				continue
			}
			if tried++; k > 3 && tried%13 != 0 && os.Getenv("PENSTOCK_WHOLE") == "" {
				continue
			}
			segment := int(set) % s.Shape.Segments()
			if err := d.Begin(segment); err != nil {
				t.Fatal(err)
			}
			for c := range n {
				if set>>c&1 == 0 {
					continue
				}
				chunk, err := s.Shape.Chunk(segment, n, k, c)
				if err != nil {
					t.Fatal(err)
				}
				if faults := s.add(t, d, chunk); len(faults) > 0 {
					t.Fatal(faults)
				}
			}
			from := int64(segment) * 4096
			to := min(from+4096, int64(len(data)))
			out.Reset()
			_, err := d.WriteRange(&out, 0, to-from)
			switch {
			case bits.OnesCount(set) < k:
				if !errors.Is(err, ErrTooFew) || out.Len() > 0 {
					t.Fatalf("(%d,%d) set %b: %v and %d bytes", n, k, set, err, out.Len())
				}
			case err != nil || !bytes.Equal(out.Bytes(), data[from:to]):
				t.Fatalf("(%d,%d) set %b: %v", n, k, set, err)
			}
		}
	}
}

// TestAnyNMinusKBlobsOfSpreadMayBeLost tries every set of blobs of every (n,k) up to
// n = 7: k or more give the object, fewer a typed error; and what is lost is rebuilt bit
// by bit.
func TestAnyNMinusKBlobsOfSpreadMayBeLost(t *testing.T) {
	t.Parallel()
	data := noise(2, 4096+700)
	for n := 1; n <= 7; n++ {
		for k := 1; k <= n; k++ {
			s := put(t, SpreadCoding(n, k), 4096, "k", "v", data)
			d := decoderOf(t, s.Version)
			for set := range uint(1) << n {
				got, err := s.read(t, d, 0, int64(len(data)), func(_, strip int) bool { return set>>strip&1 == 1 })
				if bits.OnesCount(set) < k {
					if !errors.Is(err, ErrTooFew) || len(got) > 0 {
						t.Fatalf("(%d,%d) set %b: %v and %d bytes", n, k, set, err, len(got))
					}
					continue
				}
				if err != nil || !bytes.Equal(got, data) {
					t.Fatalf("(%d,%d) set %b: %v", n, k, set, err)
				}
				for blob := range n { // of the last segment
					c, _ := s.Shape.Run(1, blob, 1)
					frame, err := d.Repair(blob, 1)
					if err != nil || !bytes.Equal(frame, s.fetch(c)) {
						t.Fatalf("(%d,%d) set %b: blob %d rebuilt: %v", n, k, set, blob, err)
					}
				}
			}
		}
	}
}

// TestTinyObjectsAreCopies reads each copy alone, for every (n,k) that a table may ask
// for.
func TestTinyObjectsAreCopies(t *testing.T) {
	t.Parallel()
	for _, c := range codings() {
		for _, size := range []int{1, 17, c.K*minStrip - 1} {
			data := noise(3, size)
			s := put(t, c, 4096, "k", "v", data)
			if s.Shape.K != 1 || (c.Layout == Shared) != (s.Shape.N == 2 && c.N == SharedStrips) || s.Coding != c {
				t.Fatalf("%v of %d bytes: %+v", c, size, s.Shape)
			}
			if !s.AsMeant(c) {
				t.Fatalf("%v of %d bytes is not as meant", c, size)
			}
			n, k := s.Shape.Clamp(12, 6)
			if k != 1 || n != min(12, s.Shape.N) {
				t.Fatalf("%v: clamped to (%d,%d)", c, n, k)
			}
			d := decoderOf(t, s.Version)
			for copied := range n {
				chunk, err := s.Shape.Chunk(0, n, k, copied)
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Begin(0); err != nil {
					t.Fatal(err)
				}
				s.add(t, d, chunk)
				var out bytes.Buffer
				if _, err := d.WriteRange(&out, 0, int64(size)); err != nil || !bytes.Equal(out.Bytes(), data) {
					t.Fatalf("%v copy %d: %v", c, copied, err)
				}
			}
		}
	}
}
