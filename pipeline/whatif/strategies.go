package whatif

// server is implemented by strategies whose requests are not all served where
// an owner's one copy is.
type server interface {
	serve(f *Frame, m *Measured, p *meter)
}

// AsServed is what the windows say that happened: traffic where it was served.
// Windows don't say which user was served where, so the delays of an owner's
// requests are shared among its sites as its requests were.
func AsServed() Strategy { return asServed{} }

type asServed struct{}

func (asServed) Name() string { return "as-it-was" }

func (asServed) Before(*Frame, *Stage) {}

// After puts each owner where most of its requests were served.
func (asServed) After(f *Frame, s *Stage) {
	for i := range f.owners {
		if to := busiest(f.owners[i].servedRequests); to != NoSite {
			s.At[f.owners[i].id] = to
		}
	}
}

func (asServed) serve(f *Frame, m *Measured, p *meter) {
	for i := range f.owners {
		o := &f.owners[i]
		known := int64(0)
		for s, b := range o.served {
			m.Traffic[s] += b
			m.Written[s] += o.servedWritten[s]
			m.Requests += o.servedRequests[s]
			known += b
		}
		m.Unplaced += o.bytes - known
	}
	for i := range f.pairs {
		pr := &f.pairs[i]
		if pr.place == nowhere {
			continue
		}
		o := &f.owners[pr.row]
		total := int64(0)
		for _, n := range o.servedRequests {
			total += n
		}
		sofar, done := int64(0), int64(0)
		for s, n := range o.servedRequests {
			sofar += n
			if share := proportion(pr.requests, sofar, total) - done; share > 0 {
				p.delay(m, f.geo.delay(pr.place, int16(s)), share)
				done += share
			}
		}
	}
}
