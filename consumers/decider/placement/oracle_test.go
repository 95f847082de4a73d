package placement

import (
	"cmp"
	"math"
	"slices"

	"penstock/schemas/control"
	"penstock/schemas/sphere"
)

// oracle is the policy once more, slow and plain, from the text of DESIGN §4.1:
// maps by name, everything computed anew for each window.
type oracle struct {
	c        Config
	site     map[string]string             // where an owner's data is
	version  map[string]uint64             // the last one issued
	pending  map[string]control.Move       // moves under way
	refused  map[string]control.Move       // last move, if it was refused
	changed  map[string]int64              // when it last really moved
	level    map[string]map[string]float64 // social level by owner and user
	latest   map[string][3]float64         // time, lat, lon
	mean     map[string][3]int64
	stored   map[string]int64
	placed   map[string]bool // a decision has placed it
	owners   map[string]bool
	pins     map[string]bool
	history  []oracleMove
	decided  map[string]int64 // window of the move under way
	lastCase string
	now      int64
	seen     map[string]bool
	t        map[string]int64
	observed map[string]int64
	expected map[string]int64
	evac     map[string]bool
	planned  bool // the last window had a plan
}

type oracleMove struct {
	window          int64
	owner, from, to string
}

// oracleInput is a window in rows.
type oracleInput struct {
	end        int64
	traffic    []trafficRow
	asks       []askRow
	places     []seenRow
	frozen     bool
	mode       control.Mode
	incomplete bool
	evacuate   []string
	rollback   int64 // noTime: none
}

type trafficRow struct {
	owner, site              string
	requests, bytes, written int64
}

type askRow struct {
	user, owner string
	requests    int64
}

type seenRow struct {
	user     string
	at       int64
	lat, lon float64
	n        int64
}

func newOracle(c Config) *oracle {
	o := &oracle{
		c: c, site: map[string]string{}, version: map[string]uint64{}, pending: map[string]control.Move{},
		refused: map[string]control.Move{}, changed: map[string]int64{}, level: map[string]map[string]float64{},
		latest: map[string][3]float64{}, mean: map[string][3]int64{}, stored: map[string]int64{}, placed: map[string]bool{},
		owners: map[string]bool{}, pins: map[string]bool{}, decided: map[string]int64{},
	}
	for owner, l := range c.Locations {
		o.owners[owner], o.site[owner], o.version[owner], o.pins[owner] = true, l.Site, l.Version, l.Pinned
	}
	for _, f := range c.Friends {
		o.addLevel(f.Owner, f.User, max(f.Level, 1))
	}
	return o
}

func (o *oracle) addLevel(owner, user string, n int64) {
	if o.level[owner] == nil {
		o.level[owner] = map[string]float64{}
	}
	o.level[owner][user] += float64(n)
}

func (o *oracle) isSite(name string) bool {
	return slices.ContainsFunc(o.c.Sites, func(s Site) bool { return s.Name == name })
}

func (o *oracle) learn(in oracleInput) {
	o.now, o.seen, o.t, o.observed = in.end, map[string]bool{}, map[string]int64{}, map[string]int64{}
	visits := map[string]map[string]int64{}
	for _, r := range in.traffic {
		o.owners[r.owner], o.seen[r.owner] = true, true
		o.stored[r.owner] += r.written
		o.t[r.owner] += r.bytes
		if o.isSite(r.site) {
			if visits[r.owner] == nil {
				visits[r.owner] = map[string]int64{}
			}
			visits[r.owner][r.site] += r.requests
		}
	}
	for owner, by := range visits {
		if o.site[owner] != "" {
			continue
		}
		var most int64
		for _, s := range o.c.Sites {
			if by[s.Name] > most {
				o.site[owner], most = s.Name, by[s.Name]
			}
		}
	}
	for _, r := range in.traffic {
		at := r.site
		if m, ok := o.pending[r.owner]; ok {
			at = m.To
		} else if at == "" {
			at = o.site[r.owner]
		}
		o.observed[at] += r.bytes
	}
	for _, r := range in.asks {
		if r.user != r.owner && r.requests > 0 {
			o.addLevel(r.owner, r.user, r.requests)
		}
	}
	for _, r := range in.places {
		v := placeRow(r.at, r.lat, r.lon, r.n)
		sum := o.mean[r.user]
		for i := range sum {
			sum[i] += v[4+i]
		}
		o.mean[r.user] = sum
		next := [3]float64{float64(r.at), degrees(r.lat), degrees(r.lon)}
		if old, ok := o.latest[r.user]; !ok || slices.Compare(next[:], old[:]) > 0 {
			o.latest[r.user] = next
		}
	}
	if o.c.Traffic == Requester {
		all, volume, t := map[string]int64{}, map[string]int64{}, map[string]int64{}
		for _, r := range in.traffic {
			all[r.owner] += r.requests
			volume[r.owner] += r.bytes
		}
		for _, r := range mergedAsks(in.asks) {
			if n := all[r.owner]; n > 0 {
				t[r.user] += volume[r.owner] * min(r.requests, n) / n
			}
		}
		o.t = t
	}
}

