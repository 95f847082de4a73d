package baselines

import (
	"math"
	"math/bits"

	"penstock/schemas/sphere"
)

// unit is 1 in the integers that unit vectors are added up in, as in the rollup
// places: sums then do not depend on their order.
const unit = 1e9

// maxPlaces bounds the memory of what was worked out about places.
const maxPlaces = 1 << 18

// vector is a sum of unit vectors, in units of 1e-9.
type vector struct{ x, y, z int64 }

func (v *vector) add(w vector, times int64) {
	v.x += w.x * times
	v.y += w.y * times
	v.z += w.z * times
}

func integers(v sphere.Vector) vector {
	return vector{int64(math.Round(v.X * unit)), int64(math.Round(v.Y * unit)), int64(math.Round(v.Z * unit))}
}

func (v vector) float() sphere.Vector {
	return sphere.Vector{X: float64(v.x) / unit, Y: float64(v.y) / unit, Z: float64(v.z) / unit}
}

// Places numbers places, and knows of each its unit vector and the site nearest
// to it. Places repeat, so each is worked out once.
type Places struct {
	sites []sphere.Vector
	table []slot // open addressing by the bits of the degrees
	known []known
}

// slot is a place and its number plus 1; 0 is a free slot.
type slot struct {
	key    uint64
	number int32
}

type known struct {
	at   sphere.Vector
	sum  vector
	near int16
}

// NewPlaces returns an empty numbering for sites in config order.
func NewPlaces(sites []Site) *Places {
	p := &Places{table: make([]slot, 1<<10)}
	for _, s := range sites {
		p.sites = append(p.sites, sphere.FromDegrees(s.Lat, s.Lon))
	}
	return p
}

// mix spreads the bits of a key over a table of 2^n slots: Fibonacci hashing.
func mix(key uint64, slots int) int {
	return int(key * 0x9E3779B97F4A7C15 >> (64 - bits.Len(uint(slots-1))))
}

// Find returns the number of a place in degrees. It is valid until [Places.Reset].
func (p *Places) Find(lat, lon float32) int32 {
	key := uint64(math.Float32bits(lat))<<32 | uint64(math.Float32bits(lon))
	for i := mix(key, len(p.table)); ; i = (i + 1) & (len(p.table) - 1) {
		switch s := &p.table[i]; {
		case s.number == 0:
			return p.learn(key, lat, lon)
		case s.key == key:
			return s.number - 1
		}
	}
}

func (p *Places) learn(key uint64, lat, lon float32) int32 {
	if 2*(len(p.known)+1) > len(p.table) {
		old := p.table
		p.table = make([]slot, 2*len(old))
		for _, s := range old {
			if s.number > 0 {
				p.put(s)
			}
		}
	}
	at := sphere.FromDegrees(float64(lat), float64(lon))
	p.known = append(p.known, known{at: at, sum: integers(at), near: nearest(p.sites, at)})
	p.put(slot{key, int32(len(p.known))})
	return int32(len(p.known)) - 1
}

func (p *Places) put(s slot) {
	i := mix(s.key, len(p.table))
	for p.table[i].number > 0 {
		i = (i + 1) & (len(p.table) - 1)
	}
	p.table[i] = s
}

// nearest returns the site nearest to a place, the first of equally near ones,
// None without sites.
func nearest(sites []sphere.Vector, at sphere.Vector) int16 {
	best, least := int16(None), 0.0
	for i, s := range sites {
		if km := sphere.Distance(at, s); i == 0 || km < least {
			best, least = int16(i), km
		}
	}
	return best
}

// Len is how many places have a number.
func (p *Places) Len() int { return len(p.known) }

// At returns a place's unit vector.
func (p *Places) At(place int32) sphere.Vector { return p.known[place].at }

// Full reports that many places are known: the caller may [Places.Reset] once it
// holds no numbers.
func (p *Places) Full() bool { return len(p.known) >= maxPlaces }

// Reset forgets all places and their numbers. No strategy keeps any.
func (p *Places) Reset() {
	clear(p.table)
	p.known = p.known[:0]
}
