package object

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// TestChunksTileTheirBlobs: for every (n,k) chunks are disjoint, k of them are as many
// strips as decoding needs, the first k are the data, and no byte of a blob is in two
// places.
func TestChunksTileTheirBlobs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(codings()).Draw(t, "coding")
		s := c.shape(rapid.Int64Range(1, 5*8192).Draw(t, "size"), 8192)
		s, _, _ = s.Write(rapid.IntRange(0, 13).Draw(t, "written n"), rapid.IntRange(0, 7).Draw(t, "written k"))
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		if s.Blobs()*s.K != s.N*s.Cut {
			t.Fatalf("%+v: %d blobs", s, s.Blobs())
		}
		ends := make([]int64, s.Blobs())
		object := int64(0)
		for segment := range s.Segments() {
			object += s.SegmentBytes(segment)
			if s.StripBytes(segment)*int64(s.K) < s.SegmentBytes(segment) {
				t.Fatalf("%+v: strips of %d", s, s.StripBytes(segment))
			}
			for i := range s.N {
				run, err := s.Run(segment, i, 1)
				if err != nil || run.Offset != ends[run.Blob] {
					t.Fatalf("%+v: %v, strip %d of segment %d at %d, want %d", s, err, i, segment, run.Offset, ends[run.Blob])
				}
				ends[run.Blob] += run.Bytes
			}
			for k := 1; k <= 6; k++ {
				n, k := s.Clamp(rapid.IntRange(k, 2*k).Draw(t, "n"), k)
				next := 0
				for i := range n {
					chunk, err := s.Chunk(segment, n, k, i)
					if err != nil || chunk.First != next || chunk.Count*k != s.K || chunk.Bytes != int64(chunk.Count)*s.FrameBytes(segment) {
						t.Fatalf("%+v: chunk %d of (%d,%d): %+v, %v", s, i, n, k, chunk, err)
					}
					next += chunk.Count
				}
				if next > s.N {
					t.Fatalf("%+v: (%d,%d) needs %d strips", s, n, k, next)
				}
			}
		}
		if object != s.Size {
			t.Fatalf("%+v: segments of %d bytes", s, object)
		}
		for _, end := range ends {
			if end != s.BlobBytes() {
				t.Fatalf("%+v: blob of %d, want %d", s, end, s.BlobBytes())
			}
		}
	})
}

// TestPiecesCoverTheirRange against counting bytes one by one.
func TestPiecesCoverTheirRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(codings()).Draw(t, "coding").shape(rapid.Int64Range(0, 3*4096).Draw(t, "size"), 4096)
		offset := rapid.Int64Range(0, s.Size).Draw(t, "offset")
		n := rapid.Int64Range(0, s.Size-offset).Draw(t, "n")
		at := offset
		err := s.Pieces(offset, n, func(p Piece) bool {
			strip := s.StripBytes(p.Segment)
			for b := p.From; b < p.To; b++ {
				if at/s.Segment != int64(p.Segment) || at%s.Segment != b {
					t.Fatalf("byte %d in %+v at %d", at, p, b)
				}
				at++
			}
			if p.From >= p.To || int64(p.First) != p.From/strip || int64(p.Last) != (p.To-1)/strip || p.Last >= s.K {
				t.Fatalf("%+v: %+v", s, p)
			}
			return true
		})
		if err != nil || at != offset+n {
			t.Fatalf("%v, reached %d of %d", err, at, offset+n)
		}
	})
}

func TestPiecesStopWhenTold(t *testing.T) {
	t.Parallel()
	s := SharedCoding().shape(100_000, 4096)
	calls := 0
	if err := s.Pieces(0, s.Size, func(Piece) bool { calls++; return calls < 3 }); err != nil || calls != 3 {
		t.Errorf("%v after %d", err, calls)
	}
}

