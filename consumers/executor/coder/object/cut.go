package object

import "fmt"

// validateCut returns ErrCoding unless the strips may lie in blobs so. The layout, N, K
// and the sizes are right already.
func (s Shape) validateCut() error {
	switch {
	case s.Layout == Spread && s.Cut == s.K,
		s.Layout == Shared && s.Cut == 1,
		s.Layout == Shared && s.K == SharedData && s.Cut > 1 && s.Cut <= maxChunks && s.Segments() == 1:
		return nil
	}
	return fmt.Errorf("%w: the data of (%d,%d) in %d blobs, %d segments", ErrCoding, s.N, s.K, s.Cut, s.Segments())
}

// Write gives the shape in which a write of code (n,k) puts the version, and the code
// that it comes to: n of the shape's blobs, 0 … n−1, are put side by side, and any k of
// them rebuild the version. In shared a version of one segment is staged in blobs of
// 60/k strips; larger ones, and tiny ones, have k = 1, which is how they are meant to
// lie. In spread k is the version's own.
func (s Shape) Write(n, k int) (Shape, int, int) {
	if s.Layout == Shared && s.K == SharedData && s.Segments() == 1 {
		s.Cut = min(max(k, 1), maxChunks)
	}
	n, k = s.Clamp(n, s.Cut)
	return s, n, k
}

// Staged tells whether the strips lie in more blobs than is meant, as a write with
// k > 1 leaves them in shared.
func (s Shape) Staged() bool { return s.Layout == Shared && s.Cut > 1 }

// Meant is the shape with the blobs that are meant: a staged version's once it is
// settled, any other's own.
func (s Shape) Meant() Shape {
	if s.Layout == Shared {
		s.Cut = 1
	}
	return s
}

// Strips says which strips of every segment lie in a blob.
func (s Shape) Strips(blob int) (first, count int) {
	count = s.perBlob()
	return blob * count, count
}

// Landed tells whether a blob is in its store.
func (v *Version) Landed(blob int) bool { return v.Places[blob] != Place{} }

// Lacking counts the blobs that haven't landed.
func (v *Version) Lacking() int {
	n := 0
	for _, p := range v.Places {
		if p == (Place{}) {
			n++
		}
	}
	return n
}

// Clamp is Shape.Clamp with n at most the chunks that lie in blobs that landed, which are
// at least k.
func (v *Version) Clamp(n, k int) (int, int) {
	n, k = v.Shape.Clamp(n, k)
	return min(n, (len(v.Places)-v.Lacking())*(k/v.Shape.Cut)), k
}

// Chunks appends all chunks of a segment of which any k rebuild it that lie in blobs that
// landed, in order, those of the data itself first: what to choose n of. It returns
// ErrCoding for a k that the version doesn't have, see Clamp, and ErrRange for such a
// segment.
func (v *Version) Chunks(dst []Chunk, segment, k int) ([]Chunk, error) {
	n, clamped := v.Shape.Clamp(v.Shape.N, k)
	if clamped != k {
		return dst, fmt.Errorf("%w: k = %d of a version in (%d,%d)", ErrCoding, k, v.Shape.N, v.Shape.K)
	}
	for i := range n {
		c, err := v.Shape.Chunk(segment, n, k, i)
		if err != nil {
			return dst, err
		}
		if v.Landed(c.Blob) {
			dst = append(dst, c)
		}
	}
	return dst, nil
}

// Lie is the version with its strips in other blobs: of the same bytes, and with the
// same checksums. It is what the document becomes when a staged version is settled (with
// Meant().Cut), when a blob has landed later, or when one was lost. It returns what
// Validate does. The version it is called on doesn't change.
func (v *Version) Lie(cut int, places []Place) (*Version, error) {
	moved := *v
	moved.Shape.Cut = cut
	moved.Places = append([]Place(nil), places...)
	if err := moved.Validate(); err != nil {
		return nil, err
	}
	return &moved, nil
}
