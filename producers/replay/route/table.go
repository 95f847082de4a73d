package route

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/sphere"
)

// Mode says who decides which site serves a request.
type Mode int

const (
	// Follow serves a request where the owner's data is.
	Follow Mode = iota
	// Recorded leaves to_site as it was recorded.
	Recorded
)

// String returns follow or recorded.
func (m Mode) String() string {
	if m == Recorded {
		return "recorded"
	}
	return "follow"
}

// Site is a site of the configuration, in degrees.
type Site struct {
	Name     string
	Lat, Lon float64
}

// None stands for no owner and for no site.
const None = -1

// Options of a table.
type Options struct {
	// Allowed says at which sites an owner's data may be (residency): a flag for
	// each, in config order. It must always answer the same; the answer isn't
	// changed. Nil: anywhere.
	Allowed func(owner string) []bool
	// Imported are locations that are known beforehand, by owner.
	Imported map[string]control.Location
	Mode     Mode
	// Sites in config order.
	Sites []Site
}

// Table knows the owners and users that have passed. It is not safe for
// concurrent use.
type Table struct {
	opts  Options
	sites []sphere.Vector
	index map[string]int32 // of sites
	ids   map[string]int32
	nodes []node

	lastUser, lastOwner   string
	lastUserN, lastOwnerN int32

	fresh   []int32 // owners to report at the next Turn
	unsure  []int32 // owners seen in this window that have no site yet
	tallies []int64 // of unsure, by site
}

// node is an id: a user, an owner, or both.
type node struct {
	name     string
	site     int32
	tally    int32 // place in unsure, None if it isn't there
	version  uint64
	lat, lon float32 // of the first place seen as a user
	placed   bool
	owner    bool // its site is known and it has passed as an owner
}

// New returns a table of the imported owners.
func New(o Options) (*Table, error) {
	if len(o.Sites) == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrSite)
	}
	t := &Table{opts: o, index: map[string]int32{}, ids: map[string]int32{}, lastUserN: None, lastOwnerN: None}
	for i, s := range o.Sites {
		t.index[s.Name] = int32(i)
		t.sites = append(t.sites, sphere.FromDegrees(s.Lat, s.Lon))
	}
	for _, owner := range slices.Sorted(maps.Keys(o.Imported)) {
		l := o.Imported[owner]
		site, ok := t.index[l.Site]
		if !ok {
			return nil, fmt.Errorf("%w: owner %.60q is at %.60q", ErrSite, owner, l.Site)
		}
		n := &t.nodes[t.id(owner)]
		n.site, n.version = site, l.Version
	}
	return t, nil
}

func (t *Table) id(s string) int32 {
	n, ok := t.ids[s]
	if !ok {
		n = int32(len(t.nodes))
		t.nodes = append(t.nodes, node{name: s, site: None, tally: None})
		t.ids[s] = n
	}
	return n
}

// Route learns from a row that is in time, sets its to_site (Follow) and
// returns its owner's number, None if it has none. Numbers are dense from 0 and
// never change.
func (t *Table) Route(r *event.Request) int32 {
	if r.User != "" && r.HasPlace() {
		if r.User != t.lastUser {
			t.lastUser, t.lastUserN = r.User, t.id(r.User)
		}
		if n := &t.nodes[t.lastUserN]; !n.placed {
			n.placed, n.lat, n.lon = true, r.Lat, r.Lon
		}
	}
	if r.Owner == "" {
		if t.opts.Mode == Follow {
			t.serveAt(r, t.nearest("", r.Lat, r.Lon, r.HasPlace()))
		}
		return None
	}
	if r.Owner != t.lastOwner {
		t.lastOwner, t.lastOwnerN = r.Owner, t.id(r.Owner)
	}
	o := t.lastOwnerN
	n := &t.nodes[o]
	if n.site == None {
		t.learn(r)
	} else if !n.owner {
		n.owner, t.fresh = true, append(t.fresh, o)
	}
	if t.opts.Mode == Follow {
		t.serveAt(r, n.site)
	}
	return o
}

