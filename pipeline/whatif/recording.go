package whatif

import (
	"time"

	"penstock/schemas/event"
	"penstock/schemas/window"
)

// NoSite is the site of owners of whom none is known.
const NoSite int16 = -1

// Window is a closed window: its merged rows by rollup.
type Window struct {
	Start, End int64 // µs, half open
	Tables     map[string]*window.Table
	// Incomplete are the intervals of which something is missing: a policy
	// decides nothing on them.
	Incomplete []window.Interval
}

// Options say how windows are taken.
type Options struct {
	Sites []Site
	// Network tells round trips; nil: Formula of the sites.
	Network Network
	// Allowed answers at which sites an owner's data may be, a flag for each;
	// nil: anywhere.
	Allowed func(owner string) []bool
	// Served puts new owners where the windows say that they were served, most
	// requests first; else at the site nearest to the first place seen.
	Served bool
	// Weights asks for the weights of placement's objective in each frame.
	Weights bool
}

// Recording turns windows into frames. It is not safe for concurrent use; the
// frames are, once made.
type Recording struct {
	opts  Options
	geo   *geography
	sites map[string]int16
	names event.Dict
	place []int32 // by id: where it was last seen
	first []int32 // by id: where it was first seen
	home  []int16 // by id: where its data is at the beginning; NoSite of no owner
	owns  []bool  // by id
	soc   []levels
	bad   int64
}

// levels are the social levels of an owner, by user in ascending order of names
// once a frame is made.
type levels struct {
	users []int32
	level []int64
}

// NewRecording returns a recording without windows.
func NewRecording(o Options) *Recording {
	if o.Network == nil {
		o.Network = Formula(o.Sites)
	}
	r := &Recording{opts: o, geo: newGeography(o.Sites, o.Network), sites: map[string]int16{}}
	for i, s := range o.Sites {
		r.sites[s.Name] = int16(i)
	}
	return r
}

// Bad is the number of rows that could not be used: without an owner, with a
// negative number, or with a place that is none.
func (r *Recording) Bad() int64 { return r.bad }

// Frame is a window as strategies need it. It is not changed once made.
type Frame struct {
	Start, End int64
	Incomplete []window.Interval

	names []string // by id; as long as there were ids by then
	sites []Site
	geo   *geography
	base  *window.Table // traffic with one row an owner and no site
	other map[string]*window.Table

	owners  []owner // by row of base
	pairs   []pair  // ordered by row
	fresh   []start // owners that are new, in order of rows
	seen    []sight // users that were seen, in order of names
	all     []int32 // ids of all owners so far, ascending
	weight  *weights
	foreign int64 // bytes served by sites that the configuration lacks
}

type start struct {
	id   int32
	site int16
}

type sight struct{ id, place int32 }

func (r *Recording) id(name string) int32 {
	c := r.names.Intern(name)
	for int(c) >= len(r.place) {
		r.place, r.first = append(r.place, nowhere), append(r.first, nowhere)
		r.home, r.owns = append(r.home, NoSite), append(r.owns, false)
		r.soc = append(r.soc, levels{})
	}
	return c
}

func (r *Recording) translate(d *event.Dict) []int32 {
	out := make([]int32, len(d.Values))
	for i, v := range d.Values {
		out[i] = r.id(v)
	}
	return out
}

// Frame takes a window in. Windows come in ascending order.
func (r *Recording) Frame(w Window) *Frame {
	f := &Frame{
		Start: w.Start, End: w.End, Incomplete: w.Incomplete,
		sites: r.opts.Sites, geo: r.geo, other: map[string]*window.Table{},
	}
	for name, t := range w.Tables {
		if name != window.Traffic.Name {
			f.other[name] = t
		}
	}
	r.places(f, w.Tables[window.Places.Name])
	rows := r.traffic(f, w.Tables[window.Traffic.Name])
	r.interactions(f, rows, w.Tables[window.Interactions.Name])
	r.settle(f)
	f.names = r.names.Values[:len(r.place):len(r.place)]
	for id, owns := range r.owns {
		if owns {
			f.all = append(f.all, int32(id))
		}
	}
	if r.opts.Weights {
		f.weight = r.weigh(f)
	}
	return f
}

