package object

import "fmt"

// Layout says how the strips of a version lie in blobs. The numbers are part of the
// version document.
type Layout uint8

const (
	// Shared is one store, where the strips of a segment lie on end in few blobs whose
	// ranges are the chunks of every (n,k).
	Shared Layout = 1
	// Spread is one blob a strip, each in a store of its own.
	Spread Layout = 2
)

// String gives the name that configurations use.
func (l Layout) String() string {
	switch l {
	case Shared:
		return "shared"
	case Spread:
		return "spread"
	}
	return fmt.Sprintf("layout(%d)", uint8(l))
}

const (
	// SharedData is K of the shared layout: the least number that 1 … 6 divide.
	SharedData = 60
	// SharedStrips is N of the shared layout: rate 1/2, so that n ≤ 2k.
	SharedStrips = 2 * SharedData
	// MaxSpread is the greatest n of the spread layout.
	MaxSpread = 64
	// DefaultSegment is how many bytes of an object are coded together.
	DefaultSegment = 8 << 20
	// MinSegment is the fewest bytes of a segment.
	MinSegment = 4 << 10
	// MaxSegment is the most bytes of a segment. Encoders and decoders keep N/K times
	// a segment.
	MaxSegment = 256 << 20
	// MaxStrips bounds the strips of all segments, and with them the document.
	MaxStrips = 1 << 20

	// minStrip is the shortest strip in bytes; objects that would have shorter ones
	// are copied instead.
	minStrip = 64
	// alignment is what the bytes of a strip are a multiple of, so that frames begin
	// where vector instructions like to load.
	alignment = 16
)

// Coding is how a version is meant to be stored: what an operator configures.
type Coding struct {
	Layout Layout
	// N and K count the strips: 120 and 60 in shared, n and k in spread.
	N, K int
}

// SharedCoding is the coding of the shared layout.
func SharedCoding() Coding { return Coding{Shared, SharedStrips, SharedData} }

// SpreadCoding is a coding of n strips over n stores, of which any k rebuild.
func SpreadCoding(n, k int) Coding { return Coding{Spread, n, k} }

// Validate returns ErrCoding if the coding is none of those of DESIGN §4.4.
func (c Coding) Validate() error {
	switch {
	case c == SharedCoding():
		return nil
	case c.Layout == Spread && c.K >= 1 && c.N >= c.K && c.N <= MaxSpread:
		return nil
	}
	return fmt.Errorf("%w: %v of (%d,%d)", ErrCoding, c.Layout, c.N, c.K)
}

// shape is the shape of a version of size bytes that is meant to be stored so.
func (c Coding) shape(size, segment int64) Shape {
	s := Shape{Layout: c.Layout, N: c.N, K: c.K, Cut: 1, Segment: segment, Size: size}
	if size < int64(c.K)*minStrip {
		s.K = 1
		if c.Layout == Shared {
			s.N = SharedStrips / SharedData
		}
	}
	if c.Layout == Spread {
		s.Cut = s.K
	}
	return s
}

// Shape is the geometry of a version: everything that offsets follow from.
type Shape struct {
	Layout Layout
	// N strips a segment, any K of which rebuild it. K = 1 means copies.
	N, K int
	// Cut is in how many blobs the K data strips lie, K/Cut on end in each; the parity
	// strips lie so too, so that there are N/(K/Cut) blobs. In shared it is 1 as meant
	// (a blob of data, a blob of parity), and the k of the write in a staged version,
	// which has one segment. In spread every strip has its blob: Cut = K.
	Cut int
	// Segment is how many bytes are coded together; the last segment has what is
	// left. Size is the object's. Both in bytes.
	Segment, Size int64
}

// Validate returns ErrCoding or ErrTooLarge if no version may have this shape.
func (s Shape) Validate() error {
	copies := s.Layout == Shared && s.N == SharedStrips/SharedData && s.K == 1
	if err := (Coding{s.Layout, s.N, s.K}).Validate(); err != nil && !copies {
		return err
	}
	if s.Segment < MinSegment || s.Segment > MaxSegment || s.Size < 0 {
		return fmt.Errorf("%w: %d bytes in segments of %d", ErrCoding, s.Size, s.Segment)
	}
	if s.Size/s.Segment > MaxStrips || s.Segments()*s.N > MaxStrips {
		return fmt.Errorf("%w: %d bytes in segments of %d", ErrTooLarge, s.Size, s.Segment)
	}
	return s.validateCut()
}

// Segments counts the segments; an empty object has none.
func (s Shape) Segments() int {
	n := s.Size / s.Segment
	if s.Size%s.Segment != 0 {
		n++
	}
	return int(n)
}

// Blobs counts the blobs that stores keep of the version.
func (s Shape) Blobs() int {
	if s.Size == 0 {
		return 0
	}
	return s.N / s.perBlob()
}

// SegmentBytes is how many bytes of the object a segment holds, without padding.
func (s Shape) SegmentBytes(segment int) int64 {
	return min(s.Segment, s.Size-int64(segment)*s.Segment)
}