// learn finds a site for the row's owner, which has none, or counts towards one.
func (t *Table) learn(r *event.Request) {
	o := t.lastOwnerN
	n := &t.nodes[o]
	if t.opts.Mode == Follow {
		if n.site = t.home(n, r); n.site != None {
			n.owner, t.fresh = true, append(t.fresh, o)
		}
		return
	}
	site, ok := t.index[r.ToSite]
	if !ok {
		return
	}
	if n.tally == None {
		n.tally = int32(len(t.unsure))
		t.unsure = append(t.unsure, o)
		for range t.sites {
			t.tallies = append(t.tallies, 0)
		}
	}
	t.tallies[int(n.tally)*len(t.sites)+int(site)]++
}

// home is where a new owner's data is.
func (t *Table) home(n *node, r *event.Request) int32 {
	if n.placed {
		return t.nearest(r.Owner, n.lat, n.lon, true)
	}
	return t.nearest(r.Owner, r.Lat, r.Lon, r.HasPlace())
}

// nearest returns the allowed site nearest to a place, the first one in config
// order of equally near ones or without a place, None if none is allowed.
func (t *Table) nearest(owner string, lat, lon float32, placed bool) int32 {
	var at sphere.Vector
	if placed {
		at = sphere.FromDegrees(float64(lat), float64(lon))
	}
	var allowed []bool
	if owner != "" && t.opts.Allowed != nil {
		allowed = t.opts.Allowed(owner)
	}
	best, least := int32(None), math.Inf(1)
	for i := range t.sites {
		if allowed != nil && !allowed[i] {
			continue
		}
		d := 0.0
		if placed {
			d = sphere.Distance(at, t.sites[i])
		}
		if d < least {
			best, least = int32(i), d
		}
	}
	return best
}

// RouteMarked routes a late or future row by what is known, and learns nothing.
func (t *Table) RouteMarked(r *event.Request) {
	if t.opts.Mode == Recorded {
		return
	}
	if r.Owner != "" {
		if o, ok := t.ids[r.Owner]; ok {
			if n := &t.nodes[o]; n.site != None {
				t.serveAt(r, n.site)
			} else {
				t.serveAt(r, t.home(n, r))
			}
			return
		}
	}
	t.serveAt(r, t.nearest(r.Owner, r.Lat, r.Lon, r.HasPlace()))
}

func (t *Table) serveAt(r *event.Request, site int32) {
	if site == None {
		r.ToSite = ""
		return
	}
	r.ToSite = t.opts.Sites[site].Name
}

// Turn ends a window: in Recorded, owners get the site that served most of
// their requests. It returns the owners whose site is known and of which that,
// or the first request, is new since the last Turn, in the order in which it
// was; the slice is valid until the next Route.
func (t *Table) Turn() []int32 {
	for i, o := range t.unsure {
		counts := t.tallies[i*len(t.sites) : (i+1)*len(t.sites)]
		best := 0
		for s, c := range counts {
			if c > counts[best] {
				best = s
			}
		}
		n := &t.nodes[o]
		n.site, n.tally, n.owner = int32(best), None, true
		t.fresh = append(t.fresh, o)
	}
	t.unsure, t.tallies = t.unsure[:0], t.tallies[:0]
	fresh := t.fresh
	t.fresh = t.fresh[:0]
	return fresh
}

// Apply takes in that a move is done. An older one than what is known, or one to
// a site that isn't configured, changes nothing and returns false.
func (t *Table) Apply(owner, to string, version uint64) bool {
	site, ok := t.index[to]
	if !ok {
		return false
	}
	n := &t.nodes[t.id(owner)]
	if version <= n.version {
		return false
	}
	n.site, n.version = site, version
	return true
}

// Owner returns the name of an owner, the index of the site where its data is
// (None if unknown) and the version of its location (0 if it never moved).
func (t *Table) Owner(o int32) (name string, site int, version uint64) {
	n := &t.nodes[o]
	return n.name, int(n.site), n.version
}

// Len is the number of ids that have passed, owners and users: one more than
// the greatest owner number.
func (t *Table) Len() int { return len(t.nodes) }

// Site returns a site by its index.
func (t *Table) Site(i int) string { return t.opts.Sites[i].Name }
