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

// coderOf returns the coder of a shape with K > 1. One goroutine a call: requests run
// beside each other already, and then a call makes no goroutines.
func coderOf(n, k int) (reedsolomon.Encoder, error) {
	if c, ok := coders.Load(coderKey{n, k}); ok {
		return c.(reedsolomon.Encoder), nil
	}
	c, err := reedsolomon.New(k, n-k,
		reedsolomon.WithMaxGoroutines(1), reedsolomon.WithInversionCache(false))
	if err != nil {
		return nil, fmt.Errorf("%w: (%d,%d): %w", ErrCoding, n, k, err)
	}
	kept, _ := coders.LoadOrStore(coderKey{n, k}, c)
	return kept.(reedsolomon.Encoder), nil
}
