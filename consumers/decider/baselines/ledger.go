package baselines

import (
	"slices"

	"penstock/schemas/sphere"
)

// Ledger counts what strategies decide by. It holds sums by owner, and links of
// the open window.
type Ledger struct {
	places  *Places
	sites   []Site
	at      []sphere.Vector // of sites
	nodes   []node          // by number
	asked   []int32         // owners asked for in the open window
	seen    []int32         // users with a place in the open window
	links   links
	written []int64 // in the open window, by the site nearest to the writer
}

// node is an id: an owner, a user, or both.
type node struct {
	stored int64 // bytes of its data: what a move carries
	// Of the open window: requests for its data, their bytes, and of the requests
	// with a place their number and the sum of the unit vectors of these.
	requests, bytes, placed int64
	from                    vector
	near                    int16 // nearest to its latest own place
	asked, seen             bool
}

// newLedger returns an empty ledger.
func newLedger(sites []Site) *Ledger {
	p := NewPlaces(sites)
	return &Ledger{places: p, sites: sites, at: p.sites, written: make([]int64, len(sites))}
}

// node returns the node of a number. It is valid until the next call.
func (l *Ledger) node(number int32) *node {
	for int(number) >= len(l.nodes) {
		l.nodes = append(l.nodes, node{near: None})
	}
	return &l.nodes[number]
}

// count takes an access.
func (l *Ledger) count(a *Access) {
	if a.User >= 0 && a.Place >= 0 {
		u := l.node(a.User)
		u.near = l.places.known[a.Place].near
		if !u.seen {
			u.seen, l.seen = true, append(l.seen, a.User)
		}
	}
	if a.Written > 0 && a.Place >= 0 {
		l.written[l.places.known[a.Place].near] += a.Written
	}
	if a.Owner < 0 {
		return
	}
	o := l.node(a.Owner)
	o.stored += a.Written
	o.requests += a.Requests
	o.bytes += a.Bytes
	if a.Place >= 0 {
		o.placed += a.Requests
		o.from.add(l.places.known[a.Place].sum, a.Requests)
	}
	if !o.asked {
		o.asked, l.asked = true, append(l.asked, a.Owner)
	}
	if a.User >= 0 && a.User != a.Owner {
		if a.Place < 0 {
			l.node(a.User) // Others rely on one for both ends.
		}
		l.links.add(a.User, a.Owner, a.Requests)
	}
}

// home is where a new owner's one copy is put.
func (l *Ledger) home(a *Access) int16 {
	if own := l.node(a.Owner).near; own >= 0 {
		return own
	}
	if a.Place >= 0 {
		return l.places.known[a.Place].near
	}
	return None
}

// order sorts what the open window has seen, before strategies close it.
func (l *Ledger) order() {
	slices.Sort(l.asked)
	slices.Sort(l.seen)
}

// turn forgets the window.
func (l *Ledger) turn() {
	for _, o := range l.asked {
		n := &l.nodes[o]
		n.requests, n.bytes, n.placed, n.from, n.asked = 0, 0, 0, vector{}, false
	}
	for _, u := range l.seen {
		l.nodes[u].seen = false
	}
	l.asked, l.seen = l.asked[:0], l.seen[:0]
	l.links.reset()
	clear(l.written)
}
