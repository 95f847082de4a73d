package workload

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"penstock/schemas/sphere"
)

// population is the users of a day. Slices are by user.
type population struct {
	towns  []Town
	names  []string
	metro  []int32
	lat    []float32
	lon    []float32
	weight []float64 // activity, in any unit
	// readers holds whom a read is by: friends in ascending order, the user
	// itself last.
	readers [][]int32
	levels  [][]float64 // as readers; they sum to 1
}

// settle draws the users, their places and activity.
func settle(p *Params) *population {
	pop := &population{
		towns: p.towns(),
		names: make([]string, p.Users), metro: make([]int32, p.Users),
		lat: make([]float32, p.Users), lon: make([]float32, p.Users), weight: make([]float64, p.Users),
	}
	width := len(fmt.Sprint(p.Users - 1))
	var byPeople aliases
	weights := make([]float64, len(pop.towns))
	for i, m := range pop.towns {
		weights[i] = m.Population
	}
	byPeople.add(weights)
	places := newSource(p.Seed, streamPlaces)
	for u := range p.Users {
		pop.names[u] = fmt.Sprintf("u%0*d", width, u)
		m := byPeople.draw(0, places.pcg.Uint64())
		pop.metro[u] = int32(m)
		pop.lat[u], pop.lon[u] = jitter(pop.towns[m], p.Places.JitterKm, places.float(), places.float())
	}
	for rank, u := range newSource(p.Seed, streamActivity).shuffle(p.Users) {
		pop.weight[u] = math.Pow(float64(rank+1)+p.Activity.Shift, -p.Activity.Exponent)
	}
	return pop
}

// jitter returns a place that is uniform in the disk of the radius around the
// centre, for two numbers that are uniform in [0, 1).
func jitter(t Town, km, u, v float64) (lat, lon float32) {
	const kmPerDegree = sphere.Radius * math.Pi / 180
	r := km * math.Sqrt(u)
	sin, cos := math.Sincos(2 * math.Pi * v)
	north, east := r*sin, r*cos
	return float32(t.Lat + north/kmPerDegree),
		float32(t.Lon + east/(kmPerDegree*math.Cos(t.Lat*math.Pi/180)))
}

// surroundings returns by area the areas within km of it, itself included.
func (pop *population) surroundings(km float64) [][]int {
	near := make([][]int, len(pop.towns))
	for i, a := range pop.towns {
		for j, b := range pop.towns {
			if i == j || sphere.Km(a.Lat, a.Lon, b.Lat, b.Lon) <= km {
				near[i] = append(near[i], j)
			}
		}
	}
	return near
}

// befriend draws the friend graph and the social levels.
func (pop *population) befriend(p *Params) {
	n := p.Users
	rnd := newSource(p.Seed, streamFriends)
	near := pop.surroundings(p.Friends.NearKm)
	around := pop.around(near)
	degrees, circles := degreeLaw(p.Friends.Degree), circleLaw(p.Friends.Circles)
	edges := make([]map[int32]bool, n)
	for u := range edges {
		edges[u] = map[int32]bool{}
	}
	for u := range n {
		circle := p.Friends.Circles[circles.draw(0, rnd.pcg.Uint64())]
		home := pop.secondHome(u, near, rnd)
		degree := min(p.Friends.Degree.Least+degrees.draw(0, rnd.pcg.Uint64()), p.Friends.Degree.Most)
		// A user that picks a friend twice, or itself, picks again, a bounded
		// number of times: in a small population there may be nobody left.
		for picked, tries := 0, 0; picked < (degree+1)/2 && tries < 8*degree; tries++ {
			v := pop.pick(u, circle, home, around, rnd)
			if v == u || edges[u][int32(v)] {
				continue
			}
			edges[u][int32(v)], edges[v][int32(u)] = true, true
			picked++
		}
	}
	pop.levelUp(p, edges)
}

// around returns by area the users within its surroundings, by user.
func (pop *population) around(near [][]int) [][]int32 {
	by := make([][]int32, len(pop.towns))
	for u, m := range pop.metro {
		by[m] = append(by[m], int32(u))
	}
	around := make([][]int32, len(pop.towns))
	for i := range pop.towns {
		for _, j := range near[i] {
			around[i] = append(around[i], by[j]...)
		}
	}
	return around
}

// secondHome returns the area of an earlier home: that of a random user outside
// the surroundings, or the own area if a few tries find none.
func (pop *population) secondHome(u int, near [][]int, rnd source) int {
	own := int(pop.metro[u])
	for range 16 {
		m := int(pop.metro[rnd.intn(len(pop.metro))])
		outside := true
		for _, j := range near[own] {
			outside = outside && j != m
		}
		if outside {
			return m
		}
	}
	return own
}

func (pop *population) pick(u int, c Circle, home int, around [][]int32, rnd source) int {
	x := rnd.float()
	var from []int32
	switch {
	case x < c.Own:
		from = around[pop.metro[u]]
	case x < c.Own+c.Home:
		from = around[home]
	}
	if len(from) == 0 {
		return rnd.intn(len(pop.metro))
	}
	return int(from[rnd.intn(len(from))])
}

// levelUp draws a social level for each edge, the same in both directions, and
// fills readers and levels. Edges are taken in ascending order, so that no
// order of a map reaches a row.
func (pop *population) levelUp(p *Params, edges []map[int32]bool) {
	rnd := newSource(p.Seed, streamTies)
	n := len(edges)
	pop.readers, pop.levels = make([][]int32, n), make([][]float64, n)
	for u := range n {
		for _, v := range slices.Sorted(maps.Keys(edges[u])) {
			if int(v) < u {
				continue
			}
			level := min(math.Pow(1-rnd.float(), -1/p.Friends.TieExponent), p.Friends.TieMost)
			pop.readers[u], pop.levels[u] = append(pop.readers[u], v), append(pop.levels[u], level)
			pop.readers[v], pop.levels[v] = append(pop.readers[v], int32(u)), append(pop.levels[v], level)
		}
	}
	for u := range n {
		sum := 0.0
		for _, l := range pop.levels[u] {
			sum += l
		}
		own := p.Reads.OwnShare
		if sum == 0 {
			own = 1 // Nobody else is there to read.
		}
		for i := range pop.levels[u] {
			pop.levels[u][i] *= (1 - own) / sum
		}
		pop.readers[u], pop.levels[u] = append(pop.readers[u], int32(u)), append(pop.levels[u], own)
	}
}

func degreeLaw(d Degree) *aliases {
	weights := make([]float64, 0, d.Most-d.Least+1)
	for k := d.Least; k <= d.Most; k++ {
		weights = append(weights, math.Pow(float64(k), -d.Exponent))
	}
	a := new(aliases)
	a.add(weights)
	return a
}

func circleLaw(cs []Circle) *aliases {
	weights := make([]float64, len(cs))
	for i, c := range cs {
		weights[i] = c.Share
	}
	a := new(aliases)
	a.add(weights)
	return a
}
