package baselines

import (
	"math"

	"penstock/schemas/sphere"
)

// VolleyOptions are the constants of volley.
type VolleyOptions struct {
	// Steps is the most moves of the springs in a window. Defaults to 10.
	Steps int
	// Still ends them once none moved a place by more, in km. Defaults to 1.
	Still float64
}

func (o VolleyOptions) complete() VolleyOptions {
	if o.Steps == 0 {
		o.Steps = 10
	}
	if o.Still == 0 {
		o.Still = 1
	}
	return o
}

// Volley places data in three phases at the end of each window, from that
// window's accesses alone (PAPERS §1.6: "phase 1 weighted spherical mean, phase
// 2 iterative weighted-spring moves including data-data links, phase 3 collapse
// to DCs under capacity"). The formulas are our reading [A]. With v(p) the unit
// vector of a place, w(i,p) the requests for owner i's data from p, l(i,k) the
// requests that i and k made for each other's data, and dir(v) = v/|v|:
//
// Phase 1, the mean: x_i = dir(Σ_p w(i,p)·v(p)). It is the place from which the
// weighted sum of squared chords is least. Owners whose accesses have no place,
// or cancel out, keep their site.
//
// Phase 2, the springs: each step moves all owners at once half-way to rest,
//
//	x_i ← dir(x_i + m_i),  m_i = (Σ_p w(i,p)·v(p) + Σ_k l(i,k)·x_k) / (Σ_p w(i,p) + Σ_k l(i,k)),
//
// k over the owners with data. Data of which nothing was asked in the window does
// not move: it pulls from its site. It ends after Steps, or when all moves are
// below Still.
//
// Phase 3, the collapse: each goes to its nearest site. As long as a site is over
// its capacity, by the bytes asked of these owners' data, its least asked owners
// (then by number) go on to the next nearest to x_i, until the rest fits; nobody
// goes on past its last one, so that it ends. What is over then stays over.
//
// What moves costs nothing here: volley has no term for it.
type Volley struct {
	ledger *Ledger
	o      VolleyOptions
	stands standing
	moved  []Moved

	// Of one closing, kept for the next one's use.
	points []point
	index  []int32 // of points by owner, None for the rest
	fixed  int     // points from here on do not move
	links  []spring
}

// point is an owner's data that is placed in this window, or that others are
// pulled to.
type point struct {
	owner  int32
	x      sphere.Vector // where it would be best
	units  vector        // x in integers, so that pulls do not depend on their order
	pull   vector        // Σ l·x, of a step
	weight int64         // Σ w + Σ l
	site   int16
	rank   int16 // of the site by distance from x: 0 is nearest
}

// spring pulls two points together.
type spring struct {
	a, b     int32
	requests int64
}

func newVolley(l *Ledger, o VolleyOptions) *Volley { return &Volley{ledger: l, o: o.complete()} }

// Name is volley.
func (*Volley) Name() string { return "volley" }

// Text says what it does.
func (*Volley) Text() string {
	return "one copy, each window near the mean of those who asked and of the data it communicates with, then the nearest site under capacity"
}

// Copies is 1.
func (*Volley) Copies() int { return 1 }

// Stand says where an owner's data is.
func (v *Volley) Stand(owner int32, site int16) { v.stands.set(owner, site) }

// Access returns where the data is.
func (v *Volley) Access(a *Access) int16 { return v.stands.serve(v.ledger, a) }

// Close places what was asked for in the window.
func (v *Volley) Close(int64) []Moved {
	v.moved = v.moved[:0]
	v.mean()
	v.lay()
	v.relax()
	v.collapse()
	for i := range v.points[:v.fixed] {
		p := &v.points[i]
		if from := v.stands[p.owner]; from != p.site {
			v.moved = append(v.moved, Moved{Owner: p.owner, From: from, To: p.site, Bytes: v.ledger.nodes[p.owner].stored})
			v.stands[p.owner] = p.site
		}
	}
	return v.moved
}

// mean is phase 1.
func (v *Volley) mean() {
	for i := range v.points {
		v.index[v.points[i].owner] = None
	}
	v.points = v.points[:0]
	for len(v.index) < len(v.ledger.nodes) {
		v.index = append(v.index, None)
	}
	for _, o := range v.ledger.asked {
		n := &v.ledger.nodes[o]
		x, ok := direction(n.from.float())
		if ok && v.stands.at(o) >= 0 {
			v.put(point{owner: o, x: x, units: integers(x), weight: n.placed})
		}
	}
	v.fixed = len(v.points)
}

func (v *Volley) put(p point) int32 {
	i := int32(len(v.points))
	v.points, v.index[p.owner] = append(v.points, p), i
	return i
}

// direction returns the unit vector in the direction of v; ok is false where
// there is none: what is shorter than a few units of 1e-9 is rounding.
func direction(v sphere.Vector) (x sphere.Vector, ok bool) {
	length := math.Sqrt(float64(v.X*v.X) + float64(v.Y*v.Y) + float64(v.Z*v.Z))
	if length < 1e-8 {
		return sphere.Vector{}, false
	}
	return sphere.Vector{X: v.X / length, Y: v.Y / length, Z: v.Z / length}, true
}

// lay puts springs between the data of those who asked for each other's.
func (v *Volley) lay() {
	v.links = v.links[:0]
	for _, l := range v.ledger.links.table {
		if l.requests == 0 {
			continue
		}
		a, b := l.ends()
		s := spring{v.point(a), v.point(b), l.requests}
		if s.a < 0 || s.b < 0 || int(s.a) >= v.fixed && int(s.b) >= v.fixed {
			continue
		}
		v.points[s.a].weight += s.requests
		v.points[s.b].weight += s.requests
		v.links = append(v.links, s)
	}
}

// point returns the point of an id: a fixed one at its site for data that is not
// placed in this window, None for an id without data.
func (v *Volley) point(id int32) int32 {
	if i := v.index[id]; i >= 0 {
		return i
	}
	site := v.stands.at(id)
	if site < 0 {
		return None
	}
	x := v.ledger.at[site]
	return v.put(point{owner: id, x: x, units: integers(x)})
}

// relax is phase 2.
func (v *Volley) relax() {
	if len(v.links) == 0 {
		return // The means are at rest already.
	}
	for range v.o.Steps {
		for i := range v.points[:v.fixed] {
			v.points[i].pull = v.ledger.nodes[v.points[i].owner].from
		}
		for _, s := range v.links {
			a, b := &v.points[s.a], &v.points[s.b]
			a.pull.add(b.units, s.requests)
			b.pull.add(a.units, s.requests)
		}
		if v.step() <= v.o.Still {
			return
		}
	}
}

// step moves all points half-way to rest, and returns the farthest move in km,
// along the chord.
func (v *Volley) step() float64 {
	farthest := 0.0
	for i := range v.points[:v.fixed] {
		p := &v.points[i]
		m, w := p.pull.float(), float64(p.weight)
		x, ok := direction(sphere.Vector{X: p.x.X + m.X/w, Y: p.x.Y + m.Y/w, Z: p.x.Z + m.Z/w})
		if !ok {
			continue // Pulled to its antipode: either way is as good.
		}
		dx, dy, dz := x.X-p.x.X, x.Y-p.x.Y, x.Z-p.x.Z
		farthest = max(farthest, float64(dx*dx)+float64(dy*dy)+float64(dz*dz))
		p.x, p.units = x, integers(x)
	}
	return sphere.Radius * math.Sqrt(farthest)
}
