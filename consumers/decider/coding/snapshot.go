package coding

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"penstock/consumers/decider/coding/fit"
	"penstock/consumers/decider/coding/threshold"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// mostTasks is the most tasks of a cell, or samples of a bin, in a snapshot: their sums
// stay within an int64.
const mostTasks = 1 << 40

// magic names the format and its version.
const magic = "penstock/coding/1\n"

func (c *coder) bins(b *window.Bins) {
	list(c, &b.Index, func(v *uint16) {
		x := int64(*v)
		c.int(&x)
		if x < 0 || x >= window.NumBins {
			c.fail("a bin that isn't one")
			return
		}
		*v = uint16(x)
	})
	list(c, &b.Counts, c.int)
	if len(b.Index) != len(b.Counts) {
		c.fail("bins without counts")
		return
	}
	for i, n := range b.Counts {
		if n < 1 || n > mostTasks || i > 0 && b.Index[i] <= b.Index[i-1] {
			c.fail("bins that don't ascend, or without samples")
			return
		}
	}
}

func (c *coder) cell(x *cell) {
	for _, v := range []*int64{&x.n, &x.k, &x.bits, &x.tasks, &x.bytes, &x.smallest, &x.least} {
		c.int(v)
	}
	c.bins(&x.done)
	c.bins(&x.cancelled)
	if x.k < 1 || x.n < x.k || x.n > 255 || x.tasks < 1 || x.tasks > mostTasks || x.bytes < 0 {
		c.fail("a cell without a code or tasks")
	}
}

func (c *coder) model(m *threshold.Model) {
	for _, v := range []*float64{&m.Delta, &m.DeltaPerMB, &m.Psi, &m.PsiPerMB} {
		c.float(v)
	}
}

func (c *coder) operation(o *operation) {
	list(c, &o.history, func(p *pane) {
		c.int(&p.window)
		list(c, &p.cells, c.cell)
	})
	c.model(&o.model)
	c.bool(&o.fitted)
	for i := range o.intervals {
		c.interval(&o.intervals[i])
	}
	list(c, &o.untold, c.text)
	c.int(&o.samples)
	c.float(&o.size)
	m := o.model
	if c.err == nil && (m.Validate() != nil && !o.fitted || min(m.Delta, m.DeltaPerMB, m.Psi, m.PsiPerMB) < 0 || !(o.size > 0)) {
		c.fail("a model that isn't one")
	}
}

func (c *coder) interval(x *fit.Interval) {
	c.float(&x.Low)
	c.float(&x.High)
}

// table codes a table as its canonical JSON: floats come back as they were.
func (c *coder) table(p *past) {
	c.int(&p.window)
	var text string
	if c.out != nil {
		body, err := control.Encode(p.table)
		if err != nil {
			c.err = fmt.Errorf("table: %w", err)
			return
		}
		text = string(body)
	}
	c.text(&text)
	if c.out == nil {
		p.table = new(control.CodingTable)
		if err := json.Unmarshal([]byte(text), p.table); err != nil && c.err == nil {
			c.fail("a table that isn't one")
		}
	}
}

func (c *coder) store(s *store) {
	c.int(&s.seen)
	for op := range s.ops {
		c.operation(&s.ops[op])
	}
	c.int(&s.sent)
	for _, p := range []*uint64{&s.epoch, &s.done, &s.bad} {
		x := int64(*p)
		c.int(&x)
		*p = uint64(x)
	}
	c.text(&s.last)
	list(c, &s.advice, c.table)
	c.text(&s.refused)
	n := int64(s.failed)
	c.int(&n)
	s.failed = int(n)
	list(c, &s.tables, c.table)
}

func (c *coder) state(s *state) {
	c.int(&s.now)
	list(c, &s.stores, c.store)
}

// Snapshot writes the state: equal states have equal bytes.
func (t *Policy) Snapshot(w io.Writer) error {
	c := &coder{out: new(bytes.Buffer)}
	c.out.WriteString(magic)
	width := t.config.Window.Microseconds()
	c.int(&width)
	var names []string
	for _, s := range t.config.Stores {
		names = append(names, s.Name)
	}
	list(c, &names, c.text)
	c.state(t.state)
	if c.err != nil {
		return c.err
	}
	sum := sha256.Sum256(c.out.Bytes())
	c.out.Write(sum[:])
	if _, err := w.Write(c.out.Bytes()); err != nil {
		return fmt.Errorf("write coding snapshot: %w", err)
	}
	return nil
}

// Restore replaces the state by one that was written, of this configuration or of an
// earlier one: stores are found by name, those that are gone are left out, and after a
// change of the window's width histories begin anew. What a store was believed to be
// before anything was measured is the new configuration's. The error wraps
// ErrSnapshot.
func (t *Policy) Restore(r io.Reader) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("read coding snapshot: %w", err)
	}
	if len(body) < len(magic)+sha256.Size || string(body[:len(magic)]) != magic {
		return fmt.Errorf("%d bytes that do not begin as one: %w", len(body), ErrSnapshot)
	}
	end := len(body) - sha256.Size
	if sum := sha256.Sum256(body[:end]); !bytes.Equal(sum[:], body[end:]) {
		return fmt.Errorf("its checksum is another: %w", ErrSnapshot)
	}
	c := &coder{in: body[len(magic):end]}
	var width int64
	var names []string
	c.int(&width)
	list(c, &names, c.text)
	s := new(state)
	c.state(s)
	if c.err == nil && (len(c.in) > 0 || len(names) != len(s.stores)) {
		c.fail("its parts do not fit")
	}
	if c.err != nil {
		return c.err
	}
	t.adopt(s, names, width == t.config.Window.Microseconds())
	return nil
}

// adopt takes over a state, made to fit this configuration.
func (t *Policy) adopt(old *state, names []string, sameWidth bool) {
	s := newState(&t.config)
	s.now = old.now
	for j, name := range names {
		i, ok := t.index[name]
		if !ok {
			continue
		}
		first := s.stores[i]
		s.stores[i] = old.stores[j]
		for op := range ops {
			o := &s.stores[i].ops[op]
			if !o.fitted {
				o.model, o.size = first.ops[op].model, first.ops[op].size
			}
			if !sameWidth {
				o.history = nil
			}
		}
	}
	t.state = s
}

// Digest returns "sha256:" and the digest of the state.
func (t *Policy) Digest() string {
	c := &coder{out: new(bytes.Buffer)}
	c.state(t.state)
	sum := sha256.Sum256(c.out.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:])
}
