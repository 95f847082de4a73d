// Package statecode holds the coder of policies' states: what a policy keeps is described
// once, and the description writes it to a snapshot, reads it back and gives its digest,
// so that the three cannot differ.
//
// A snapshot is a magic text, what the coder wrote, and the sha256 of both. Numbers are
// varints; floats are either 8 bytes as they are, or the varint of their bits and finite.
//
// States: a Coder writes (Write) or reads (Read), and after the first fault it does
// nothing more. Failures: bytes that are not such a snapshot, or that end early, give an
// error that wraps the Format's Fault.
package statecode

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
)

// longest is the greatest length of a list in a snapshot.
const longest = 1 << 24

// Format is that of one policy's snapshots.
type Format struct {
	Magic string // begins each snapshot: the format and its version
	Fault error  // what the errors about a snapshot's bytes wrap
}

// Coder writes a state, or reads one. After the first fault it does nothing: what it
// was given stays as it is.
type Coder struct {
	format  *Format
	out     *bytes.Buffer // nil: it reads
	in      []byte
	err     error
	scratch [binary.MaxVarintLen64]byte
}

// Write returns a coder that writes a snapshot; Seal ends it.
func (f *Format) Write() *Coder {
	c := &Coder{format: f, out: new(bytes.Buffer)}
	c.out.WriteString(f.Magic)
	return c
}

// Read returns a coder that reads a snapshot to the end of r. The error wraps Fault if
// the bytes are not a whole snapshot of this format, or is r's.
func (f *Format) Read(r io.Reader) (*Coder, error) {
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	if len(body) < len(f.Magic)+sha256.Size || string(body[:len(f.Magic)]) != f.Magic {
		return nil, fmt.Errorf("%d bytes that do not begin as one: %w", len(body), f.Fault)
	}
	end := len(body) - sha256.Size
	if sum := sha256.Sum256(body[:end]); !bytes.Equal(sum[:], body[end:]) {
		return nil, fmt.Errorf("its checksum is another: %w", f.Fault)
	}
	return &Coder{format: f, in: body[len(f.Magic):end]}, nil
}

// Digest is "sha256:" and the hex digest of what state writes.
func Digest(state func(*Coder)) string {
	c := &Coder{format: new(Format), out: new(bytes.Buffer)}
	state(c)
	sum := sha256.Sum256(c.out.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Seal adds the checksum and gives all that was written to w. The error is the first
// fault, of which nothing was given, or w's.
func (c *Coder) Seal(w io.Writer) error {
	if c.err != nil {
		return c.err
	}
	sum := sha256.Sum256(c.out.Bytes())
	c.out.Write(sum[:])
	if _, err := w.Write(c.out.Bytes()); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// Reads reports whether the coder reads.
func (c *Coder) Reads() bool { return c.out == nil }

// Left is how many bytes are still to be read.
func (c *Coder) Left() int { return len(c.in) }

// Err is the first fault, nil if there was none.
func (c *Coder) Err() error { return c.err }

// Fail notes what is wrong with the bytes that are read.
func (c *Coder) Fail(what string) { c.Stop(fmt.Errorf("%s: %w", what, c.format.Fault)) }

// Stop notes a fault that is not of the bytes that are read.
func (c *Coder) Stop(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Int codes an integer.
func (c *Coder) Int(v *int64) {
	if c.out != nil {
		c.out.Write(c.scratch[:binary.PutVarint(c.scratch[:], *v)])
		return
	}
	x, n := binary.Varint(c.in)
	if n <= 0 || c.err != nil {
		c.Fail("a number is cut off")
		return
	}
	*v, c.in = x, c.in[n:]
}

// Number codes an int as Int does.
func (c *Coder) Number(v *int) {
	x := int64(*v)
	c.Int(&x)
	*v = int(x)
}

// Uint codes an unsigned integer: Int of its bits.
func (c *Coder) Uint(v *uint64) {
	x := int64(*v)
	c.Int(&x)
	*v = uint64(x)
}

// Bool codes a bool as an Int of 0 or 1.
func (c *Coder) Bool(v *bool) {
	x := int64(0)
	if *v {
		x = 1
	}
	c.Int(&x)
	*v = x != 0
}

// Float codes a float as the 8 bytes that it is, whatever it is.
func (c *Coder) Float(v *float64) {
	if c.out != nil {
		c.out.Write(binary.LittleEndian.AppendUint64(c.scratch[:0], math.Float64bits(*v)))
		return
	}
	if len(c.in) < 8 || c.err != nil {
		c.Fail("a number is cut off")
		return
	}
	*v, c.in = math.Float64frombits(binary.LittleEndian.Uint64(c.in)), c.in[8:]
}

// Finite codes a float as an Int of its bits; one that is not finite is a fault.
func (c *Coder) Finite(v *float64) {
	x := int64(math.Float64bits(*v))
	c.Int(&x)
	if *v = math.Float64frombits(uint64(x)); math.IsNaN(*v) || math.IsInf(*v, 0) {
		c.Fail("a number that isn't finite")
	}
}

// Text codes a text: its length and its bytes.
func (c *Coder) Text(v *string) {
	n := len(*v)
	c.Number(&n)
	if c.out != nil {
		c.out.WriteString(*v)
		return
	}
	if n < 0 || n > len(c.in) || c.err != nil {
		c.Fail("a text is cut off")
		return
	}
	*v, c.in = string(c.in[:n]), c.in[n:]
}

// List codes a list, each element by each; nil and empty are told apart.
func List[T any](c *Coder, v *[]T, each func(*T)) {
	n := len(*v)
	if *v == nil {
		n = -1
	}
	c.Number(&n)
	elements(c, v, n, -1, each)
}

// ListOrNil codes a list of which an empty one comes back as nil, each element by each.
func ListOrNil[T any](c *Coder, v *[]T, each func(*T)) {
	n := len(*v)
	c.Number(&n)
	elements(c, v, n, 0, each)
}

// elements codes the n elements of a list; below 0, or below 1 where least is 0, there
// is no list.
func elements[T any](c *Coder, v *[]T, n, least int, each func(*T)) {
	if c.out == nil {
		// An element takes a byte at least: more cannot be there.
		if n < least || n > longest || n > len(c.in) || c.err != nil {
			c.Fail("a list is cut off")
			return
		}
		if *v = nil; n > least {
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
