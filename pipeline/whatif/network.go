package whatif

import (
	"math"

	"penstock/schemas/sphere"
)

// Site is a place that can hold data.
type Site struct {
	Name     string
	Lat, Lon float64 // degrees
}

// Network tells round trips between places of users and sites.
type Network interface {
	// RTT is the round trip, in ms, of a user at a place (degrees) to a site, by
	// its place in the order of the recording's sites.
	RTT(lat, lon float64, site int) float64
}

// Formula is the network of PAPERS §1.2, 5: a round trip follows from distance.
type Formula []Site

// RTT is sphere.RTT of the great circle.
func (f Formula) RTT(lat, lon float64, site int) float64 {
	return sphere.RTT(sphere.Km(lat, lon, f[site].Lat, f[site].Lon))
}

// geography knows how far places of users are from the sites. Places repeat, so
// each is worked out once and is a number from then on.
type geography struct {
	network Network
	sites   []sphere.Vector
	index   map[[2]float32]int32
	rtt     []int32   // µs, by place and site
	km      []float64 // by place and site
	near    []int16   // by place: the nearest site, first in order
	// coordinates in degrees, by place.
	coordinates [][2]float32
}

func newGeography(sites []Site, n Network) *geography {
	g := &geography{network: n, index: map[[2]float32]int32{}}
	for _, s := range sites {
		g.sites = append(g.sites, sphere.FromDegrees(s.Lat, s.Lon))
	}
	return g
}

// nowhere is the place of whom no place is known.
const nowhere int32 = -1

// place returns the number of a place, nowhere of one that is none.
func (g *geography) place(lat, lon float32) int32 {
	la, ln := float64(lat), float64(lon)
	if math.IsNaN(la) || math.IsInf(la, 0) || math.IsNaN(ln) || math.IsInf(ln, 0) {
		return nowhere
	}
	key := [2]float32{lat + 0, lon + 0} // one spelling of 0
	if i, ok := g.index[key]; ok {
		return i
	}
	i := int32(len(g.near))
	v, best := sphere.FromDegrees(la, ln), 0
	for s, at := range g.sites {
		km := sphere.Distance(v, at)
		g.km = append(g.km, km)
		g.rtt = append(g.rtt, int32(math.Round(g.network.RTT(la, ln, s)*1000)))
		if km < g.distance(i, best) {
			best = s
		}
	}
	g.near = append(g.near, int16(best))
	g.index[key] = i
	g.coordinates = append(g.coordinates, key)
	return i
}

func (g *geography) distance(place int32, site int) float64 {
	return g.km[int(place)*len(g.sites)+site]
}

func (g *geography) delay(place int32, site int16) int64 {
	return int64(g.rtt[int(place)*len(g.sites)+int(site)])
}

// nearest is the allowed site nearest to a place, the first allowed of no place;
// nil allows all.
func (g *geography) nearest(place int32, allowed []bool) int16 {
	if allowed == nil && place != nowhere {
		return g.near[place]
	}
	best, least := NoSite, math.Inf(1)
	for s := range g.sites {
		if allowed != nil && !allowed[s] {
			continue
		}
		km := 0.0
		if place != nowhere {
			km = g.distance(place, s)
		}
		if km < least {
			best, least = int16(s), km
		}
	}
	return best
}
