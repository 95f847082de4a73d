package split

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"
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
	c.float(&r.capacity.thresh)
	c.float(&r.capacity.delay)
	c.float(&r.capacity.fine)
	c.float(&r.capacity.before)
	list(c, &r.capacity.points, func(p *point) {
		c.float(&p.load)
		c.float(&p.delay)
		c.int(&p.count)
	})
}

func (c *coder) scope(s *scope) {
	c.int(&s.sent)
	for _, p := range []*uint64{&s.epoch, &s.answered} {
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

// Restore replaces the state by one that was written, of this configuration or of
// an earlier one: sites are found by name, those that are gone are left out, and
// after a change of the window's width or of the resolution histories or tables
// begin anew. The error wraps ErrSnapshot.
func (t *Policy) Restore(r io.Reader) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("read split snapshot: %w", err)
	}
	if len(body) < len(magic)+sha256.Size || string(body[:len(magic)]) != magic {
		return fmt.Errorf("%d bytes that do not begin as one: %w", len(body), ErrSnapshot)
	}
	end := len(body) - sha256.Size
	if sum := sha256.Sum256(body[:end]); !bytes.Equal(sum[:], body[end:]) {
		return fmt.Errorf("its checksum is another: %w", ErrSnapshot)
	}
	c := &coder{in: body[len(magic):end]}
	var width, resolution int64
	var sites []string
	c.int(&width)
	c.int(&resolution)
	list(c, &sites, c.text)
	s := newState()
	c.state(s)
	if c.err == nil && len(c.in) > 0 {
		c.fail("bytes are left")
	}
	if c.err == nil {
		s.check(c, len(sites))
	}
	if c.err != nil {
		return c.err
	}
	t.adopt(s, sites, width == t.config.Window.Microseconds(), resolution == int64(t.config.Resolution))
	return nil
}

// check refuses a state whose parts do not fit each other.
func (s *state) check(c *coder, sites int) {
	k := len(s.components)
	if k == 0 || s.components[0].name != "" || len(s.replicas) != k || len(s.scopes) != k {
		c.fail("components do not fit")
		return
	}
	for _, r := range s.replicas {
		if len(r) != sites {
			c.fail("replicas do not fit")
		}
	}
	for i := range s.edges {
		e := &s.edges[i]
		if e.from < 0 || e.from >= k || e.to <= 0 || e.to >= k || len(e.links) != sites || len(e.rows) != sites {
			c.fail("an edge does not fit")
			return
		}
		for a := range e.links {
			r := &e.rows[a]
			if len(e.links[a]) != sites || r.parts != nil && (len(r.parts) != sites || len(r.target) != sites || len(r.up) != sites || len(r.down) != sites) ||
				r.probes != nil && len(r.probes) != sites || r.cost != nil && (len(r.cost) != sites || len(r.last) != sites) {
				c.fail("a row does not fit")
			}
		}
	}
	for i := range s.scopes {
		for _, x := range s.scopes[i].changes {
			for _, r := range x.rows {
				if r.edge < 0 || r.edge >= len(s.edges) || r.site < 0 || r.site >= sites || len(r.parts) != sites {
					c.fail("a change does not fit")
				}
			}
		}
	}
}

// adopt takes over a state, made to fit this configuration.
func (t *Policy) adopt(s *state, sites []string, sameWidth, sameResolution bool) {
	var names []string
	for _, x := range t.config.Sites {
		names = append(names, x.Name)
	}
	if !slices.Equal(names, sites) {
		s.move(sites, t.siteIndex, len(names))
	}
	for j := range s.components {
		s.index[s.components[j].name] = j
		t.bind(&s.components[j])
		for n := range s.replicas[j] {
			r := &s.replicas[j][n]
			if g := s.components[j].given; g != nil {
				r.present = r.present || g[n]
			}
			if !sameWidth {
				r.history, r.capacity = nil, newCapacity()
			}
		}
	}
	for i := range s.edges {
		e := &s.edges[i]
		s.edgeIndex[[2]int{e.from, e.to}] = i
		for a := range e.rows {
			if !sameResolution {
				e.rows[a].parts, e.rows[a].target, e.rows[a].probes = nil, nil, nil
			}
			if !sameWidth {
				for b := range e.links[a] {
					e.links[a][b] = nil
				}
			}
		}
	}
	if !sameWidth {
		s.windows = nil
	}
	if !sameResolution {
		for i := range s.scopes {
			s.scopes[i].changes = nil
		}
	}
	t.state = s
	for _, k := range t.config.Components {
		t.component(k.Name)
	}
}

// move brings a state of other sites to these. A row with a share at a site that
// is gone begins anew, and so do plans and histories of tables.
func (s *state) move(old []string, index map[string]int, sites int) {
	to := make([]int, len(old))
	for n, name := range old {
		to[n] = -1
		if k, ok := index[name]; ok {
			to[n] = k
		}
	}
	for j := range s.replicas {
		reps := make([]replica, sites)
		for n := range reps {
			reps[n].lastAt, reps[n].capacity = noTime, newCapacity()
		}
		for n, r := range s.replicas[j] {
			if to[n] >= 0 {
				reps[to[n]] = r
			}
		}
		s.replicas[j] = reps
	}
	for i := range s.edges {
		e := &s.edges[i]
		links, rows := make([][]series, sites), make([]row, sites)
		for a := range links {
			links[a] = make([]series, sites)
		}
		for a := range e.links {
			if to[a] < 0 {
				continue
			}
			for b := range e.links[a] {
				if to[b] >= 0 {
					links[to[a]][to[b]] = e.links[a][b]
				}
			}
			rows[to[a]] = e.rows[a].moved(to, sites)
		}
		e.links, e.rows = links, rows
	}
	for i := range s.scopes {
		s.scopes[i].changes = nil
	}
	s.planned = signature{}
}

func (r row) moved(to []int, sites int) row {
	old := r
	r.cost, r.last, r.probes = nil, nil, nil
	if old.parts == nil {
		r.up, r.down, r.target = nil, nil, nil
		return r
	}
	r.parts, r.target = make([]int, sites), nil
	r.up, r.down = make([]int64, sites), make([]int64, sites)
	for n := range sites {
		r.up[n], r.down[n] = noTime, noTime
	}
	for n, k := range to {
		switch {
		case k >= 0:
			r.parts[k], r.up[k], r.down[k] = old.parts[n], old.up[n], old.down[n]
		case old.parts[n] > 0:
			r.parts, r.up, r.down = nil, nil, nil
			return r
		}
	}
	r.target = slices.Clone(r.parts)
	return r
}
