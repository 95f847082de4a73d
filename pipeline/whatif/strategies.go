package whatif

// server is implemented by strategies whose requests are not all served where
// an owner's one copy is.
type server interface {
	serve(f *Frame, m *Measured)
}

// one is a single copy that stays where it is.
type one struct{}

func (one) Copies(int) int           { return 1 }
func (one) Before(*Frame, Placement) {}
func (one) After(*Frame, Placement)  {}

// NearestReplica is the paper's baseline: a full copy at every site, each
// request to the site nearest to the user, every write sent on from the site
// nearest to the owner to all others.
func NearestReplica() Strategy { return nearestReplica{} }

type nearestReplica struct{ one }

func (nearestReplica) Name() string         { return "nearest-replica" }
func (nearestReplica) Copies(sites int) int { return sites }

// DistanceOnly is the paper's other curve: one copy at the site nearest to where
// the owner was last seen, whatever the load.
func DistanceOnly(allowed func(owner string) []bool) Strategy { return &distanceOnly{allowed: allowed} }

type distanceOnly struct {
	one
	allowed func(owner string) []bool
}

func (*distanceOnly) Name() string { return "distance-only" }

func (d *distanceOnly) After(f *Frame, at Placement) {
	for _, s := range f.seen {
		if at[s.id] == NoSite {
			continue
		}
		var allowed []bool
		if d.allowed != nil {
			allowed = d.allowed(f.names[s.id])
		}
		if to := f.geo.nearest(s.place, allowed); to != NoSite {
			at[s.id] = to
		}
	}
}

// AsServed is what the windows say that happened: traffic where it was served.
// Windows don't say which user was served where, so the delays of an owner's
// requests are shared among its sites as its requests were.
func AsServed() Strategy { return asServed{} }

type asServed struct{ one }

func (asServed) Name() string { return "as it was" }

// After puts each owner where most of its requests were served.
func (asServed) After(f *Frame, at Placement) {
	for i := range f.owners {
		if s := busiest(f.owners[i].servedRequests); s != NoSite {
			at[f.owners[i].id] = s
		}
	}
}

func (asServed) serve(f *Frame, m *Measured) {
	for i := range f.owners {
		o := &f.owners[i]
		known := int64(0)
		for s, b := range o.served {
			m.Traffic[s] += b
			known += b
		}
		m.Unplaced += o.bytes - known
	}
	for i := range f.pairs {
		pr := &f.pairs[i]
		o := &f.owners[pr.row]
		total := int64(0)
		for _, n := range o.servedRequests {
			total += n
		}
		sofar, done := int64(0), int64(0)
		for s, n := range o.servedRequests {
			sofar += n
			if share := proportion(pr.requests, sofar, total) - done; share > 0 {
				m.Delay.add(f.geo.delay(pr.place, int16(s)), share)
				done += share
			}
		}
	}
}
