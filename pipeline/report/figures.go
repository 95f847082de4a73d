package report

// Figures are what is said of a strategy, the same for each, so that they
// compare. What is not known is null.
type Figures struct {
	Latency   Delay     `json:"latency_delay_ms"` // over all located requests
	LatencyR  Delay     `json:"latency_delay_reads_ms"`
	Execution Execution `json:"execution_delay"`
	// SitesOver is how many sites were over capacity in at least one window.
	SitesOver Figure `json:"sites_over_capacity"`
	// Requests served: those with an owner whose site is known.
	Requests Figure `json:"requests_served"`
	Copies   int    `json:"copies"`
	// Moved is how many times an owner's data moved, BytesMoved what went from site
	// to site for it or, with several copies, for the copies of what was written.
	Moved      Figure `json:"moved"`
	BytesMoved Figure `json:"bytes_moved"`
	// EgressUSD is the price of BytesMoved, ServingUSD that of what leaves sites
	// for users: the bytes of reads. Unknown if no site has a price.
	EgressUSD  Figure `json:"egress_usd"`
	ServingUSD Figure `json:"serving_usd"`
	Series     Series `json:"by_window"`
}

// Series has figures by window, in the order of the report's windows. A column is
// null where nothing of it is known.
type Series struct {
	Latency    []Figure           `json:"latency_delay_ms"` // mean
	Execution  []Figure           `json:"execution_delay"`
	Traffic    map[string][]int64 `json:"traffic"` // bytes, by site
	SitesOver  []int              `json:"sites_over_capacity"`
	Moved      []int              `json:"moved"`
	BytesMoved []int64            `json:"bytes_moved"`
	EgressUSD  []Figure           `json:"egress_usd"`
	ServingUSD []Figure           `json:"serving_usd"`
}

// Execution is the execution delay by Little's law, W = max(0, T − Ca)/T of a
// window at a site (PAPERS §1.2, 7), as a part of the window: the mean over
// sites and windows with traffic. Unknown if no site has a capacity.
type Execution struct {
	Mean Figure `json:"mean"`
	// OverWindows is how many sites were over capacity, summed over windows.
	OverWindows int `json:"site_windows_over_capacity"`
	// Reduction is against the baseline nearest-replica, in percent; unknown if
	// that has no delay.
	Reduction Figure `json:"reduction_percent"`
}

// unknownFigures are those of a strategy of which nothing is known.
func unknownFigures(p *Played) Figures {
	none := (*Delays)(nil)
	return Figures{
		Latency: none.Summary(p.Unlocated), LatencyR: none.Summary(p.UnlocatedReads),
		Execution: Execution{Mean: Unknown(), Reduction: Unknown()},
		SitesOver: Unknown(), Requests: Unknown(), Moved: Unknown(), BytesMoved: Unknown(), EgressUSD: Unknown(), ServingUSD: Unknown(),
	}
}

// figures adds up a strategy's windows.
func (p *Played) figures(s *Strategy) Figures {
	f := unknownFigures(p)
	f.Copies = s.Copies
	if s.Unknown != "" {
		return f
	}
	f.Latency, f.LatencyR = s.All.Summary(p.Unlocated), s.Reads.Summary(p.UnlocatedReads)
	sum := sums{p: p, over: make([]bool, len(p.Sites)), series: Series{Traffic: map[string][]int64{}}}
	for i := range s.Windows {
		sum.add(&s.Windows[i])
	}
	sum.into(&f, s)
	return f
}

// sums adds up windows.
type sums struct {
	p         *Played
	over      []bool // by site
	busy      int    // sites with traffic, summed over windows
	delay     float64
	overs     int
	requests  int64
	moved     int
	bytes     int64
	usd       float64
	servedUSD float64
	series    Series
}

func (c *sums) add(w *StrategyWindow) {
	busy, delay, overs := 0, 0.0, 0
	served := c.p.PerThousand * float64(w.Requests) / 1000
	for i := range c.p.Sites {
		site := &c.p.Sites[i]
		t, written := at(w.Traffic, i), at(w.Written, i)
		c.series.Traffic[site.Name] = append(c.series.Traffic[site.Name], t)
		served += site.EgressUSD(t - written)
		if t == 0 {
			continue
		}
		busy++
		if more := t - site.Capacity; site.Capacity > 0 && more > 0 {
			delay += share(more, t)
			overs++
			c.over[i] = true
		}
	}
	c.busy, c.delay, c.overs = c.busy+busy, c.delay+delay, c.overs+overs
	c.requests, c.moved, c.bytes = c.requests+w.Requests, c.moved+w.Moves, c.bytes+w.Bytes
	c.usd, c.servedUSD = c.usd+w.EgressUSD, c.servedUSD+served

	s := &c.series
	s.Latency = append(s.Latency, meanOf(float64(w.DelayUS)/1000, int(w.Located)))
	s.Execution = append(s.Execution, meanOf(delay, busy))
	s.SitesOver = append(s.SitesOver, overs)
	s.Moved, s.BytesMoved = append(s.Moved, w.Moves), append(s.BytesMoved, w.Bytes)
	s.EgressUSD, s.ServingUSD = append(s.EgressUSD, Figure(w.EgressUSD)), append(s.ServingUSD, Figure(served))
}

// into writes the sums, and leaves unknown what is.
func (c *sums) into(f *Figures, s *Strategy) {
	f.Series = c.series
	f.Requests = Figure(c.requests)
	if c.p.limited() {
		over := 0
		for _, o := range c.over {
			if o {
				over++
			}
		}
		f.Execution.Mean, f.Execution.OverWindows, f.SitesOver = meanOf(c.delay, c.busy), c.overs, Figure(over)
	} else {
		f.Series.Execution, f.Series.SitesOver = nil, nil
	}
	if c.p.priced() {
		f.ServingUSD = Figure(c.servedUSD)
	} else {
		f.Series.ServingUSD, f.Series.EgressUSD = nil, nil
	}
	if s.Unmoved {
		f.Series.Moved, f.Series.BytesMoved, f.Series.EgressUSD = nil, nil, nil
		return
	}
	f.Moved, f.BytesMoved = Figure(c.moved), Figure(c.bytes)
	if c.p.priced() {
		f.EgressUSD = Figure(c.usd)
	}
}

// limited reports whether any site has a capacity, priced whether any has a
// price: without, what follows from them is unknown, not 0.
func (p *Played) limited() bool {
	for i := range p.Sites {
		if p.Sites[i].Capacity > 0 {
			return true
		}
	}
	return false
}

// priced reports whether anything has a price.
func (p *Played) priced() bool {
	if p.PerThousand > 0 {
		return true
	}
	for i := range p.Sites {
		if p.Sites[i].Egress > 0 {
			return true
		}
	}
	return false
}

// at returns element i, 0 beyond the end.
func at(s []int64, i int) int64 {
	if i < len(s) {
		return s[i]
	}
	return 0
}

// meanOf returns sum/n, unknown for none.
func meanOf(sum float64, n int) Figure {
	if n == 0 {
		return Unknown()
	}
	return Figure(sum / float64(n))
}

func (e Execution) against(base Execution) Execution {
	if base.Mean > 0 {
		e.Reduction = 100 * (1 - e.Mean/base.Mean)
	}
	return e
}
