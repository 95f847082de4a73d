package baselines

// replica is nearest-replica: a full copy everywhere.
type replica struct {
	ledger *Ledger
	moved  []Moved
}

func newReplica(l *Ledger) *replica { return &replica{ledger: l} }

func (*replica) Name() string { return "nearest-replica" }

func (*replica) Text() string {
	return "a full copy at every site, each request to the site nearest to the requester, each write sent on to the others"
}

func (r *replica) Copies() int { return len(r.ledger.sites) }

func (*replica) Stand(int32, int16) {}

func (r *replica) Access(a *Access) int16 {
	if a.Place < 0 {
		return None
	}
	return r.ledger.places.known[a.Place].near
}

// Close returns the copies: what was written near a site goes to the n − 1
// others. The paper counts its traffic between clouds so (PAPERS §1.2, 6).
func (r *replica) Close(int64) []Moved {
	r.moved = r.moved[:0]
	others := int64(len(r.ledger.sites) - 1)
	for site, bytes := range r.ledger.written {
		if bytes > 0 && others > 0 {
			r.moved = append(r.moved, Moved{Owner: None, From: int16(site), To: None, Bytes: bytes * others})
		}
	}
	return r.moved
}

// distance is distance-only: one copy, nearest to its owner.
type distance struct {
	ledger *Ledger
	stands standing
	moved  []Moved
}

func newDistance(l *Ledger) *distance { return &distance{ledger: l} }

func (*distance) Name() string { return "distance-only" }

func (*distance) Text() string {
	return "one copy at the site nearest to the owner, whatever the load"
}

func (*distance) Copies() int { return 1 }

func (d *distance) Stand(owner int32, site int16) { d.stands.set(owner, site) }

func (d *distance) Access(a *Access) int16 { return d.stands.serve(d.ledger, a) }

// Close lets the data follow its owner.
func (d *distance) Close(int64) []Moved {
	d.moved = d.moved[:0]
	for _, u := range d.ledger.seen {
		n := &d.ledger.nodes[u]
		if from := d.stands.at(u); from >= 0 && from != n.near {
			d.moved = append(d.moved, Moved{Owner: u, From: from, To: n.near, Bytes: n.stored})
			d.stands[u] = n.near
		}
	}
	return d.moved
}
