package split

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
)

// magic names the format and its version.
const magic = "penstock/split/1\n"

// most is the greatest length of a list in a snapshot.
const most = 1 << 24

// coder writes a state, or reads one: one description serves both, so that they
// cannot differ. After the first fault it does nothing.
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

func (c *coder) number(v *int) {
	x := int64(*v)
	c.int(&x)
	*v = int(x)
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
	if c.out != nil {
		c.out.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(*v)))
		return
	}
	if len(c.in) < 8 || c.err != nil {
		c.fail("a number is cut off")
		return
	}
	*v, c.in = math.Float64frombits(binary.LittleEndian.Uint64(c.in)), c.in[8:]
}

func (c *coder) text(v *string) {
	n := len(*v)
	c.number(&n)
	if c.out != nil {
		c.out.WriteString(*v)
		return
	}
	if n < 0 || n > len(c.in) || c.err != nil {
		c.fail("a text is cut off")
		return
	}
	*v, c.in = string(c.in[:n]), c.in[n:]
}

// list codes a list; nil and empty are told apart.
func list[T any](c *coder, v *[]T, each func(*T)) {
	n := len(*v)
	if *v == nil {
		n = -1
	}
	c.number(&n)
	if c.out == nil {
		// An element takes a byte at least: more cannot be there.
		if n < -1 || n > most || n > len(c.in) || c.err != nil {
			c.fail("a list is cut off")
			return
		}
		if *v = nil; n >= 0 {
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

func (c *coder) series(v *series) {
	list(c, (*[]sample)(v), func(x *sample) {
		for _, p := range []*int64{&x.window, &x.requests, &x.errors, &x.sum, &x.count, &x.extra} {
			c.int(p)
		}
	})
}

func (c *coder) row(r *row) {
	c.bool(&r.present)
	if !r.present {
		return
	}
	list(c, &r.parts, c.number)
	list(c, &r.target, c.number)
	list(c, &r.up, c.int)
	list(c, &r.down, c.int)
	list(c, &r.cost, c.float)
	list(c, &r.last, c.float)
	list(c, &r.probes, c.number)
	c.bool(&r.fast)
	c.bool(&r.expired)
	c.int(&r.enough)
	c.int(&r.seen)
}

func (c *coder) replica(r *replica) {
	c.bool(&r.present)
	c.series(&r.history)
	c.float(&r.lastKnown)
	c.int(&r.lastAt)
	c.float(&r.level)
	c.float(&r.capacity.thresh)
	c.float(&r.capacity.delay)
	c.float(&r.capacity.fine)
	c.float(&r.capacity.before)
	c.number(&r.capacity.slow)
	list(c, &r.capacity.points, func(p *point) {
		c.float(&p.load)
		c.float(&p.delay)
		c.int(&p.count)
	})
}

func (c *coder) scope(s *scope) {
	c.int(&s.sent)
	for _, p := range []*uint64{&s.epoch, &s.done, &s.bad} {
		x := int64(*p)
		c.int(&x)
		*p = uint64(x)
	}
	c.text(&s.table)
	c.text(&s.advised)
	c.text(&s.refused)
	c.number(&s.failed)
	list(c, &s.changes, func(x *change) {
		c.int(&x.window)
		list(c, &x.rows, func(r *oldRow) {
			c.number(&r.edge)
			c.number(&r.site)
			list(c, &r.parts, c.number)
		})
	})
}

// state codes all that the state holds. What follows from it or from the
// configuration is made again by Restore.
func (c *coder) state(s *state) {
	c.int(&s.now)
	list(c, &s.windows, c.int)
	list(c, &s.components, func(k *component) {
		c.text(&k.name)
		c.int(&k.seen)
	})
	list(c, &s.replicas, func(r *[]replica) { list(c, r, c.replica) })
	list(c, &s.edges, func(e *edge) {
		c.number(&e.from)
		c.number(&e.to)
		list(c, &e.links, func(l *[]series) { list(c, l, c.series) })
		list(c, &e.rows, c.row)
	})
	list(c, &s.scopes, c.scope)
	c.int(&s.plannedAt)
	list(c, &s.planned.shape, c.int)
	list(c, &s.planned.numbers, c.float)
}

// Snapshot writes the state: equal states have equal bytes.
func (t *Policy) Snapshot(w io.Writer) error {
	c := &coder{out: new(bytes.Buffer)}
	c.out.WriteString(magic)
	width, resolution := t.config.Window.Microseconds(), int64(t.config.Resolution)
	c.int(&width)
	c.int(&resolution)
	var sites []string
	for _, s := range t.config.Sites {
		sites = append(sites, s.Name)
	}
	list(c, &sites, c.text)
	c.state(t.state)
	sum := sha256.Sum256(c.out.Bytes())
	c.out.Write(sum[:])
	if _, err := w.Write(c.out.Bytes()); err != nil {
		return fmt.Errorf("write split snapshot: %w", err)
	}
	return nil
}

// Digest returns "sha256:" and the digest of the state.
func (t *Policy) Digest() string {
	c := &coder{out: new(bytes.Buffer)}
	c.state(t.state)
	sum := sha256.Sum256(c.out.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:])
}