// degrees is a number as a table holds it; −0 comes after 0 and before all that
// is greater, as where panes are merged.
func degrees(v float64) float64 {
	if f := float32(v); f != 0 || !math.Signbit(float64(f)) {
		return float64(f)
	}
	return minusZero
}

// minusZero stands for −0 where numbers are put in order.
const minusZero = 1e-50

// mergedAsks adds up rows of one pair, as a merged table has them.
func mergedAsks(asks []askRow) []askRow {
	by := map[[2]string]int64{}
	for _, r := range asks {
		by[[2]string{r.user, r.owner}] += r.requests
	}
	var out []askRow
	for k, n := range by {
		out = append(out, askRow{k[0], k[1], n})
	}
	return out
}

func (o *oracle) place(user string) (sphere.Vector, bool) {
	if o.c.Place == Mean {
		m := o.mean[user]
		x, y, z := float64(m[0]), float64(m[1]), float64(m[2])
		n := math.Sqrt(float64(x*x) + float64(y*y) + float64(z*z))
		return sphere.Vector{X: x / n, Y: y / n, Z: z / n}, n != 0
	}
	p, ok := o.latest[user]
	for i := range p {
		if p[i] == minusZero {
			p[i] = 0
		}
	}
	return sphere.FromDegrees(p[1], p[2]), ok
}

// weight is one site as it looks to an owner, rounded.
type weight struct {
	site     string
	e, s, d  float64
	allowed  bool
	expected int64
}

func (o *oracle) weights(owner string) []weight {
	var d, s []float64
	friends := sortedKeys(o.level[owner])
	for _, site := range o.c.Sites {
		at := sphere.FromDegrees(site.Lat, site.Lon)
		var km, social float64
		if p, ok := o.place(owner); ok {
			km = sphere.Distance(p, at)
		}
		for _, f := range friends {
			if p, ok := o.place(f); ok {
				social += float64(o.level[owner][f] * sphere.Distance(p, at))
			}
		}
		d, s = append(d, km), append(s, social)
	}
	norm := func(v []float64) []float64 {
		out := make([]float64, len(v))
		for i := range v {
			if least, most := slices.Min(v), slices.Max(v); most > least {
				out[i] = (v[i] - least) / (most - least)
			}
		}
		return out
	}
	round := func(v float64) float64 { return math.Round(v * 1e9) }
	nd, ns := norm(d), norm(s)
	var out []weight
	for i, site := range o.c.Sites {
		e := float64(o.c.Alpha*nd[i]) + float64(o.c.Beta*ns[i])
		out = append(out, weight{site: site.Name, e: round(e), s: round(ns[i]), d: round(nd[i]), allowed: o.allowed(owner, site.Name)})
	}
	return out
}

func (o *oracle) resides(owner, site string) bool {
	for _, r := range o.c.Residency {
		// Patterns of the generator are a text with at most a star at its end.
		text, star := r.Match, false
		if text[len(text)-1] == '*' {
			text, star = text[:len(text)-1], true
		}
		if owner == text || star && len(owner) >= len(text) && owner[:len(text)] == text {
			return slices.Contains(r.Sites, site)
		}
	}
	return true
}

func (o *oracle) allowed(owner, site string) bool { return o.resides(owner, site) && !o.evac[site] }

// ties returns the weights that are left after E, social and distance.
func (o *oracle) ties(w []weight) []weight {
	for _, of := range []func(weight) float64{
		func(w weight) float64 { return w.e }, func(w weight) float64 { return w.s }, func(w weight) float64 { return w.d },
	} {
		least := math.Inf(1)
		for _, x := range w {
			least = min(least, of(x))
		}
		w = slices.DeleteFunc(slices.Clone(w), func(x weight) bool { return of(x)-least > math.Round(o.c.TieTolerance*1e9) })
	}
	return w
}

func (o *oracle) room(site string) int64 {
	for _, s := range o.c.Sites {
		if s.Name == site {
			return int64(math.Floor(float64(s.Capacity) * (1 - o.c.Headroom)))
		}
	}
	return 0
}

// result is what a window comes to.
type result struct {
	kind    string
	moves   []control.Move // in the order of commands
	why     map[string]int64
	overs   map[string]int64
	remains map[string]int64
}

// held says why an owner may not be moved at all.
func (o *oracle) held(owner string) string {
	_, under := o.pending[owner]
	at, was := o.changed[owner]
	switch {
	case o.pins[owner]:
		return "Pinned"
	case under:
		return "MoveUnderWay"
	case was && !o.evac[o.site[owner]] && o.now-at < o.c.Cooldown.Microseconds():
		return "Cooldown"
	}
	return ""
}

func (o *oracle) isRefused(owner, to string) bool {
	m, ok := o.refused[owner]
	return ok && m.From == o.site[owner] && m.To == to
}

// byName orders owners by traffic descending, then name.
func (o *oracle) byTraffic(owners []string) []string {
	slices.SortFunc(owners, func(a, b string) int { return cmp.Or(cmp.Compare(o.t[b], o.t[a]), cmp.Compare(a, b)) })
	return owners
}
