package demo

import (
	"fmt"
	"math/rand/v2"

	"penstock/pipeline/demo/links"
)

// Site is one of the sites and the region around it, by position in World.Sites.
type Site int

// Region is a site with the people around it.
type Region struct {
	Name     string
	Lat, Lon float64
	// Country is the code by which the demonstration's own table of addresses knows
	// the region, Network the first three numbers of its people's addresses, which
	// are set aside for documentation (RFC 5737).
	Country, Network string
}

// regions are the sites, in the order that breaks ties. The crowd is at the first
// of them at the beginning.
var regions = []Region{
	{Name: "eu-west", Lat: 53.35, Lon: -6.26, Country: "IE", Network: "203.0.113"},
	{Name: "us-east", Lat: 37.3719, Lon: -79.8164, Country: "US", Network: "198.51.100"},
	{Name: "ap-northeast", Lat: 35.68, Lon: 139.69, Country: "JP", Network: "192.0.2"},
}

// Way is how somebody finds the entry point to call.
type Way int

// The ways.
const (
	// Nearest calls the entry point of the region where they are.
	Nearest Way = iota
	// Looked asks the redirector, and believes the answer for as long as it says.
	Looked
	// Sent calls the redirector, which sends them on (307).
	Sent
	// Stale looked once, at the beginning, and calls that site for ever.
	Stale
)

// ways name the ways.
var ways = [...]string{Nearest: "nearest entry", Looked: "by redirector", Sent: "sent by 307", Stale: "stale client"}

// String names the way.
func (w Way) String() string { return ways[w] }

// Person is somebody with a notebook.
type Person struct {
	Name    string
	Home    Site // where they and their notebook are at the beginning
	Crowd   bool // they go where the crowd goes
	Way     Way
	Friends []int // whose notebooks they read and write
	Host    int   // the last number of their address
}

// World is who is there.
type World struct {
	Regions []Region
	People  []Person
	Crowd   int // how many of them belong to the crowd
}

// crowdShare is the part of all people who belong to the crowd.
const crowdShare = 0.7

// friends is how many friends everybody has, strangers how many of a hundred
// friendships are between the crowd and those who stay.
const friends, strangers = 4, 5

// NewWorld draws people and their friendships from rng.
func NewWorld(people int, rng *rand.Rand) *World {
	w := &World{Regions: regions}
	for i := range people {
		p := Person{Name: fmt.Sprintf("%s-%d", names[i%len(names)], i), Home: Site(i % len(regions)), Host: 1 + i%250}
		nth := i
		if float64(w.Crowd) < crowdShare*float64(i+1) {
			p.Home, p.Crowd, nth = 0, true, w.Crowd
			w.Crowd++
		}
		switch nth % 20 { // The same mix in the crowd and beside it.
		case 3, 9, 15:
			p.Way = Looked
		case 6:
			p.Way = Sent
		case 12, 18:
			p.Way = Stale
		}
		w.People = append(w.People, p)
	}
	for i := range w.People {
		w.befriend(i, rng)
	}
	return w
}

// befriend gives somebody friends: nearly all of those who are and stay together
// with them.
func (w *World) befriend(i int, rng *rand.Rand) {
	p := &w.People[i]
	for range 50 * friends { // In a small world there may not be enough of them.
		if len(p.Friends) == friends {
			return
		}
		j := rng.IntN(len(w.People))
		q := &w.People[j]
		near := q.Crowd == p.Crowd && q.Home == p.Home
		if j != i && (near || q.Crowd != p.Crowd && rng.IntN(100) < strangers) {
			p.Friends = append(p.Friends, j)
		}
	}
}

// Where is where somebody is while the crowd is at a site.
func (w *World) Where(p *Person, crowd Site) Site {
	if p.Crowd {
		return crowd
	}
	return p.Home
}

// Address is the address of somebody who is in a region.
func (w *World) Address(p *Person, at Site) string {
	return fmt.Sprintf("%s.%d", w.Regions[at].Network, p.Host)
}

// places are the ends of the links between the regions, whose entry points listen
// at addresses.
func (w *World) places(addresses []string) []links.Place {
	var out []links.Place
	for i, r := range w.Regions {
		out = append(out, links.Place{Name: r.Name, Lat: r.Lat, Lon: r.Lon, Address: addresses[i]})
	}
	return out
}

var names = []string{"ada", "ben", "cleo", "dan", "edna", "finn", "gita", "hugo", "iris", "jon", "kai", "lena", "mia", "noa", "otto", "pia", "rosa", "sami", "tom", "uma"}
