package workload

import (
	"io"

	"penstock/schemas/event"
)

// Component is what all requests of the day call (to_component).
const Component = "osn"

// Generator hands out the rows of a day in time order, ties in the order in
// which they were caused. It is not safe for concurrent use.
type Generator struct {
	p       Params
	pop     *population
	plan    Plan
	readers aliases // by user
	delays  *delays
	writes  *writes
	reads   source
	row     event.Request

	// The write that comes next, if any, and the reads under way.
	at      int64
	writer  int32
	more    bool
	pending heap
	caused  uint64
}

// New draws users and friends and fixes the number of writes. The error wraps
// ErrParams.
func New(p Params) (*Generator, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	pop := settle(&p)
	pop.befriend(&p)
	d, l := newDay(&p, pop), newDelays(p.Reads.After)
	t := newTally(&p, pop, d, l)
	n, err := t.scale()
	if err != nil {
		return nil, err
	}
	g := &Generator{
		p: p, pop: pop, plan: t.plan(n), delays: l,
		writes: d.writes(p.Seed, n), reads: newSource(p.Seed, streamReads), row: event.NewRequest(0),
	}
	for _, levels := range pop.levels {
		g.readers.add(levels)
	}
	g.row.ToComponent, g.row.Status = Component, 200
	g.at, g.writer, g.more = g.writes.next()
	return g, nil
}

// Plan tells what the day comes to.
func (g *Generator) Plan() Plan { return g.plan }

// Next sets r to the next row, or returns io.EOF after the last. It allocates
// only while the reads under way grow.
func (g *Generator) Next(r *event.Request) error {
	*r = g.row
	if len(g.pending) > 0 && (!g.more || g.pending[0].at <= g.at) {
		p := g.pending.pop()
		g.fill(r, p.at, event.Read, p.reader, p.owner, g.p.Reads.Bytes)
		return nil
	}
	if !g.more {
		return io.EOF
	}
	at, u := g.at, g.writer
	g.at, g.writer, g.more = g.writes.next()
	for range g.p.Reads.PerWrite {
		reader := g.pop.readers[u][g.readers.draw(int(u), g.reads.pcg.Uint64())]
		g.caused++
		g.pending.push(pending{at: at + g.delays.draw(g.reads.pcg.Uint64()), nth: g.caused, reader: reader, owner: u})
	}
	g.fill(r, at, event.Write, u, u, g.p.Write)
	return nil
}

func (g *Generator) fill(r *event.Request, at int64, op event.Op, user, owner int32, bytes int64) {
	r.Time, r.Op, r.Bytes = at, op, bytes
	r.User, r.Owner = g.pop.names[user], g.pop.names[owner]
	r.Lat, r.Lon = g.pop.lat[user], g.pop.lon[user]
}

// pending is a read that is under way: the nth that was caused.
type pending struct {
	at     int64
	nth    uint64
	reader int32
	owner  int32
}

func (p *pending) before(o *pending) bool {
	return p.at < o.at || p.at == o.at && p.nth < o.nth
}

// heap is a heap of four children a node: half the depth of a binary one, and
// the children lie side by side in memory.
type heap []pending

func (h *heap) push(p pending) {
	*h = append(*h, p)
	s := *h
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !p.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = p
}

func (h *heap) pop() pending {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	i := 0
	for {
		child := 4*i + 1
		if child >= len(s) {
			break
		}
		for c := child + 1; c < min(child+3, len(s)-1)+1 && c < 4*i+5; c++ {
			if s[c].before(&s[child]) {
				child = c
			}
		}
		if !s[child].before(&last) {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = last
	}
	return top
}
