package baselines

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/schemas/sphere"
)

// chords is the weighted sum of squared chords from x, which the mean makes
// least.
func chords(x sphere.Vector, places []sphere.Vector, weights []int64) float64 {
	sum := 0.0
	for i, p := range places {
		dx, dy, dz := x.X-p.X, x.Y-p.Y, x.Z-p.Z
		sum += float64(weights[i]) * (dx*dx + dy*dy + dz*dz)
	}
	return sum
}

// minimum searches the sphere for the least value: a grid, then smaller and
// smaller steps from the best points of it.
func minimum(value func(sphere.Vector) float64) sphere.Vector {
	best, least := [2]float64{}, math.Inf(1)
	for lat := -90.0; lat <= 90; lat += 10 {
		for lon := -180.0; lon < 180; lon += 10 {
			if v := value(sphere.FromDegrees(lat, lon)); v < least {
				best, least = [2]float64{lat, lon}, v
			}
		}
	}
	for step := 8.0; step > 1e-7; {
		better := false
		for _, d := range [][2]float64{{step, 0}, {-step, 0}, {0, step}, {0, -step}, {step, step}, {step, -step}, {-step, step}, {-step, -step}} {
			at := [2]float64{min(max(best[0]+d[0], -90), 90), best[1] + d[1]/max(math.Cos(best[0]*math.Pi/180), 0.01)}
			if v := value(sphere.FromDegrees(at[0], at[1])); v < least {
				best, least, better = at, v, true
			}
		}
		if !better {
			step /= 2
		}
	}
	return sphere.FromDegrees(best[0], best[1])
}

func degrees(t *rapid.T, label string) (lat, lon float32) {
	return float32(rapid.Float64Range(-80, 80).Draw(t, label+" lat")), float32(rapid.Float64Range(-180, 180).Draw(t, label+" lon"))
}

// The mean is the place with the least weighted sum of squared chords.
func TestMeanIsWhatASlowMinimiserFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New([]Site{{}}, Options{})
		v := b.strategies[2].(*Volley)
		n := rapid.IntRange(1, 6).Draw(t, "places")
		var places []sphere.Vector
		var weights []int64
		for range n {
			lat, lon := degrees(t, "place")
			w := rapid.Int64Range(1, 50).Draw(t, "weight")
			places, weights = append(places, sphere.FromDegrees(float64(lat), float64(lon))), append(weights, w)
			b.Access(&Access{Owner: 0, User: None, Place: b.Places().Find(lat, lon), Requests: w}, make([]int16, 4))
		}
		b.ledger.order()
		v.mean()
		if len(v.points) == 0 {
			var x, y, z float64
			for i, p := range places {
				w := float64(weights[i])
				x, y, z = x+w*p.X, y+w*p.Y, z+w*p.Z
			}
			if math.Sqrt(x*x+y*y+z*z) > 1e-6 {
				t.Fatalf("%v with weights %v have a mean, and none was found", places, weights)
			}
			return // They cancel out: no place is the mean.
		}
		value := func(x sphere.Vector) float64 { return chords(x, places, weights) }
		got, want := v.points[0].x, minimum(value)
		if value(got) > value(want)+1e-7 {
			t.Fatalf("the mean %v costs %v, %v costs %v", got, value(got), want, value(want))
		}
	})
}

// Springs come to rest where no place could be moved to lessen their energy, the
// sum of weighted squared chords between all that is tied together.
func TestSpringsComeToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New([]Site{{Lat: 10, Lon: 10}, {Lat: 40, Lon: -60}}, Options{Volley: VolleyOptions{Steps: 3000, Still: 1e-6}})
		v := b.strategies[2].(*Volley)
		n := rapid.IntRange(2, 5).Draw(t, "owners")
		for o := range n {
			// Within a hemisphere the energy has one minimum.
			lat, lon := float32(rapid.Float64Range(-40, 40).Draw(t, "lat")), float32(rapid.Float64Range(-60, 60).Draw(t, "lon"))
			b.Access(&Access{Owner: int32(o), User: None, Place: b.Places().Find(lat, lon), Requests: rapid.Int64Range(1, 9).Draw(t, "weight")}, make([]int16, 4))
		}
		for range rapid.IntRange(1, 6).Draw(t, "links") {
			u, o := int32(rapid.IntRange(0, n-1).Draw(t, "user")), int32(rapid.IntRange(0, n-1).Draw(t, "owner"))
			b.Access(&Access{User: u, Owner: o, Place: None, Requests: rapid.Int64Range(1, 20).Draw(t, "requests")}, make([]int16, 4))
		}
		b.ledger.order()
		v.mean()
		v.lay()
		v.relax()
		for i := range v.points[:v.fixed] {
			places := []sphere.Vector{v.ledger.nodes[v.points[i].owner].from.float()}
			weights := []int64{1}
			for _, s := range v.links {
				if other := s.a + s.b - int32(i); s.a == int32(i) || s.b == int32(i) {
					places, weights = append(places, v.points[other].x), append(weights, s.requests)
				}
			}
			// A sum of vectors pulls as its parts do, up to a constant.
			value := func(x sphere.Vector) float64 { return chords(x, places, weights) }
			got, want := v.points[i].x, minimum(value)
			if value(got) > value(want)+1e-5 {
				t.Fatalf("point %d rests at %v, where the energy is %.9f; at %v it is %.9f", i, got, value(got), want, value(want))
			}
		}
	})
}

