package report

import (
	"time"

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
const unknownSite int16 = -1

// Collector watches a replay; it implements replay.Observer. It is not safe
// for concurrent use: the replay calls it from one goroutine.
type Collector struct {
	sites []Site
	width time.Duration
	geo   *geography
	index map[string]int16

	owners map[string]*ownerState
	moved  []*ownerState // owners seen as users in the open window

	reads, all   [3]Delays // by strategy
	unlocated    int64     // rows without a place
	unlocatedR   int64     // of these, reads
	unserved     int64     // located rows without a known site
	elsewhere    int64     // rows served by a site that the configuration lacks
	written      int64     // bytes written, for the baseline's copies
	writtenAt    []int64   // by nearest site
	open         *Hour
	hours        []Hour
	lastUser     string
	lastUserS    *ownerState
	lastOwner    string
	lastOwnerS   *ownerState
	total, lates int64
}

// ownerState is where an id's data would be under distance-only, and where the
// id was last seen.
type ownerState struct {
	site int16 // of its data under distance-only
	near int16 // nearest to its latest own place
	seen bool  // queued in moved
}

// The strategies that are compared over the same rows.
const (
	asServed = iota
	nearest
	distanceOnly
	strategies
)

// Hour is one placement window of the report.
type Hour struct {
	Start, End time.Time
	Case       string
	Mode       control.Mode
	// Traffic in bytes by site, by strategy (as served, nearest,
	// distance-only).
	Traffic [strategies][]int64
	// Moves that were commanded, and their bytes; Done of them were applied.
	Moves, Done int
	Bytes       int64
	Egress      float64 // US dollars
	Reasons     map[string]int64

	decided bool // has a row of which the decider hears
	located int64
	delay   [strategies]int64 // µs, summed over located rows
}

// NewCollector returns a collector for sites in config order and windows of
// that width.
func NewCollector(sites []Site, width time.Duration) *Collector {
	c := &Collector{
		sites: sites, width: width, geo: newGeography(sites), index: map[string]int16{},
		owners: map[string]*ownerState{}, writtenAt: make([]int64, len(sites)),
	}
	for i, s := range sites {
		c.index[s.Name] = int16(i)
	}
	return c
}

// Row takes a row as it was sent. Rows that came late or lie in the future
// enter no figure: no policy reads them either.
func (c *Collector) Row(r *event.Request) {
	c.total++
	if r.Mark != event.InTime {
		c.lates++
		return
	}
	h := c.hour(r.Time)
	h.decided = h.decided || r.Owner != "" || r.User != "" && r.HasPlace()
	served := unknownSite
	if i, ok := c.index[r.ToSite]; ok {
		served = i
	} else if r.ToSite != "" {
		c.elsewhere++
	}
	user, owner := c.id(r.User, &c.lastUser, &c.lastUserS), c.id(r.Owner, &c.lastOwner, &c.lastOwnerS)
	place, near := int32(-1), unknownSite
	if r.HasPlace() {
		place = c.geo.place(r.Lat, r.Lon)
		near = c.geo.near[place]
		if user != nil {
			c.sawUser(user, near)
		}
	}
	alone := c.distanceOnly(owner, near)
	for s, site := range [strategies]int16{served, near, alone} {
		if site >= 0 && owner != nil {
			h.Traffic[s][site] += r.Bytes
		}
	}
	if r.Op == event.Write {
		c.written += r.Bytes
		if near >= 0 {
			c.writtenAt[near] += r.Bytes
		}
	}
	c.delays(h, r.Op == event.Read, place, [strategies]int16{served, near, alone})
}

// delays adds the row's latency delay under each strategy. A row counts only
// where all three are known, so that the means are over the same rows.
func (c *Collector) delays(h *Hour, read bool, place int32, at [strategies]int16) {
	if place < 0 {
		c.unlocated++
		if read {
			c.unlocatedR++
		}
		return
	}
	if at[asServed] < 0 || at[distanceOnly] < 0 {
		c.unserved++
		return
	}
	h.located++
	for s, site := range at {
		us := c.geo.delay(place, site)
		h.delay[s] += us
		c.all[s].Add(us, 1)
		if read {
			c.reads[s].Add(us, 1)
		}
	}
}

func (c *Collector) id(id string, last *string, lastS **ownerState) *ownerState {
	if id == "" {
		return nil
	}
	if *lastS != nil && *last == id {
		return *lastS
	}
	s := c.owners[id]
	if s == nil {
		s = &ownerState{site: unknownSite, near: unknownSite}
		c.owners[id] = s
	}
	*last, *lastS = id, s
	return s
}

func (c *Collector) sawUser(u *ownerState, near int16) {
	u.near = near
	if !u.seen {
		u.seen = true
		c.moved = append(c.moved, u)
	}
}

// distanceOnly returns where the owner's single copy is under distance-only: a
// new owner's goes to the site nearest to the first place seen, its own before
// the requester's; later it follows the owner from window to window.
func (c *Collector) distanceOnly(owner *ownerState, near int16) int16 {
	if owner == nil {
		return unknownSite
	}
	if owner.site < 0 {
		owner.site = near
		if owner.near >= 0 {
			owner.site = owner.near
		}
	}
	return owner.site
}

// hour returns the window of a time, closing those before it for distance-only.
func (c *Collector) hour(us int64) *Hour {
	if c.open != nil && us >= c.open.Start.UnixMicro() && us < c.open.End.UnixMicro() {
		return c.open
	}
	for _, u := range c.moved {
		u.site, u.seen = u.near, false
	}
	c.moved = c.moved[:0]
	start := window.Start(us, c.width)
	c.hours = append(c.hours, c.newHour(start))
	c.open = &c.hours[len(c.hours)-1]
	return c.open
}

func (c *Collector) newHour(start int64) Hour {
	h := Hour{
		Start: time.UnixMicro(start).UTC(), End: time.UnixMicro(start + c.width.Microseconds()).UTC(),
		Reasons: map[string]int64{},
	}
	for s := range h.Traffic {
		h.Traffic[s] = make([]int64, len(c.sites))
	}
	return h
}

// Window takes an answered window: its end (µs), its record (nil without one),
// its moves and how they ended.
func (c *Collector) Window(end int64, d *control.Decision, moves []control.Move, outcomes []control.Outcome) {
	for i := len(c.hours) - 1; i >= 0; i-- {
		h := &c.hours[i]
		if h.End.UnixMicro() != end {
			continue
		}
		if d != nil {
			h.Case, h.Mode = d.Case, d.Mode
			for _, r := range d.Reasons {
				h.Reasons[r.Code] += max(r.Count, 1)
			}
		}
		c.moves(h, moves, outcomes)
		return
	}
}

func (c *Collector) moves(h *Hour, moves []control.Move, outcomes []control.Outcome) {
	h.Moves += len(moves)
	from := map[string]string{}
	for _, m := range moves {
		from[m.Owner] = m.From
	}
	for _, o := range outcomes {
		if o.Status != control.Done {
			continue
		}
		h.Done++
		h.Bytes += o.Bytes
		if i, ok := c.index[from[o.Owner]]; ok {
			h.Egress += c.sites[i].Egress * float64(o.Bytes) / 1e9
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
