package shares

import (
	"fmt"
	"math"
	"sync/atomic"

	"penstock/schemas/control"
)

// Probe orders probes of a link to a site, as it travels.
type Probe = control.Probe

// probing is what the probes of one link are sent by. It is not changed; turn is a
// counter that outlives it.
//
// With a rate of r probes a request, n requests since the turn `from` and a credit
// of c at that turn, ⌊n·r + c⌋ probes were sent. What is left over of the sum is the
// credit of the next table's. Whose turn a probe is follows the same order as those
// of requests do.
type probing struct {
	probes []Probe // as they were ordered
	sites  []string
	order  []uint8

	turn   *atomic.Uint64 // requests of the link
	rate   float64
	from   uint64
	credit float64 // 0 to 1
	sent   uint64  // probes before the turn from
}

// newProbing makes the probes of one link ready, all but those to sites that drain.
// It is nil if none is left. The rate is at most 1: a request causes one probe.
func newProbing(probes []Probe, draining func(site string) bool, turn *atomic.Uint64, old *probing) (*probing, error) {
	p := &probing{probes: probes, turn: turn, from: turn.Load()}
	var parts []float64
	for _, each := range probes {
		if draining(each.Site) {
			continue
		}
		p.sites = append(p.sites, each.Site)
		parts = append(parts, each.Share)
		p.rate += each.Share
	}
	if len(p.sites) == 0 {
		return nil, nil //nolint:nilnil // No probes are in order is the answer.
	}
	p.rate = min(p.rate, 1)
	units, err := Remainder(parts, Units)
	if err != nil {
		return nil, err
	}
	p.order = schedule(units)
	if old != nil {
		due := old.due(p.from)
		p.sent = old.sent + uint64(due)
		p.credit = due - math.Floor(due)
	}
	return p, nil
}

// due is how many probes are due before a turn, with what is left over.
func (p *probing) due(turn uint64) float64 {
	return float64(float64(turn-p.from)*p.rate) + p.credit
}

// next takes the turn of one request: the site that it is to be copied to, if any.
func (p *probing) next() (site string, ok bool) {
	turn := p.turn.Add(1) - 1
	before, after := math.Floor(p.due(turn)), math.Floor(p.due(turn+1))
	if after == before {
		return "", false
	}
	return p.sites[p.order[(p.sent+uint64(before))%Units]], true
}

// Probe says whether this request of a link is to be copied to a site as a probe:
// of n requests as many as the shares of the table's probes add up to, evenly,
// whatever the number of callers, and to each site its part of them; never to a
// replica that is draining. To be asked once for a request. It takes no lock and
// allocates nothing.
func (r *Router) Probe(l Link) (site string, ok bool) {
	p := r.force.Load().probes[l]
	if p == nil {
		return "", false
	}
	return p.next()
}

// checkProbes says whether the probes of a table can be sent at all.
func (t Table) checkProbes() error {
	seen := make(map[Probe]bool, len(t.Probes))
	for _, p := range t.Probes {
		key := p
		key.Share = 0
		if p.To == "" || p.Site == "" || seen[key] || !(p.Share > 0 && p.Share <= 1) {
			return fmt.Errorf("table of %.80q: probes from %.80q to %.80q at %.80q: expected one order, names, and a share above 0 and at most 1, not %v: %w",
				t.From, p.FromSite, p.To, p.Site, p.Share, ErrTable)
		}
		seen[key] = true
	}
	return nil
}

// byLink returns the probes of a table by their links, in the table's order.
func (t Table) byLink() map[Link][]Probe {
	links := make(map[Link][]Probe)
	for _, p := range t.Probes {
		l := Link{t.From, p.FromSite, p.To}
		links[l] = append(links[l], p)
	}
	return links
}
