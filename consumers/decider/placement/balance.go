package placement

import "slices"

// balance is the T-match on top of the base match (paper §5.2.2 and §5.2.3):
// owners are taken out of sites over their capacity, most traffic first, until
// their traffic reaches the excess; then each in turn goes to the site that the
// five factors choose among those with room for it.
func (p *plan) balance() {
	taken := p.extract()
	for len(taken) > 0 {
		n := min(len(taken), selectBatch)
		p.place(taken[:n])
		taken = taken[n:]
	}
}

// load is what a site is measured by: Σ t of the L-match in the first type,
// observed traffic in the continuous type.
func (p *plan) load(site int) int64 {
	if p.kind == firstOverhead {
		return p.expected[site]
	}
	return p.t.state.observed[site]
}

// users lists the owners matched to a site from which some must be taken: those
// with traffic, or all of them where the site is emptied.
func (p *plan) users(site uint16) []entry {
	t, s := p.t, p.t.state
	all := p.evac[site-1]
	return p.gather(func(id int32) bool { return t.want[id] == site && (all || s.traffic[id] > 0) })
}

// extract returns the owners to be taken from their sites, sites in config
// order, owners by traffic descending, then id. An owner that a guardrail holds
// is passed over, with the guardrail as its reason.
func (p *plan) extract() []pick {
	t, s := p.t, p.t.state
	var taken []pick
	within := 0
	for i := range t.config.Sites {
		c := uint16(i + 1)
		excess := p.load(i+1) - t.limit[c]
		if excess <= 0 && !p.evac[i] {
			within++
			continue
		}
		why, before, sum := OverCapacity, len(taken), int64(0)
		if p.evac[i] {
			why = Evacuating
		}
		q := queue{entries: p.users(c)}
		for sum < excess || p.evac[i] {
			e, ok := q.next()
			if !ok {
				break
			}
			if held := p.held(e.id); held != noReason {
				s.why[e.id] = held
				continue
			}
			taken = append(taken, pick{id: e.id, from: c, why: why})
			sum += e.key
		}
		if excess > 0 {
			p.reasons.add(OverCapacity, t.config.Sites[i].Name, int64(len(taken)-before), map[string]any{
				"load": p.load(i + 1), "limit": t.limit[c], "excess": excess, "extracted": sum,
			}, "load %d B is %d B above what the site takes; owners with %d B are to leave it", p.load(i+1), excess, sum)
		}
	}
	if within > 0 {
		p.reasons.add(WithinCapacity, "", int64(within), nil, "sites whose load is within their capacity")
	}
	for _, e := range taken {
		s.why[e.id] = noReason
	}
	return taken
}

// selectBatch is how many owners' weights are computed at a time.
const selectBatch = 2048

// place chooses a site for each of the owners in turn; their weights are
// computed beforehand, all at once.
func (p *plan) place(taken []pick) {
	t := p.t
	for len(t.batch) < len(taken) {
		t.batch = append(t.batch, newWeights(len(t.config.Sites)))
	}
	inParts(t.workers, len(taken), func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			t.weigh(taken[i].id, t.batch[i])
		}
	})
	for i, e := range taken {
		p.choose(e, t.batch[i])
	}
}

// choose applies the five factors to the sites with room other than the one
// matched: social and distance, social, distance, least expected traffic,
// config order. Without any, the owner stays where its data is.
func (p *plan) choose(e pick, w *weights) {
	t, s := p.t, p.t.state
	volume, site := s.traffic[e.id], s.site[e.id]
	open := t.candidates(e.id, t.scratch[:0])
	t.scratch = open
	open = slices.DeleteFunc(open, func(j int) bool { return j+1 == int(e.from) || t.rejected(e.id, uint16(j+1)) })
	none := len(open) == 0
	open = slices.DeleteFunc(open, func(j int) bool { return t.limit[j+1]-p.expected[j+1] < volume })
	p.expected[e.from] -= volume
	if len(open) == 0 {
		p.expected[site] += volume
		t.want[e.id] = site
		if none {
			s.why[e.id] = NoAllowedSite
		} else {
			s.why[e.id] = NoRoom
		}
		return
	}
	open = t.nearest(open, w)
	to := open[0]
	for _, j := range open[1:] {
		if p.expected[j+1] < p.expected[to+1] {
			to = j
		}
	}
	e.to = uint16(to + 1)
	p.expected[e.to] += volume
	t.want[e.id] = e.to
	if e.to == site {
		s.why[e.id] = WithinCapacity
		return
	}
	s.why[e.id] = e.why
	p.picks = append(p.picks, e)
}
