package split

import (
	"io"

	"penstock/consumers/decider/statecode"
)

// format is that of snapshots, with its version.
var format = statecode.Format{Magic: "penstock/split/1\n", Fault: ErrSnapshot}

func codeSeries(c *statecode.Coder, v *series) {
	statecode.List(c, (*[]sample)(v), func(x *sample) {
		for _, p := range []*int64{&x.window, &x.requests, &x.errors, &x.sum, &x.count, &x.extra} {
			c.Int(p)
		}
	})
}

func codeRow(c *statecode.Coder, r *row) {
	c.Bool(&r.present)
	if !r.present {
		return
	}
	statecode.List(c, &r.parts, c.Number)
	statecode.List(c, &r.target, c.Number)
	statecode.List(c, &r.up, c.Int)
	statecode.List(c, &r.down, c.Int)
	statecode.List(c, &r.cost, c.Float)
	statecode.List(c, &r.last, c.Float)
	statecode.List(c, &r.probes, c.Number)
	c.Bool(&r.fast)
	c.Bool(&r.expired)
	c.Int(&r.enough)
	c.Int(&r.seen)
}

func codeReplica(c *statecode.Coder, r *replica) {
	c.Bool(&r.present)
	codeSeries(c, &r.history)
	c.Float(&r.lastKnown)
	c.Int(&r.lastAt)
	c.Float(&r.level)
	c.Float(&r.capacity.thresh)
	c.Float(&r.capacity.delay)
	c.Float(&r.capacity.fine)
	c.Float(&r.capacity.before)
	c.Number(&r.capacity.slow)
	statecode.List(c, &r.capacity.points, func(p *point) {
		c.Float(&p.load)
		c.Float(&p.delay)
		c.Int(&p.count)
	})
}

func codeScope(c *statecode.Coder, s *scope) {
	c.Int(&s.sent)
	for _, p := range []*uint64{&s.standing.Epoch, &s.standing.Done, &s.standing.Bad} {
		c.Uint(p)
	}
	c.Text(&s.table)
	c.Text(&s.advised)
	c.Text(&s.standing.Refused)
	c.Number(&s.standing.Failed)
	statecode.List(c, &s.changes, func(x *change) {
		c.Int(&x.window)
		statecode.List(c, &x.rows, func(r *oldRow) {
			c.Number(&r.edge)
			c.Number(&r.site)
			statecode.List(c, &r.parts, c.Number)
		})
	})
}

// codeState codes all that the state holds. What follows from it or from the
// configuration is made again by Restore.
func codeState(c *statecode.Coder, s *state) {
	c.Int(&s.now)
	statecode.List(c, &s.windows, c.Int)
	statecode.List(c, &s.components, func(k *component) {
		c.Text(&k.name)
		c.Int(&k.seen)
	})
	statecode.List(c, &s.replicas, func(r *[]replica) { statecode.List(c, r, func(x *replica) { codeReplica(c, x) }) })
	statecode.List(c, &s.edges, func(e *edge) {
		c.Number(&e.from)
		c.Number(&e.to)
		statecode.List(c, &e.links, func(l *[]series) { statecode.List(c, l, func(x *series) { codeSeries(c, x) }) })
		statecode.List(c, &e.rows, func(x *row) { codeRow(c, x) })
	})
	statecode.List(c, &s.scopes, func(x *scope) { codeScope(c, x) })
	c.Int(&s.plannedAt)
	statecode.List(c, &s.planned.shape, c.Int)
	statecode.List(c, &s.planned.numbers, c.Float)
}

// Snapshot writes the state: equal states have equal bytes.
func (t *Policy) Snapshot(w io.Writer) error {
	c := format.Write()
	width, resolution := t.config.Window.Microseconds(), int64(t.config.Resolution)
	c.Int(&width)
	c.Int(&resolution)
	var sites []string
	for _, s := range t.config.Sites {
		sites = append(sites, s.Name)
	}
	statecode.List(c, &sites, c.Text)
	codeState(c, t.state)
	return c.Seal(w)
}

// Digest returns "sha256:" and the digest of the state.
func (t *Policy) Digest() string {
	return statecode.Digest(func(c *statecode.Coder) { codeState(c, t.state) })
}
