package object

import (
	"fmt"
	"sync"

	"github.com/klauspost/reedsolomon"
)

// pattern says which strips are to be made from which: sets of strips, K sources.
type pattern struct {
	coderKey
	sources, wanted stripSet
}

// stripSet has a bit a strip.
type stripSet [(SharedStrips + 63) / 64]uint64

func (s *stripSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *stripSet) has(i int) bool { return s[i/64]>>(i%64)&1 == 1 }

// maxPlans bounds the plans that are kept, some 20 KB each for the shared layout. Chunks
// of one k are lost in at most 924 ways, and of those few are seen again and again.
const maxPlans = 256

// plans keeps the decoding matrices of patterns, as coders whose parity is the wanted
// strips: inverting one of 60 × 60 costs as much as decoding 500 KB, and the library's
// own cache has no bound, which so many patterns would need.
var plans = struct {
	sync.RWMutex
	of map[pattern]reedsolomon.Encoder
}{of: make(map[pattern]reedsolomon.Encoder)}

// planOf returns the coder that makes the wanted strips, in order, of the sources.
func planOf(p pattern) (reedsolomon.Encoder, error) {
	plans.RLock()
	c, ok := plans.of[p]
	plans.RUnlock()
	if ok {
		return c, nil
	}
	c, err := newPlan(p)
	if err != nil {
		return nil, err
	}
	plans.Lock()
	defer plans.Unlock()
	if len(plans.of) >= maxPlans {
		clear(plans.of) // those in use are soon there again
	}
	plans.of[p] = c
	return c, nil
}

// newPlan finds the matrix by decoding unit vectors: if byte j of the j-th source is 1
// and all others are 0, byte j of a wanted strip is what the j-th source counts in it.
func newPlan(p pattern) (reedsolomon.Encoder, error) {
	c, err := coderOf(p.n, p.k)
	if err != nil {
		return nil, err
	}
	units, wanted := make([][]byte, p.n), make([]bool, p.n)
	source := 0
	for i := range units {
		units[i] = make([]byte, p.k)
		if wanted[i] = p.wanted.has(i); p.sources.has(i) {
			units[i][source] = 1
			source++
		} else {
			units[i] = units[i][:0]
		}
	}
	if err := c.ReconstructSome(units, wanted); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	var rows [][]byte
	for i, w := range wanted {
		if w {
			rows = append(rows, units[i])
		}
	}
	c, err = reedsolomon.New(p.k, len(rows), reedsolomon.WithCustomMatrix(rows),
		reedsolomon.WithMaxGoroutines(1), reedsolomon.WithInversionCache(false))
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return c, nil
}