// naive keeps every access and works everything out anew.
type naive struct {
	w         *world
	distance  map[int32]int16
	akkio     map[int32]int16
	since     map[int32]int64
	stored    map[int32]int64
	own       map[int32]int16 // nearest to the latest own place
	past      []map[int32]map[int16]int64
	o         AkkioOptions
	collected []Access
}

func (n *naive) near(place int32) int16 {
	best, least := int16(None), math.Inf(1)
	for i, s := range n.w.sites {
		d := n.w.degrees[place]
		if km := sphere.Km(float64(d[0]), float64(d[1]), s.Lat, s.Lon); km < least {
			best, least = int16(i), km
		}
	}
	return best
}

// access returns who serves: nearest-replica, distance-only, akkio-like.
func (n *naive) access(a Access) [3]int16 {
	out := [3]int16{None, None, None}
	if a.Place >= 0 {
		out[0] = n.near(a.Place)
		if a.User >= 0 {
			n.own[a.User] = out[0]
		}
	}
	n.collected = append(n.collected, a)
	if a.Owner < 0 {
		return out
	}
	n.stored[a.Owner] += a.Written
	home, ok := n.own[a.Owner]
	if !ok {
		home = out[0]
	}
	for i, at := range []map[int32]int16{n.distance, n.akkio} {
		if _, ok := at[a.Owner]; !ok && home >= 0 {
			at[a.Owner] = home
		}
		if site, ok := at[a.Owner]; ok {
			out[1+i] = site
		}
	}
	return out
}

// close returns what moves: nearest-replica, distance-only, akkio-like.
func (n *naive) close(end int64) [3][]Moved {
	var out [3][]Moved
	written := map[int16]int64{}
	seen, asked := map[int32]bool{}, map[int32]bool{}
	counts := map[int32]map[int16]int64{}
	for _, a := range n.collected {
		if a.Place >= 0 {
			written[n.near(a.Place)] += a.Written
			if a.User >= 0 {
				seen[a.User] = true
			}
		}
		if a.Owner >= 0 {
			asked[a.Owner] = true
			if a.Place >= 0 {
				if counts[a.Owner] == nil {
					counts[a.Owner] = map[int16]int64{}
				}
				counts[a.Owner][n.near(a.Place)]++
			}
		}
	}
	n.collected, n.past = nil, append(n.past, counts)
	for i := range n.w.sites {
		if b := written[int16(i)]; b > 0 {
			out[0] = append(out[0], Moved{None, int16(i), None, b * int64(len(n.w.sites)-1)})
		}
	}
	for _, u := range slices.Sorted(maps.Keys(seen)) {
		if from, ok := n.distance[u]; ok && from != n.own[u] {
			out[1] = append(out[1], Moved{u, from, n.own[u], n.stored[u]})
			n.distance[u] = n.own[u]
		}
	}
	for _, o := range slices.Sorted(maps.Keys(asked)) {
		from, ok := n.akkio[o]
		to := n.prefers(o)
		last, moved := n.since[o]
		if !ok || to < 0 || to == from || moved && end-last < n.o.Cooldown.Microseconds() {
			continue
		}
		out[2] = append(out[2], Moved{o, from, to, n.stored[o]})
		n.akkio[o], n.since[o] = to, end
	}
	return out
}

// prefers returns the site that akkio-like would have an owner's data at, None
// if its accesses do not tell.
func (n *naive) prefers(owner int32) int16 {
	var count [3]int64
	for _, c := range n.past {
		for s := range count {
			count[s] = count[s]/2 + c[owner][int16(s)]
		}
	}
	sum, best := count[0]+count[1]+count[2], n.akkio[owner]
	for s := range count {
		if count[s] > count[best] {
			best = int16(s)
		}
	}
	lead := count[best] - count[n.akkio[owner]]
	if sum < n.o.Least || float64(count[best]) < n.o.Share*float64(sum) || float64(lead) < n.o.Lead*float64(sum) {
		return None
	}
	return best
}

// Serving and moves of three strategies are those of an oracle that keeps all.
func TestStrategiesDoWhatANaiveOneDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, true)
		o := AkkioOptions{
			Least: rapid.Int64Range(1, 6).Draw(t, "least"), Share: rapid.Float64Range(0.3, 0.9).Draw(t, "share"),
			Lead: rapid.Float64Range(0.01, 0.5).Draw(t, "lead"), Cooldown: time.Duration(rapid.IntRange(1, 4).Draw(t, "cooldown")) * time.Hour,
		}
		b := New(w.sites, Options{Akkio: o})
		n := &naive{w: &w, o: o, distance: map[int32]int16{}, akkio: map[int32]int16{}, since: map[int32]int64{}, stored: map[int32]int64{}, own: map[int32]int16{}}
		for i, window := range w.windows {
			for r, at := range w.feed(b, window) {
				if got, want := [3]int16{at[0], at[1], at[3]}, n.access(window[r]); got != want {
					t.Fatalf("window %d, row %d: served at %v, expected %v", i, r, got, want)
				}
			}
			moved, want := b.Close(windowEnd(i)), n.close(windowEnd(i))
			for s, got := range [][]Moved{moved[0], moved[1], moved[3]} {
				if !slices.Equal(got, want[s]) {
					t.Fatalf("window %d, strategy %d: moves %v, expected %v", i, s, got, want[s])
				}
			}
		}
	})
}