func TestOutOfRange(t *testing.T) {
	t.Parallel()
	shared, spread := SharedCoding().shape(10_000, 4096), SpreadCoding(4, 2).shape(10_000, 4096)
	for i, r := range [][3]int{{-1, 0, 1}, {3, 0, 1}, {0, -1, 1}, {0, 0, 0}, {0, 120, 1}, {0, 61, 60}, {0, 59, 2}} {
		if _, err := shared.Run(r[0], r[1], r[2]); !errors.Is(err, ErrRange) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := spread.Run(0, 0, 2); !errors.Is(err, ErrRange) {
		t.Error("a run over two blobs")
	}
	for i, c := range [][3]int{{12, 6, 12}, {12, 6, -1}, {13, 6, 0}, {5, 6, 0}, {2, 7, 0}, {0, 0, 0}} {
		if _, err := shared.Chunk(0, c[0], c[1], c[2]); !errors.Is(err, ErrCoding) {
			t.Errorf("chunk %d: %v", i, err)
		}
	}
	if _, err := spread.Chunk(0, 4, 1, 0); !errors.Is(err, ErrCoding) {
		t.Error("a chunk of another k than spread has")
	}
	for i, r := range [][2]int64{{-1, 1}, {0, -1}, {10_000, 1}, {0, 10_001}, {1 << 62, 1 << 62}} {
		if err := shared.Pieces(r[0], r[1], func(Piece) bool { return true }); !errors.Is(err, ErrRange) {
			t.Errorf("range %d: %v", i, err)
		}
	}
}

func TestShapesThatThereArent(t *testing.T) {
	t.Parallel()
	for i, s := range []Shape{
		{},
		{Shared, 120, 60, 1, MinSegment - 1, 1},
		{Shared, 120, 60, 1, MaxSegment + 1, 1},
		{Shared, 120, 60, 1, MinSegment, -1},
		{Shared, 119, 60, 1, MinSegment, 1},
		{Shared, 4, 2, 1, MinSegment, 1},
		{Shared, 120, 60, 0, MinSegment, 4000},
		{Shared, 120, 60, 7, MinSegment, 4000},
		{Shared, 120, 60, -1, MinSegment, 4000},
		{Shared, 120, 60, 2, MinSegment, MinSegment + 1},
		{Shared, 2, 1, 2, MinSegment, 10},
		{Spread, 4, 2, 1, MinSegment, 4000},
		{Spread, 4, 2, 4, MinSegment, 4000},
		{Spread, 2, 3, 3, MinSegment, 1},
		{Spread, 65, 3, 3, MinSegment, 1},
		{Spread, 3, 0, 0, MinSegment, 1},
		{Layout(3), 3, 2, 2, MinSegment, 1},
	} {
		if err := s.Validate(); !errors.Is(err, ErrCoding) {
			t.Errorf("%d: %v", i, err)
		}
	}
	for i, s := range []Shape{
		{Shared, 120, 60, 1, MinSegment, 1 << 62},
		{Shared, 120, 60, 1, MinSegment, MaxStrips / 120 * MinSegment * 2},
		{Spread, 64, 32, 32, MinSegment, MaxStrips * MinSegment},
	} {
		if err := s.Validate(); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := NewEncoder(SpreadCoding(3, 4), 0); !errors.Is(err, ErrCoding) {
		t.Error(err)
	}
	if _, err := NewEncoder(SharedCoding(), 1); !errors.Is(err, ErrCoding) {
		t.Error(err)
	}
}

// TestClamp as the tables of PAPERS §3.4 ask.
func TestClamp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		coding     Coding
		n, k, a, b int
	}{
		{SharedCoding(), 12, 6, 12, 6},
		{SharedCoding(), 13, 6, 12, 6},
		{SharedCoding(), 30, 15, 12, 6},
		{SharedCoding(), 1, 3, 3, 3},
		{SharedCoding(), 0, 0, 1, 1},
		{SharedCoding(), 3, 2, 3, 2},
		{SpreadCoding(6, 4), 1, 1, 4, 4},
		{SpreadCoding(6, 4), 5, 6, 5, 4},
		{SpreadCoding(6, 4), 12, 6, 6, 4},
	} {
		if a, b := c.coding.shape(1<<20, 1<<20).Clamp(c.n, c.k); a != c.a || b != c.b {
			t.Errorf("%v: (%d,%d) became (%d,%d), want (%d,%d)", c.coding, c.n, c.k, a, b, c.a, c.b)
		}
	}
}

// TestClampOfStaged: k is a multiple of the cut, and n what landed blobs have.
func TestClampOfStaged(t *testing.T) {
	t.Parallel()
	whole := put(t, SharedCoding(), 4096, "k", "v", noise(53, 4096))
	for _, c := range []struct{ cut, landed, n, k, a, b int }{
		{1, 2, 12, 6, 12, 6},
		{1, 1, 12, 6, 6, 6},
		{1, 1, 2, 1, 1, 1},
		{2, 4, 12, 6, 12, 6},
		{2, 4, 10, 5, 8, 4},
		{2, 3, 12, 6, 9, 6},
		{2, 2, 1, 1, 2, 2},
		{3, 4, 10, 5, 4, 3},
		{4, 8, 12, 6, 8, 4},
		{4, 5, 1, 1, 4, 4},
		{5, 6, 12, 6, 6, 5},
		{6, 9, 2, 1, 6, 6},
		{6, 9, 12, 6, 9, 6},
	} {
		s := whole.staged(t, 12, c.cut, func(blob int) bool { return blob < c.landed })
		if a, b := s.Clamp(c.n, c.k); a != c.a || b != c.b {
			t.Errorf("%d of cut %d: (%d,%d) became (%d,%d), want (%d,%d)", c.landed, c.cut, c.n, c.k, a, b, c.a, c.b)
		}
	}
}
