package report

import (
	"time"

	"penstock/consumers/decider/baselines"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// Site is what the collector needs of a site.
type Site struct {
	Name     string
	Lat, Lon float64
	Capacity int64 // bytes a window, 0 for none
	// Egress is the price of a GB that leaves the site, in US dollars.
	Egress float64
}

// unknownSite is the site of rows and owners that have none.
const unknownSite int16 = baselines.None

// The first strategies of a replay; the baselines come behind them.
const (
	asServed = iota // by this replay
	asItWas         // by the site that the recording says
	firstBaseline
)

// Names of these in a report.
const (
	Replay  = "replay"
	AsItWas = "as-it-was"
)

// Collector watches a replay; it implements replay.Observer. It is not safe
// for concurrent use: the replay calls it from one goroutine.
type Collector struct {
	perThousand float64 // US dollars for a thousand requests
	sites       []Site
	width       time.Duration
	index       map[string]int16 // of sites
	rtts        *RTTs
	box         *baselines.Box

	ids       map[string]int32
	met       []bool // owners whose data stands somewhere, by number
	lastUser  lastID
	lastOwner lastID
	lastSite  string
	lastIndex int16

	access   baselines.Access // of the row
	at       []int16          // of the row, by strategy
	served   []int64          // requests in the open window, by strategy
	tally    *tally
	all      []Delays // by strategy
	reads    []Delays
	open     *hour
	from, to int64 // of the open window, µs
	hours    []*hour
	requests int64 // by formula, of the replay

	unlocated, unlocatedR int64 // rows without a place, and the reads among them
	unserved              int64 // located rows without a known owner or site
	elsewhere             int64 // rows served by a site that the configuration lacks
	recorded, foreign     int64 // rows whose recording names a site, and of these, none of ours
	rerouted              int64 // rows that were served elsewhere than the recording says
}

// lastID is the number of the id that was asked for last: rows of one come
// together.
type lastID struct {
	id     string
	number int32
}

// hour is one placement window of a replay.
type hour struct {
	Span
	Case        string
	Mode        control.Mode
	moves, done int
	reasons     map[string]int64
	decided     bool // has a row of which the decider hears
	closed      bool // its baselines have moved what they move
	strategies  []StrategyWindow
	bytes       []int64 // traffic by site, then written, of each strategy: where theirs lie
}

// Option of a collector.
type Option func(*Collector)

// WithRequestPrice sets what a thousand requests cost, in US dollars.
func WithRequestPrice(usd float64) Option { return func(c *Collector) { c.perThousand = usd } }

// WithRTTs takes latency delays from a measured table instead of the formula; it
// is bound to the same sites.
func WithRTTs(r *RTTs) Option { return func(c *Collector) { c.rtts = r } }

// newBox returns the baselines for a report's sites.
func newBox(sites []Site) *baselines.Box {
	places := make([]baselines.Site, len(sites))
	for i, s := range sites {
		places[i] = baselines.Site{Lat: s.Lat, Lon: s.Lon, Capacity: s.Capacity}
	}
	return baselines.New(places, baselines.Options{})
}

// NewCollector returns a collector for sites in config order and windows of
// that width.
func NewCollector(sites []Site, width time.Duration, options ...Option) *Collector {
	c := &Collector{sites: sites, width: width, index: map[string]int16{}, ids: map[string]int32{}, lastIndex: unknownSite}
	for i, s := range sites {
		c.index[s.Name] = int16(i)
	}
	c.box = newBox(sites)
	for _, o := range options {
		o(c)
	}
	if c.rtts == nil {
		c.rtts = ByFormula(sites)
	}
	n := firstBaseline + len(c.box.Strategies())
	c.at, c.served, c.all, c.reads = make([]int16, n), make([]int64, n), make([]Delays, n), make([]Delays, n)
	c.tally = newTally(len(sites), n)
	return c
}

// Row takes a row as it was sent, and the site that served it by the recording,
// empty if that doesn't say. Rows that came late or lie in the future enter no
// figure: no policy reads them either. Chunk tasks are in no figure of placement.
func (c *Collector) Row(r *event.Request, recorded string) {
	if r.Mark != event.InTime || event.IsTask(r.Outcome) {
		return
	}
	h := c.hour(r.Time)
	h.decided = h.decided || r.Owner != "" || r.User != "" && r.HasPlace()
	a := &c.access
	*a = baselines.Access{
		User: c.number(r.User, &c.lastUser), Owner: c.number(r.Owner, &c.lastOwner), Place: c.place(r),
		Requests: 1, Bytes: r.Bytes,
	}
	if r.Op == event.Write {
		a.Written = r.Bytes
	}
	c.at[asServed] = c.site(r.ToSite)
	if c.at[asServed] < 0 && r.ToSite != "" {
		c.elsewhere++
	}
	c.at[asItWas] = unknownSite
	if recorded != r.ToSite {
		c.rerouted++
	}
	if recorded != "" {
		c.recorded++
		if c.at[asItWas] = c.site(recorded); c.at[asItWas] < 0 {
			c.foreign++
		}
	}
	c.stand(a.Owner, c.at[asServed])
	c.box.Access(a, c.at[firstBaseline:])
	if a.Owner >= 0 && c.at[asServed] >= 0 {
		c.serve(a)
	}
	c.delay(a, r.Op == event.Read)
}

// stand puts a new owner's single copy under each baseline where this replay
// serves it first: all begin from the same.
func (c *Collector) stand(owner int32, site int16) {
	if owner < 0 || site < 0 || int(owner) < len(c.met) && c.met[owner] {
		return
	}
	for int(owner) >= len(c.met) {
		c.met = append(c.met, false)
	}
	c.met[owner] = true
	c.box.Stand(owner, site, 0)
}

// serve adds an access to the traffic of the sites that serve it. One that this
// replay has no site for is in no strategy's traffic, so that all have the same.
func (c *Collector) serve(a *baselines.Access) {
	bytes, m := c.open.bytes, len(c.sites)
	for s, site := range c.at {
		if site < 0 {
			continue
		}
		c.served[s] += a.Requests
		bytes[2*s*m+int(site)] += a.Bytes
		if a.Written > 0 {
			bytes[(2*s+1)*m+int(site)] += a.Written
		}
	}
}

// delay counts the row's latency delay under each strategy. A row counts only
// where this replay's site and the owner are known, and so that of every
// baseline: the means then are over the same rows.
func (c *Collector) delay(a *baselines.Access, read bool) {
	switch {
	case a.Place < 0:
		c.unlocated++
		if read {
			c.unlocatedR++
		}
	case a.Owner < 0 || c.at[asServed] < 0:
		c.unserved++
	default:
		c.tally.add(a.Place, read, c.at)
		if c.tally.full() {
			c.flush()
		}
	}
}

// flush turns what was tallied into delays.
func (c *Collector) flush() {
	c.tally.flush(c.rtts, c.box.Places(), func(s int, read bool, us, n int64, formula bool) {
		w := &c.open.strategies[s]
		w.Located += n
		w.DelayUS += us * n
		c.all[s].Add(us, n)
		if read {
			c.reads[s].Add(us, n)
		}
		if formula && s == asServed {
			c.requests += n
		}
	})
}

// site returns a site's index, unknown for one that isn't configured.
func (c *Collector) site(name string) int16 {
	if name == c.lastSite {
		return c.lastIndex
	}
	i, ok := c.index[name]
	if !ok {
		i = unknownSite
	}
	c.lastSite, c.lastIndex = name, i
	return i
}

// place returns the number of the row's place.
func (c *Collector) place(r *event.Request) int32 {
	if !r.HasPlace() {
		return baselines.None
	}
	places := c.box.Places()
	if places.Full() {
		c.flush()
		places.Reset()
		c.rtts.Forget()
	}
	return places.Find(r.Lat, r.Lon)
}

// number returns an id's number, the same for a user and an owner.
func (c *Collector) number(id string, last *lastID) int32 {
	if id == "" {
		return baselines.None
	}
	if last.id == id {
		return last.number
	}
	n, ok := c.ids[id]
	if !ok {
		n = int32(len(c.ids))
		c.ids[id] = n
	}
	*last = lastID{id, n}
	return n
}

// hour returns the window of a time, closing the one before it.
func (c *Collector) hour(us int64) *hour {
	if us >= c.from && us < c.to {
		return c.open
	}
	c.close()
	start := window.Start(us, c.width)
	c.from, c.to = start, start+c.width.Microseconds()
	c.open = &hour{
		Span:    Span{Start: time.UnixMicro(start).UTC(), End: time.UnixMicro(c.to).UTC()},
		reasons: map[string]int64{}, strategies: make([]StrategyWindow, len(c.at)),
	}
	m := len(c.sites)
	c.open.bytes = make([]int64, 2*m*len(c.at))
	for s := range c.open.strategies {
		w := &c.open.strategies[s]
		w.Traffic = c.open.bytes[2*s*m : (2*s+1)*m : (2*s+1)*m]
		w.Written = c.open.bytes[(2*s+1)*m : (2*s+2)*m : (2*s+2)*m]
	}
	clear(c.served)
	c.hours = append(c.hours, c.open)
	return c.open
}

// close ends the open window: delays are added up, and baselines move.
func (c *Collector) close() {
	if c.open == nil || c.open.closed {
		return
	}
	c.flush()
	c.open.closed = true
	for s, n := range c.served {
		c.open.strategies[s].Requests = n
	}
	for s, moved := range c.box.Close(c.open.End.UnixMicro()) {
		w := &c.open.strategies[firstBaseline+s]
		for _, m := range moved {
			w.Moved(c.sites, m)
		}
	}
}

// Window takes an answered window: its end (µs), its record (nil without one),
// its moves and how they ended.
func (c *Collector) Window(end int64, d *control.Decision, moves []control.Move, outcomes []control.Outcome) {
	for i := len(c.hours) - 1; i >= 0; i-- {
		h := c.hours[i]
		if h.End.UnixMicro() != end {
			continue
		}
		if d != nil {
			h.Case, h.Mode = d.Case, d.Mode
			for _, r := range d.Reasons {
				h.reasons[r.Code] += max(r.Count, 1)
			}
		}
		c.moves(h, moves, outcomes)
		return
	}
}

func (c *Collector) moves(h *hour, moves []control.Move, outcomes []control.Outcome) {
	h.moves += len(moves)
	from := map[string]string{}
	for _, m := range moves {
		from[m.Owner] = m.From
	}
	for _, o := range outcomes {
		if o.Status != control.Done {
			continue
		}
		h.done++
		w := &h.strategies[asServed]
		w.Moves++
		w.Bytes += o.Bytes
		if i := c.site(from[o.Owner]); i >= 0 {
			w.EgressUSD += c.sites[i].EgressUSD(o.Bytes)
		}
	}
}

// Elsewhere is the number of rows in time that were served by a site that the
// configuration lacks.
func (c *Collector) Elsewhere() int64 { return c.elsewhere }

// LastDecided is the end of the last window of which the decider hears: one
// with a row that has an owner or a located user. Zero if there is none.
func (c *Collector) LastDecided() time.Time {
	for i := len(c.hours) - 1; i >= 0; i-- {
		if c.hours[i].decided {
			return c.hours[i].End
		}
	}
	return time.Time{}
}