// StripBytes is how many bytes a strip of the segment has, padding counted and the
// trailer not.
func (s Shape) StripBytes(segment int) int64 { return s.stripOf(s.SegmentBytes(segment)) }

func (s Shape) stripOf(bytes int64) int64 {
	strip := (bytes + int64(s.K) - 1) / int64(s.K)
	if s.K == 1 {
		return strip // copies are as long as the object
	}
	return max(minStrip, (strip+alignment-1)/alignment*alignment)
}

// FrameBytes is how many bytes a strip of the segment takes in a blob.
func (s Shape) FrameBytes(segment int) int64 { return s.StripBytes(segment) + TrailerBytes }

// perBlob is how many frames of a segment lie in one blob.
func (s Shape) perBlob() int { return s.K / s.Cut }

// BlobBytes is how many bytes each blob has.
func (s Shape) BlobBytes() int64 {
	last := s.Segments() - 1
	if last < 0 {
		return 0
	}
	return s.segmentAt(last) + int64(s.perBlob())*s.FrameBytes(last)
}

// segmentAt is where a segment begins in a blob. All segments but the last are full.
func (s Shape) segmentAt(segment int) int64 {
	return int64(segment) * int64(s.perBlob()) * (s.stripOf(s.Segment) + TrailerBytes)
}

// Chunk is a run of strips of one segment that lies on end in one blob: what one task
// reads or writes.
type Chunk struct {
	Segment, First, Count int
	// Blob holds the chunk at bytes Offset … Offset+Bytes−1.
	Blob          int
	Offset, Bytes int64
}

// Run is where count strips from first of a segment lie. A run lies in one blob: in the
// spread layout there is none longer than 1, in shared none longer than K/Cut. It
// returns ErrRange for what the version doesn't have.
func (s Shape) Run(segment, first, count int) (Chunk, error) {
	per := s.perBlob()
	if segment < 0 || segment >= s.Segments() || first < 0 || count < 1 || first > s.N-count ||
		first/per != (first+count-1)/per {
		return Chunk{}, fmt.Errorf("%w: strips %d and %d after it of segment %d", ErrRange, first, count-1, segment)
	}
	frame := s.FrameBytes(segment)
	return Chunk{
		Segment: segment, First: first, Count: count,
		Blob: first / per, Offset: s.segmentAt(segment) + int64(first%per)*frame, Bytes: int64(count) * frame,
	}, nil
}

// Clamp turns the (n,k) of a table into the nearest that the version has: k is a
// multiple of Cut, at least Cut and else at most what is asked for, so that every chunk
// lies in one blob; n is at least k and at most the disjoint chunks there are. In spread
// k is the version's own. Version.Clamp knows which blobs landed, too.
func (s Shape) Clamp(n, k int) (int, int) {
	// All multiples of Cut up to maxChunks divide the K of shared.
	k = max(min(k, maxChunks, s.K)/s.Cut, 1) * s.Cut
	return min(max(n, k), s.N/(s.K/k)), k
}

// maxChunks is the greatest k of the shared layout (PAPERS §3.1).
const maxChunks = 6

// Chunk is chunk c of the n chunks of (n,k) of a segment, c = 0 … n−1: they are
// disjoint, the first k hold the data itself, and any k rebuild the segment. It returns
// ErrCoding if the version doesn't have (n,k), see Clamp.
func (s Shape) Chunk(segment, n, k, c int) (Chunk, error) {
	if a, b := s.Clamp(n, k); a != n || b != k || c < 0 || c >= n {
		return Chunk{}, fmt.Errorf("%w: chunk %d of (%d,%d) of a version in (%d,%d)", ErrCoding, c, n, k, s.N, s.K)
	}
	w := s.K / k
	return s.Run(segment, c*w, w)
}

// Piece is the part of a byte range that lies in one segment.
type Piece struct {
	Segment int
	// From and To are bytes of the segment: From … To−1.
	From, To int64
	// First and Last are the data strips that hold them.
	First, Last int
}

// Pieces calls yield for each segment that bytes offset … offset+n−1 touch, in order,
// until yield returns false. It returns ErrRange if the object doesn't have them all.
func (s Shape) Pieces(offset, n int64, yield func(Piece) bool) error {
	if offset < 0 || n < 0 || offset > s.Size-n {
		return fmt.Errorf("%w: %d bytes at %d of %d", ErrRange, n, offset, s.Size)
	}
	for end := offset + n; offset < end; {
		p := Piece{Segment: int(offset / s.Segment)}
		start := int64(p.Segment) * s.Segment
		p.From, p.To = offset-start, min(end-start, s.Segment)
		strip := s.StripBytes(p.Segment)
		p.First, p.Last = int(p.From/strip), int((p.To-1)/strip)
		if !yield(p) {
			return nil
		}
		offset = start + p.To
	}
	return nil
}
