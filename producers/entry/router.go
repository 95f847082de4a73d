package entry

import (
	"strings"

	"github.com/cespare/xxhash/v2"
)

// router decides where requests go. It is pure but for the locations.
type router struct {
	sites     []Site
	index     map[string]int
	hashes    []uint64 // of the sites' names
	own       int
	redirects bool
	unknown   string
	fixed     int // the site of "site:NAME"
	locations Locations
	residency func(string) []bool
}

func newRouter(o *Options) *router {
	r := &router{
		sites: o.Sites, index: map[string]int{}, redirects: o.Answer == Redirect,
		unknown: o.Unknown, locations: o.Locations, residency: o.Residency,
	}
	for i, s := range o.Sites {
		r.index[s.Name] = i
		r.hashes = append(r.hashes, xxhash.Sum64String(s.Name))
	}
	r.own = r.index[o.Site]
	if name, ok := strings.CutPrefix(o.Unknown, "site:"); ok {
		r.fixed = r.index[name]
	}
	return r
}

// place is where an owner's data is, or is to be served.
type place struct {
	site    int // index; noSite if no site may hold it
	version uint64
	known   bool // the location is known; else a rule chose the site
}

const noSite = -1

// find says where the owner's data is. strange reports a location at a site
// that the configuration doesn't have; such an owner counts as unknown.
func (r *router) find(owner string) (p place, strange bool) {
	if owner == "" {
		return place{site: r.own}, false
	}
	site, version, known := r.locations.Locate(owner)
	if known {
		if i, ok := r.index[site]; ok {
			return place{site: i, version: version, known: true}, false
		}
	}
	return place{site: r.choose(owner)}, known
}

// choose picks the site of an owner whose location is not known. Residency
// binds: a site that may not hold it gives way to the first that may.
func (r *router) choose(owner string) int {
	var allowed []bool
	if r.residency != nil {
		allowed = r.residency(owner)
	}
	may := func(i int) bool { return allowed == nil || i < len(allowed) && allowed[i] }
	first := noSite
	for i := range r.sites {
		if may(i) {
			first = i
			break
		}
	}
	site := r.own
	switch {
	case first == noSite, r.unknown == UnknownFirst:
		return first
	case r.unknown == UnknownHash:
		return r.rendezvous(owner, may)
	case r.unknown != UnknownLocal:
		site = r.fixed
	}
	if !may(site) {
		return first
	}
	return site
}

// rendezvous picks the allowed site with the greatest hash of owner and site:
// when a site comes or goes only its own owners change place.
func (r *router) rendezvous(owner string, may func(int) bool) int {
	h := xxhash.Sum64String(owner)
	best, most := noSite, uint64(0)
	for i := range r.sites {
		if s := mix(h ^ r.hashes[i]); may(i) && (best == noSite || s > most) {
			best, most = i, s
		}
	}
	return best
}

// mix spreads the bits of v (the finaliser of SplitMix64).
func mix(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// way is what is done with a request.
type way uint8

const (
	serve       way = iota // by the own servers
	forward                // to the entry point of the site
	redirect               // 307 to it
	misdirected            // 421: a hop that isn't for this site
	disowned               // 508: so does a request whose mark is not believed
	nowhereToGo            // 503: no site may, or none can be reached
)

// decide says what is done with a request for data at p. hop is the version
// that an entry point before this one believed when it forwarded the request
// here, marked that the request was forwarded by somebody; one that is bound to
// its connection can't be redirected.
func (r *router) decide(p place, hop *hop, marked, bound bool) way {
	switch {
	case p.site == noSite:
		return nowhereToGo
	case p.site == r.own:
		return serve
	case hop != nil:
		// The rule by which the first entry point chose a site for an unknown owner
		// is its own; and it may know of a move before this one does.
		if !p.known || hop.version > p.version {
			return serve
		}
		return misdirected
	case marked:
		return disowned
	}
	s := &r.sites[p.site]
	switch {
	case s.URL != "" && !bound && (r.redirects || s.Peer == nil):
		return redirect
	case s.Peer != nil:
		return forward
	}
	return nowhereToGo
}

// served is where data is that is served here. Of a hop the entry point before
// this one may know more, also that this site has it.
func (r *router) served(p place, hop *hop) place {
	if hop != nil && (p.site != r.own || hop.version > p.version) {
		return place{site: r.own, version: hop.version, known: hop.version > 0}
	}
	return p
}
