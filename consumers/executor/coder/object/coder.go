package object

import (
	"fmt"
	"sync"

	"github.com/klauspost/reedsolomon"
)

// coders holds one Reed-Solomon coder per (n,k), made when first needed. They are safe
// for use by many goroutines. Shape.Validate bounds how many there can be.
var coders sync.Map

type coderKey struct{ n, k int }

// cachedUpTo is the greatest n for which inverted matrices are kept. The patterns of
// loss of 120 strips are too many to keep, and inverting is cheap beside a segment.
const cachedUpTo = 16

// coderOf returns the coder of a shape with K > 1. One goroutine a call: requests run
// beside each other already, and then a call makes no goroutines.
func coderOf(n, k int) (reedsolomon.Encoder, error) {
	if c, ok := coders.Load(coderKey{n, k}); ok {
		return c.(reedsolomon.Encoder), nil
	}
	c, err := reedsolomon.New(k, n-k,
		reedsolomon.WithMaxGoroutines(1), reedsolomon.WithInversionCache(n <= cachedUpTo))
	if err != nil {
		return nil, fmt.Errorf("%w: (%d,%d): %w", ErrCoding, n, k, err)
	}
	kept, _ := coders.LoadOrStore(coderKey{n, k}, c)
	return kept.(reedsolomon.Encoder), nil
}

// slab is the memory of one segment: N frames on end, and the strips in them.
type slab struct {
	memory []byte
	strips [][]byte
	strip  int
}

// fit makes the slab one of n strips of the given bytes. Memory grows and is kept, and
// so is what stands in it.
func (b *slab) fit(n int, strip int64) {
	b.strip = int(strip)
	need := n * (b.strip + TrailerBytes)
	if cap(b.memory) < need {
		grown := make([]byte, need)
		copy(grown, b.memory[:cap(b.memory)])
		b.memory = grown
	}
	b.memory = b.memory[:need]
	if cap(b.strips) < n {
		b.strips = make([][]byte, n)
	}
	b.strips = b.strips[:n]
	for i := range b.strips {
		b.present(i, true)
	}
}

// frames are count frames from first. Their capacity ends with them.
func (b *slab) frames(first, count int) []byte {
	f := b.strip + TrailerBytes
	return b.memory[first*f : (first+count)*f : (first+count)*f]
}

// present sets whether the coder sees strip i; one that it doesn't has no length and
// the memory into which it is to be rebuilt.
func (b *slab) present(i int, there bool) {
	at := i * (b.strip + TrailerBytes)
	length := 0
	if there {
		length = b.strip
	}
	b.strips[i] = b.memory[at : at+length : at+b.strip]
}
