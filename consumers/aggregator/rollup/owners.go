package rollup

import (
	"math"
	"slices"

	"penstock/consumers/aggregator/ledger"
	"penstock/schemas/event"
	"penstock/schemas/sphere"
	"penstock/schemas/window"
)

// owners is the state of the group of that name.
type owners struct {
	people names // owners and users
	sites  names
	widths window.Widths
	frames frames[ownersWindow]
	size   int

	// Translations and places of the batch at hand, by its codes.
	owner, user, site []uint32
	traffic, late     []cached
	seen              []cached
	tasks             []bool // by outcome

	pairs        []uint64 // of the window at hand
	order, spare []slot   // memory for sorting
}

// cached is where the rows of one code of the batch went last.
type cached struct {
	frame int32
	site  int32
	row   int32
}

// ownersWindow is one window: keys are pairs of ids, values are rows + 1.
type ownersWindow struct {
	traffic, late sums
	interactions  index // user, owner → requests
	places        index // user → row + 1
	seen          []seen
}

// sums is a rollup of the shape of traffic.
type sums struct {
	index index // owner, site → row + 1
	rows  []sum
}

type sum struct {
	key                             uint64
	requests, writes, bytes, stored int64
}

// seen is where a user was last seen, and the sum of the unit vectors of where
// it was seen; the last vector is kept, for most users stay where they are.
type seen struct {
	user      uint32
	lat, lon  float32
	time      int64
	requests  int64
	x, y, z   int64
	vlat      float32
	vlon      float32
	vx, vy, v int64
}

// Estimated bytes of a row with its part of the index.
const (
	sumBytes   = 40 + 32
	pairBytes  = 32
	seenBytes  = 96 + 32
	nameBytes  = 16 + 16 + 8
	frameBytes = 256 + 4*leastIndex
)

func newOwners(widths window.Widths) *owners {
	return &owners{widths: widths, frames: frames[ownersWindow]{width: widths.Of(window.Traffic).Microseconds()}}
}

func (*owners) Columns(d *event.Decoder) {
	d.Columns("time", "mark", "user", "owner", "lat", "lon", "to_site", "op", "bytes", "outcome")
}

func (s *owners) Size() int {
	return s.size + s.people.bytes() + s.sites.bytes() + frameBytes*len(s.frames.list)
}

func (s *owners) Add(b *event.Requests, class []ledger.Class) int64 {
	s.owner = s.people.translate(&b.Owner, s.owner[:0])
	s.user = s.people.translate(&b.User, s.user[:0])
	s.site = s.sites.translate(&b.ToSite, s.site[:0])
	s.traffic = forget(s.traffic, len(s.owner))
	s.late = forget(s.late, len(s.owner)+1)
	s.seen = forget(s.seen, len(s.user))
	isTask, tasks := event.Tasks(s.tasks[:0], &b.Outcome)
	s.tasks = isTask
	var w *ownersWindow
	var start, end int64
	var n int32
	for i, t := range b.Time {
		c := class[i]
		if c == ledger.Quarantined || tasks && c == ledger.Counted && b.Outcome.Codes[i] >= 0 && isTask[b.Outcome.Codes[i]] {
			continue
		}
		if w == nil || t < start || t >= end {
			s.interact(w)
			start, n, w = s.frames.find(t)
			end = start + s.frames.width
		}
		owner, user, site := b.Owner.Codes[i], b.User.Codes[i], b.ToSite.Codes[i]
		if c == ledger.Late {
			s.sum(&w.late, &s.late[owner+1], n, owner, site).add(b, i)
			continue
		}
		if owner >= 0 {
			s.sum(&w.traffic, &s.traffic[owner], n, owner, site).add(b, i)
		}
		if user < 0 {
			continue
		}
		if owner >= 0 {
			s.pairs = append(s.pairs, pair(s.user[user], s.owner[owner]))
		}
		if lat, lon := b.Lat[i], b.Lon[i]; lat == lat && lon == lon {
			s.place(w, &s.seen[user], n, s.user[user]).add(t, lat, lon)
		}
	}
	s.interact(w)
	return 0
}

// AddGauges does nothing: queues have no owner.
func (*owners) AddGauges(*event.Gauges, []ledger.Class) {}

// interact counts the pairs of user and owner that were met in a window.
func (s *owners) interact(w *ownersWindow) {
	if len(s.pairs) > 0 {
		s.size += pairBytes * w.interactions.count(s.pairs)
		s.pairs = s.pairs[:0]
	}
}

// forget returns n empty places.
func forget(c []cached, n int) []cached {
	c = slices.Grow(c[:0], n)[:n]
	for i := range c {
		c[i].frame = -1
	}
	return c
}

// sum returns the row of an owner and site, by their codes.
func (s *owners) sum(to *sums, c *cached, n, owner, site int32) *sum {
	if c.frame == n && c.site == site {
		return &to.rows[c.row]
	}
	var o, at uint32
	if owner >= 0 {
		o = s.owner[owner]
	}
	if site >= 0 {
		at = s.site[site]
	}
	key := pair(o, at)
	v := to.index.at(key)
	if *v == 0 {
		to.rows = append(to.rows, sum{key: key})
		*v = int64(len(to.rows))
		s.size += sumBytes
	}
	*c = cached{frame: n, site: site, row: int32(*v - 1)}
	return &to.rows[c.row]
}

func (r *sum) add(b *event.Requests, i int) {
	r.requests++
	r.bytes += b.Bytes[i]
	if b.Op[i] == uint8(event.Write) {
		r.writes++
		r.stored += b.Bytes[i]
	}
}

func (s *owners) place(w *ownersWindow, c *cached, n int32, user uint32) *seen {
	if c.frame == n {
		return &w.seen[c.row]
	}
	v := w.places.at(uint64(user))
	if *v == 0 {
		w.seen = append(w.seen, seen{user: user, time: window.NullInt, vlat: float32(math.NaN())})
		*v = int64(len(w.seen))
		s.size += seenBytes
	}
	*c = cached{frame: n, row: int32(*v - 1)}
	return &w.seen[c.row]
}

// add counts a position; the greatest of (time, lat, lon) is the latest.
func (p *seen) add(t int64, lat, lon float32) {
	lat, lon = lat+0, lon+0 // one spelling of 0
	if t > p.time || t == p.time && (lat > p.lat || lat == p.lat && lon > p.lon) {
		p.time, p.lat, p.lon = t, lat, lon
	}
	if lat != p.vlat || lon != p.vlon {
		u := sphere.FromDegrees(float64(lat), float64(lon))
		p.vlat, p.vlon = lat, lon
		p.vx, p.vy, p.v = nano(u.X), nano(u.Y), nano(u.Z)
	}
	p.requests++
	p.x += p.vx
	p.y += p.vy
	p.z += p.v
}

// nano returns x in units of 1e-9 (DESIGN §3.4).
func nano(x float64) int64 { return int64(math.Round(x * 1e9)) }

func (w *ownersWindow) reset() {
	for _, s := range []*sums{&w.traffic, &w.late} {
		s.index.reset()
		s.rows = s.rows[:0]
	}
	w.interactions.reset()
	w.places.reset()
	w.seen = w.seen[:0]
}
