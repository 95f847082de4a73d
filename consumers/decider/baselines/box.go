package baselines

// Options of the strategies; the zero value has the defaults.
type Options struct {
	Volley VolleyOptions
	Akkio  AkkioOptions
}

// Box is the strategies side by side over the same accesses. It is not safe for
// concurrent use.
type Box struct {
	ledger     *Ledger
	strategies []Strategy
	moved      [][]Moved
}

// New returns all strategies of this package, for sites in config order.
func New(sites []Site, o Options) *Box {
	l := newLedger(sites)
	return &Box{ledger: l, strategies: []Strategy{newReplica(l), newDistance(l), newVolley(l, o.Volley), newAkkio(l, o.Akkio)}}
}

// Strategies in their order: nearest-replica, distance-only, volley, akkio-like.
func (b *Box) Strategies() []Strategy { return b.strategies }

// Places is the numbering of places for accesses.
func (b *Box) Places() *Places { return b.ledger.places }

// Stand says where an owner's data is, before it is first served, and adds to how
// much it is. Without it a copy is put at home for nothing.
func (b *Box) Stand(owner int32, site int16, bytes int64) {
	b.ledger.node(owner).stored += bytes
	for _, s := range b.strategies {
		s.Stand(owner, site)
	}
}

// Access takes an access, and writes the site that serves it into at, by
// strategy. It allocates only for new ids and links.
func (b *Box) Access(a *Access, at []int16) {
	b.ledger.count(a)
	for i, s := range b.strategies {
		at[i] = s.Access(a)
	}
}

// Close ends the open window at that time (µs), and returns what moves by
// strategy. It is valid until the next call.
func (b *Box) Close(end int64) [][]Moved {
	b.ledger.order()
	b.moved = b.moved[:0]
	for _, s := range b.strategies {
		b.moved = append(b.moved, s.Close(end))
	}
	b.ledger.turn()
	return b.moved
}
