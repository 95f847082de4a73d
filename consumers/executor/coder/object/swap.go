package object

import "crypto/sha256"

// Segment is the memory of a coded segment that was taken from an encoder, so that it
// can be stored while the encoder codes the next. The zero value holds nothing.
type Segment struct{ slab slab }

// Swap takes the segment that Next has coded, and gives the encoder the memory of s for
// the next. Segments of different layouts must not be mixed.
func (e *Encoder) Swap(s *Segment) {
	layout := e.slab.layout
	e.slab, s.slab = s.slab, e.slab
	e.slab.layout = layout
}

// Frames are what Encoder.Frames was before Swap, until the memory is used again.
func (s *Segment) Frames(first, count int) []byte { return s.slab.frames(first, count) }

// Sums are the MD5 and the SHA-256 of what was read so far: of the whole object once
// Ended.
func (e *Encoder) Sums() (md5 [16]byte, sha [sha256.Size]byte) {
	e.md5.Sum(md5[:0])
	e.sha.Sum(sha[:0])
	return md5, sha
}

// Blob are the bytes of the segment in a blob of a version of shape v.
func (s *Segment) Blob(v Shape, blob int) []byte { return s.Frames(v.Strips(blob)) }
