package coding

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// longest is the greatest length of a list in a snapshot.
const longest = 1 << 24

// coder writes a state, or reads one: one description serves both, so that they cannot
// differ. After the first fault it does nothing.
type coder struct {
	out     *bytes.Buffer // nil: it reads
	in      []byte
	err     error
	scratch [binary.MaxVarintLen64]byte
}

func (c *coder) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: %w", what, ErrSnapshot)
	}
}

func (c *coder) int(v *int64) {
	if c.out != nil {
		c.out.Write(c.scratch[:binary.PutVarint(c.scratch[:], *v)])
		return
	}
	x, n := binary.Varint(c.in)
	if n <= 0 || c.err != nil {
		c.fail("a number is cut off")
		return
	}
	*v, c.in = x, c.in[n:]
}

func (c *coder) bool(v *bool) {
	x := int64(0)
	if *v {
		x = 1
	}
	c.int(&x)
	*v = x != 0
}

func (c *coder) float(v *float64) {
	x := int64(math.Float64bits(*v))
	c.int(&x)
	if *v = math.Float64frombits(uint64(x)); math.IsNaN(*v) || math.IsInf(*v, 0) {
		c.fail("a number that isn't finite")
	}
}

func (c *coder) text(v *string) {
	n := int64(len(*v))
	c.int(&n)
	if c.out != nil {
		c.out.WriteString(*v)
		return
	}
	if n < 0 || n > int64(len(c.in)) || c.err != nil {
		c.fail("a text is cut off")
		return
	}
	*v, c.in = string(c.in[:n]), c.in[n:]
}

// list codes a list; an empty one comes back as nil.
func list[T any](c *coder, v *[]T, each func(*T)) {
	n := int64(len(*v))
	c.int(&n)
	if c.out == nil {
		// An element takes a byte at least: more cannot be there.
		if n < 0 || n > longest || n > int64(len(c.in)) || c.err != nil {
			c.fail("a list is cut off")
			return
		}
		if *v = nil; n > 0 {
			*v = make([]T, n)
		}
	}
	for i := range *v {
		if c.err != nil {
			return
		}
		each(&(*v)[i])
	}
}
