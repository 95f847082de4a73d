package coding

import (
	"encoding/json"
	"fmt"
	"io"

	"penstock/consumers/decider/coding/fit"
	"penstock/consumers/decider/coding/threshold"
	"penstock/consumers/decider/statecode"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// mostTasks is the most tasks of a cell, or samples of a bin, in a snapshot: their sums
// stay within an int64.
const mostTasks = 1 << 40

// format is that of snapshots, with its version.
var format = statecode.Format{Magic: "penstock/coding/3\n", Fault: ErrSnapshot}

func codeBins(c *statecode.Coder, b *window.Bins) {
	statecode.ListOrNil(c, &b.Index, func(v *uint16) {
		x := int64(*v)
		c.Int(&x)
		if x < 0 || x >= window.NumBins {
			c.Fail("a bin that isn't one")
			return
		}
		*v = uint16(x)
	})
	statecode.ListOrNil(c, &b.Counts, c.Int)
	if len(b.Index) != len(b.Counts) {
		c.Fail("bins without counts")
		return
	}
	for i, n := range b.Counts {
		if n < 1 || n > mostTasks || i > 0 && b.Index[i] <= b.Index[i-1] {
			c.Fail("bins that don't ascend, or without samples")
			return
		}
	}
}

func codeCell(c *statecode.Coder, x *cell) {
	for _, v := range []*int64{&x.n, &x.k, &x.bits, &x.tasks, &x.bytes, &x.smallest, &x.least} {
		c.Int(v)
	}
	codeBins(c, &x.done)
	codeBins(c, &x.cancelled)
	if x.k < 1 || x.n < x.k || x.n > 255 || x.tasks < 1 || x.tasks > mostTasks || x.bytes < 0 {
		c.Fail("a cell without a code or tasks")
	}
}

func codeModel(c *statecode.Coder, m *threshold.Model) {
	for _, v := range []*float64{&m.Delta, &m.DeltaPerMB, &m.Psi, &m.PsiPerMB} {
		c.Finite(v)
	}
}

func codeOperation(c *statecode.Coder, o *operation) {
	statecode.ListOrNil(c, &o.history, func(p *pane) {
		c.Int(&p.window)
		statecode.ListOrNil(c, &p.cells, func(x *cell) { codeCell(c, x) })
	})
	codeModel(c, &o.model)
	c.Bool(&o.fitted)
	c.Bool(&o.told)
	c.Int(&o.doubts)
	c.Int(&o.off)
	for i := range o.intervals {
		codeInterval(c, &o.intervals[i])
	}
	statecode.ListOrNil(c, &o.untold, c.Text)
	c.Int(&o.samples)
	m := o.model
	if c.Err() == nil && (m.Validate() != nil && !o.fitted || min(m.Delta, m.DeltaPerMB, m.Psi, m.PsiPerMB) < 0 || o.samples < 0 || o.samples > mostTasks || o.doubts < 0 || o.doubts > mostDoubts || abs(o.off) >= shiftWindows) {
		c.Fail("a model that isn't one")
	}
}

func codeInterval(c *statecode.Coder, x *fit.Interval) {
	c.Finite(&x.Low)
	c.Finite(&x.High)
}

// codeTable codes a table as its canonical JSON: floats come back as they were.
func codeTable(c *statecode.Coder, p *past) {
	c.Int(&p.window)
	var text string
	if !c.Reads() {
		body, err := control.Encode(p.table)
		if err != nil {
			c.Stop(fmt.Errorf("table: %w", err))
			return
		}
		text = string(body)
	}
	c.Text(&text)
	if c.Reads() {
		p.table = new(control.CodingTable)
		if err := json.Unmarshal([]byte(text), p.table); err != nil && c.Err() == nil {
			c.Fail("a table that isn't one")
		}
	}
}

func codeCoder(c *statecode.Coder, s *coder) {
	c.Int(&s.seen)
	statecode.ListOrNil(c, &s.members, func(m *member) {
		for op := range m.ops {
			codeOperation(c, &m.ops[op])
		}
	})
	for op := range s.sizes {
		c.Finite(&s.sizes[op])
		if c.Err() == nil && !(s.sizes[op] > 0) {
			c.Fail("a size that isn't one")
		}
	}
	c.Int(&s.sent)
	c.Int(&s.changed)
	c.Int(&s.steps)
	c.Bool(&s.shifted)
	if c.Err() == nil && (s.steps < 0 || s.steps > mostSteps) {
		c.Fail("steps that aren't")
	}
	for _, p := range []*uint64{&s.standing.Epoch, &s.standing.Done, &s.standing.Bad} {
		c.Uint(p)
	}
	c.Text(&s.last)
	statecode.ListOrNil(c, &s.advice, func(x *past) { codeTable(c, x) })
	c.Text(&s.standing.Refused)
	c.Number(&s.standing.Failed)
	statecode.ListOrNil(c, &s.tables, func(x *past) { codeTable(c, x) })
}

func codeState(c *statecode.Coder, s *state) {
	c.Int(&s.now)
	statecode.ListOrNil(c, &s.coders, func(x *coder) { codeCoder(c, x) })
}

// named is a coder and its stores, as a state's places stand for them.
type named struct {
	coder   string
	members []string
}

func codeNames(c *statecode.Coder, names *[]named) {
	statecode.ListOrNil(c, names, func(n *named) {
		c.Text(&n.coder)
		statecode.ListOrNil(c, &n.members, c.Text)
	})
}

// Snapshot writes the state: equal states have equal bytes.
func (t *Policy) Snapshot(w io.Writer) error {
	c := format.Write()
	width := t.config.Window.Microseconds()
	c.Int(&width)
	names := make([]named, len(t.config.Coders))
	for i := range t.config.Coders {
		names[i] = named{t.config.Coders[i].Name, t.config.Coders[i].members()}
	}
	codeNames(c, &names)
	codeState(c, t.state)
	return c.Seal(w)
}

// Restore replaces the state by one that was written, of this configuration or of an
// earlier one: coders and stores are found by name, those that are gone are left out, and after a
// change of the window's width histories begin anew. What stores were believed to be
// before anything was measured is the new configuration's. The error wraps
// ErrSnapshot.
func (t *Policy) Restore(r io.Reader) error {
	c, err := format.Read(r)
	if err != nil {
		return err
	}
	var width int64
	var names []named
	c.Int(&width)
	codeNames(c, &names)
	s := new(state)
	codeState(c, s)
	if c.Err() == nil && (c.Left() > 0 || !s.fits(names)) {
		c.Fail("its parts do not fit")
	}
	if c.Err() != nil {
		return c.Err()
	}
	t.adopt(s, names, width == t.config.Window.Microseconds())
	return nil
}

// fits says whether a state has a place for each name.
func (s *state) fits(names []named) bool {
	if len(names) != len(s.coders) {
		return false
	}
	for i := range names {
		if len(names[i].members) != len(s.coders[i].members) {
			return false
		}
	}
	return true
}

// adopt takes over a state, made to fit this configuration.
func (t *Policy) adopt(old *state, names []named, sameWidth bool) {
	s := newState(&t.config)
	s.now = old.now
	for j, name := range names {
		i, ok := t.index[name.coder]
		if !ok {
			continue
		}
		was, first := old.coders[j], s.coders[i]
		s.coders[i] = was
		s.coders[i].members = first.members
		for m, store := range name.members {
			if at, ok := t.stores[store]; ok && at.coder == i {
				s.coders[i].members[at.member].adopt(&was.members[m], sameWidth)
			}
		}
		for op := range ops {
			if !s.coders[i].fitted(op) {
				s.coders[i].sizes[op] = first.sizes[op]
			}
		}
	}
	t.state = s
}

// adopt takes over what is known of a store.
func (m *member) adopt(old *member, sameWidth bool) {
	for op := range ops {
		model := m.ops[op].model
		m.ops[op] = old.ops[op]
		if !m.ops[op].fitted {
			m.ops[op].model = model
		}
		if !sameWidth {
			m.ops[op].history = nil
		}
	}
}

// Digest returns "sha256:" and the digest of the state.
func (t *Policy) Digest() string {
	return statecode.Digest(func(c *statecode.Coder) { codeState(c, t.state) })
}