func (r *Recording) places(f *Frame, t *window.Table) {
	if t == nil {
		return
	}
	ids := r.translate(t.Key("user"))
	codes, at := t.Key("user").Codes, t.Column("time")
	lat, lon := t.Column("lat"), t.Column("lon")
	for i, c := range codes {
		place := nowhere
		if c >= 0 && at[i] != window.NullInt {
			place = r.geo.place(window.ToFloat32(lat[i]), window.ToFloat32(lon[i]))
		}
		if place == nowhere {
			r.bad++
			continue
		}
		id := ids[c]
		r.place[id] = place
		if r.first[id] == nowhere {
			r.first[id] = place
		}
		f.seen = append(f.seen, sight{id, place})
	}
}

// traffic fills the rows and the base table; it returns the row of each owner.
func (r *Recording) traffic(f *Frame, t *window.Table) map[int32]int32 {
	rows := map[int32]int32{}
	f.base = window.NewTable(window.Traffic)
	f.base.Width = time.Duration(f.End-f.Start) * time.Microsecond
	if t == nil {
		return rows
	}
	ids, sites := r.translate(t.Key("owner")), t.Key("site")
	requests, writes, bytes := t.Column("requests"), t.Column("writes"), t.Column("bytes")
	written := t.Column("bytes_written")
	for i, c := range t.Key("owner").Codes {
		if c < 0 || requests[i] < 0 || bytes[i] < 0 || written[i] < 0 {
			r.bad++
			continue
		}
		id := ids[c]
		row, ok := rows[id]
		if !ok {
			row = int32(len(f.owners))
			rows[id] = row
			f.owners = append(f.owners, owner{id: id})
		}
		o := &f.owners[row]
		o.requests += requests[i]
		o.writes += writes[i]
		o.bytes += bytes[i]
		o.written += written[i]
		r.serve(f, o, sites, i, requests[i], bytes[i], written[i])
	}
	for i := range f.owners {
		o := &f.owners[i]
		f.base.Append(f.Start, []string{r.names.Values[o.id], ""}, []int64{o.requests, o.requests - o.writes, o.writes, o.bytes, o.written})
	}
	return rows
}

// serve notes by which site a row was served, where it says so.
func (r *Recording) serve(f *Frame, o *owner, sites *event.Dict, i int, requests, bytes, written int64) {
	if sites.Codes[i] < 0 {
		return
	}
	site, ok := r.sites[sites.Values[sites.Codes[i]]]
	if !ok {
		f.foreign += bytes
		return
	}
	if o.served == nil {
		n := len(r.opts.Sites)
		all := make([]int64, 3*n)
		o.served, o.servedRequests, o.servedWritten = all[:n], all[n:2*n], all[2*n:]
	}
	o.servedWritten[site] += written
	o.served[site] += bytes
	o.servedRequests[site] += requests
}

// settle finds where the data of new owners is.
func (r *Recording) settle(f *Frame) {
	most := make([]int32, len(f.owners)) // by row: the place of the user who asked most often
	for row := range most {
		most[row] = nowhere
	}
	for _, p := range f.pairs {
		if most[p.row] == nowhere {
			most[p.row] = p.place
		}
	}
	for row := range f.owners {
		o := &f.owners[row]
		if r.owns[o.id] {
			continue
		}
		var site int16
		if r.opts.Served {
			site = busiest(o.servedRequests)
		} else {
			place := r.first[o.id]
			if place == nowhere {
				place = most[row]
			}
			var allowed []bool
			if r.opts.Allowed != nil {
				allowed = r.opts.Allowed(r.names.Values[o.id])
			}
			site = r.geo.nearest(place, allowed)
		}
		if site == NoSite {
			continue // It isn't an owner until its site is known.
		}
		r.owns[o.id], r.home[o.id] = true, site
		f.fresh = append(f.fresh, start{o.id, site})
	}
}

// busiest is the site with most, the first of equals; NoSite if there is none.
func busiest(by []int64) int16 {
	best := NoSite
	for s, n := range by {
		if n > 0 && (best == NoSite || n > by[best]) {
			best = int16(s)
		}
	}
	return best
}
