package report

import "cmp"

// The kinds of reports.
const (
	KindReplay = "replay"
	KindShadow = "shadow"
)

// Fill adds what was played to a report: its own strategy, its windows and sites,
// and the baselines. The windows' cases, modes and reasons are left to the
// caller.
func (p *Played) Fill(r *Report) {
	r.Version = Version
	r.Kind = cmp.Or(r.Kind, KindShadow)
	r.Baselines, r.Reasons = map[string]Baseline{}, map[string]int64{}
	if len(p.Strategies) == 0 {
		r.Figures = unknownFigures(p)
		return
	}
	own := &p.Strategies[0]
	r.Strategy, r.Text, r.Figures = own.Name, own.Text, p.figures(own)
	p.windows(r, own)
	for i := range p.Sites {
		r.Sites = append(r.Sites, p.site(i, own))
	}
	for i := range p.Strategies[1:] {
		s := &p.Strategies[1+i]
		r.Baselines[s.Name] = Baseline{Text: s.Text, Unknown: s.Unknown, Figures: p.figures(s)}
	}
	base, ok := r.Baselines[Reference]
	if !ok {
		return
	}
	r.Execution = r.Execution.against(base.Execution)
	for name, b := range r.Baselines {
		if name != Reference {
			b.Execution = b.Execution.against(base.Execution)
			r.Baselines[name] = b
		}
	}
}

// Reference is the baseline that reductions are against: the paper's.
const Reference = "nearest-replica"

// windows adds the windows of the report's own strategy and their sums.
func (p *Played) windows(r *Report, own *Strategy) {
	r.Moves.EgressUSD = r.EgressUSD
	for i, span := range p.Windows {
		w := &own.Windows[i]
		out := WindowReport{
			Start: span.Start, End: span.End, Moves: w.Moves, Done: w.Moves, Bytes: w.Bytes, Egress: w.EgressUSD, Traffic: map[string]int64{},
		}
		for s := range p.Sites {
			out.Traffic[p.Sites[s].Name] = at(w.Traffic, s)
		}
		r.Windows = append(r.Windows, out)
		r.Moves.Count += w.Moves
		r.Moves.Done += w.Moves
		r.Moves.Bytes += w.Bytes
		if w.Moves > 0 {
			r.Moves.Windows++
		}
	}
}

func (p *Played) site(i int, own *Strategy) SiteReport {
	site := &p.Sites[i]
	r := SiteReport{Name: site.Name, Capacity: site.Capacity}
	for w := range own.Windows {
		t := at(own.Windows[w].Traffic, i)
		r.Busiest = max(r.Busiest, t)
		if site.Capacity > 0 && t > site.Capacity {
			r.OverWindows++
		}
	}
	return r
}

// Fill adds what the collector has seen to a report. No row comes after it.
func (c *Collector) Fill(r *Report) {
	c.close()
	p := c.played()
	r.Kind = KindReplay
	p.Fill(r)
	r.Unserved = c.unserved
	r.LatencySource = c.rtts.Source()
	r.LatencySource.Requests = c.requests
	r.AsRecorded = c.recorded > 0 && c.rerouted == 0
	r.Moves.Count, r.Moves.Windows = 0, 0
	for i, h := range c.hours {
		w := &r.Windows[i]
		w.Case, w.Mode, w.Reasons, w.Moves, w.Done = h.Case, string(h.Mode), h.reasons, h.moves, h.done
		for code, n := range h.reasons {
			r.Reasons[code] += n
		}
		r.Moves.Count += h.moves
		if h.moves > 0 {
			r.Moves.Windows++
		}
	}
}

// played puts what was collected into the form that all reports are made of.
func (c *Collector) played() *Played {
	p := &Played{Sites: c.sites, PerThousand: c.perThousand, Unlocated: c.unlocated, UnlocatedReads: c.unlocatedR}
	p.Strategies = append(p.Strategies,
		Strategy{Name: Replay, Text: "as decided and moved", Copies: 1},
		Strategy{Name: AsItWas, Text: "each request where the recording says that it was served; what moved then is not recorded", Copies: 1, Unmoved: true, Unknown: c.whyUnknown()})
	for _, b := range c.box.Strategies() {
		p.Strategies = append(p.Strategies, Strategy{Name: b.Name(), Text: b.Text(), Copies: b.Copies()})
	}
	for s := range p.Strategies {
		p.Strategies[s].All, p.Strategies[s].Reads = &c.all[s], &c.reads[s]
	}
	for _, h := range c.hours {
		p.Windows = append(p.Windows, h.Span)
		for s := range p.Strategies {
			p.Strategies[s].Windows = append(p.Strategies[s].Windows, h.strategies[s])
		}
	}
	return p
}

// whyUnknown says why it is not known how the recorded requests were served,
// empty if it is.
func (c *Collector) whyUnknown() string {
	switch c.recorded {
	case 0:
		return "the recording does not say which site served"
	case c.foreign:
		return "the configuration lacks the sites that the recording names"
	}
	return ""
}
