package placement

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/consumers/decider"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// grid are places that make ties: users stand on sites and on each other.
var grid = [][2]float64{{0, 0}, {0, 10}, {0, -10}, {20, 5}, {-20, 5}, {0, 10.001}, {48.9, 2.3}, {0, 180}, {90, 0}}

func drawPlace(t *rapid.T, label string) (lat, lon float64) {
	if rapid.IntRange(0, 3).Draw(t, label+" kind") > 0 {
		p := rapid.SampledFrom(grid).Draw(t, label)
		return p[0], p[1]
	}
	return rapid.Float64Range(-90, 90).Draw(t, label+" lat"), rapid.Float64Range(-180, 180).Draw(t, label+" lon")
}

func drawConfig(t *rapid.T) Config {
	var c Config
	for i := range rapid.IntRange(1, 5).Draw(t, "sites") {
		lat, lon := drawPlace(t, "site")
		c.Sites = append(c.Sites, Site{Name: fmt.Sprintf("s%d", i), Lat: lat, Lon: lon, Capacity: rapid.Int64Range(1, 120).Draw(t, "capacity")})
	}
	site := rapid.SampledFrom(c.Sites)
	c.Alpha = rapid.SampledFrom([]float64{0, 0.3, 0.5, 1, 7}).Draw(t, "alpha")
	c.Beta = rapid.SampledFrom([]float64{0, 0.5, 0.7, 2}).Draw(t, "beta")
	c.Headroom = rapid.SampledFrom([]float64{0, 0, 0.1, 0.35}).Draw(t, "headroom")
	c.TieTolerance = rapid.SampledFrom([]float64{0, 0, 0, 1e-9, 0.05, 0.3}).Draw(t, "tie")
	c.Place = rapid.SampledFrom([]string{Latest, Mean}).Draw(t, "place")
	c.Traffic = rapid.SampledFrom([]string{Owner, Owner, Requester}).Draw(t, "traffic")
	c.Cooldown = time.Duration(rapid.SampledFrom([]int{0, 0, 1, 2, 4}).Draw(t, "cooldown")) * time.Hour
	c.Limits.Moves = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "moves")
	c.Limits.Bytes = rapid.SampledFrom([]int64{0, 0, 20, 100}).Draw(t, "bytes")
	c.MinRequests = rapid.SampledFrom([]int64{0, 0, 5}).Draw(t, "least")
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		r := Rule{Match: rapid.SampledFrom([]string{"o1", "o*", "*", "u1*"}).Draw(t, "match")}
		for range rapid.IntRange(1, 2).Draw(t, "rule sites") {
			r.Sites = append(r.Sites, site.Draw(t, "rule site").Name)
		}
		c.Residency = append(c.Residency, r)
	}
	c.Locations = map[string]control.Location{}
	for range rapid.IntRange(0, 3).Draw(t, "locations") {
		c.Locations[drawID(t, "imported")] = control.Location{
			Site: site.Draw(t, "imported at").Name, Version: rapid.Uint64Range(0, 4).Draw(t, "version"),
			State: control.Live, Pinned: rapid.IntRange(0, 3).Draw(t, "pinned") == 0,
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "friends") {
		f := Friend{Owner: drawID(t, "friend of"), User: drawID(t, "friend"), Level: rapid.Int64Range(0, 9).Draw(t, "level")}
		if f.Owner != f.User {
			c.Friends = append(c.Friends, f)
		}
	}
	return c.withDefaults()
}

func drawID(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"o", "u"}).Draw(t, label+" kind") + fmt.Sprint(rapid.IntRange(0, 11).Draw(t, label))
}

func drawWindow(t *rapid.T, c Config, n int) oracleInput {
	in := oracleInput{end: hour(n + 1), mode: control.Act, rollback: noTime}
	sites := []string{"", "mars"}
	for _, s := range c.Sites {
		sites = append(sites, s.Name, s.Name, s.Name)
	}
	for range rapid.IntRange(0, 25).Draw(t, "rows") {
		in.traffic = append(in.traffic, trafficRow{
			drawID(t, "owner"), rapid.SampledFrom(sites).Draw(t, "site"), rapid.Int64Range(0, 5).Draw(t, "requests"),
			rapid.Int64Range(0, 60).Draw(t, "bytes"), rapid.Int64Range(0, 20).Draw(t, "written"),
		})
	}
	for range rapid.IntRange(0, 20).Draw(t, "asks") {
		in.asks = append(in.asks, askRow{drawID(t, "user"), drawID(t, "asked"), rapid.Int64Range(1, 9).Draw(t, "n")})
	}
	for range rapid.IntRange(0, 10).Draw(t, "places") {
		lat, lon := drawPlace(t, "place")
		in.places = append(in.places, seenRow{drawID(t, "located"), hour(n) + rapid.Int64Range(0, 3).Draw(t, "at"), lat, lon, 1})
	}
	switch rapid.IntRange(0, 15).Draw(t, "operator") {
	case 0:
		in.frozen = true
	case 1:
		in.mode = control.Advise
	case 2:
		in.mode = control.Observe
	case 3:
		in.incomplete = true
	case 4, 5:
		in.evacuate = []string{rapid.SampledFrom(sites[1:]).Draw(t, "evacuate")}
	case 6:
		in.rollback, in.frozen = hour(rapid.IntRange(0, n).Draw(t, "back to")+1), true
	}
	return in
}

// tables are the merged tables of a window: rows in the given order, cut into
// panes at random.
func (in *oracleInput) tables(r *rand.Rand) map[string]*window.Table {
	start := in.end - time.Hour.Microseconds()
	var rows []func(map[string][]*window.Table, int)
	add := func(rollup *window.Rollup, keys []string, values []int64) {
		rows = append(rows, func(panes map[string][]*window.Table, pane int) {
			panes[rollup.Name][pane].Append(start, keys, values)
		})
	}
	for _, w := range in.traffic {
		add(window.Traffic, []string{w.owner, w.site}, []int64{w.requests, w.requests, 0, w.bytes, w.written})
	}
	for _, w := range in.asks {
		add(window.Interactions, []string{w.user, w.owner}, []int64{w.requests})
	}
	for _, w := range in.places {
		add(window.Places, []string{w.user}, placeRow(w.at, w.lat, w.lon, w.n))
	}
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	panes := map[string][]*window.Table{}
	n := 1 + r.IntN(4)
	for _, rollup := range window.Of(window.Owners) {
		for range n {
			panes[rollup.Name] = append(panes[rollup.Name], window.NewTable(rollup))
		}
	}
	for _, add := range rows {
		add(panes, r.IntN(n))
	}
	out := map[string]*window.Table{}
	for name, list := range panes {
		if t := window.Merge(window.Named(name), list...); t.Len() > 0 {
			out[name] = t
		}
	}
	return out
}

func (in *oracleInput) input(r *rand.Rand) decider.Input {
	out := decider.Input{
		Window:   control.Window{Start: time.UnixMicro(in.end).Add(-time.Hour).UTC(), End: time.UnixMicro(in.end).UTC()},
		Tables:   in.tables(r),
		Operator: control.Operator{Mode: in.mode, Frozen: in.frozen, Evacuate: in.evacuate},
	}
	if in.incomplete {
		out.Incomplete = []window.Interval{{From: in.end - 2, To: in.end - 1}}
	}
	if in.rollback != noTime {
		at := time.UnixMicro(in.rollback).UTC()
		out.Operator.Rollback = &at
	}
	return out
}

// outcome is what became of a move.
type outcome struct {
	move   control.Move
	status control.Status
}

func drawOutcomes(t *rapid.T, under []control.Move) []outcome {
	var out []outcome
	for _, m := range under {
		switch rapid.IntRange(0, 9).Draw(t, "outcome") {
		case 0:
			out = append(out, outcome{m, control.Failed})
		case 1:
			out = append(out, outcome{m, control.Refused})
		case 2:
			out = append(out, outcome{m, control.Expired})
		case 3, 4: // none yet
		default:
			out = append(out, outcome{m, control.Done})
		}
	}
	return out
}

func apply(p *Policy, outcomes []outcome) {
	for _, o := range outcomes {
		p.Apply(&control.Outcome{Version: 1, Kind: control.Placement, Owner: o.move.Owner, Move: o.move.Version, Status: o.status})
	}
}

func newPolicy(t *rapid.T, c Config, workers int) *Policy {
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	p.SetWorkers(workers)
	return p
}

// TestAgainstTheOracle runs random windows, operators and outcomes through the
// policy and through the oracle.
func TestAgainstTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		p, o := newPolicy(t, c, rapid.IntRange(1, 4).Draw(t, "workers")), newOracle(c)
		r := rand.New(rand.NewPCG(1, 2))
		for n := 1; n <= rapid.IntRange(1, 7).Draw(t, "windows"); n++ {
			in := drawWindow(t, c, n)
			got, want := p.Decide(in.input(r)), o.decide(in)
			compare(t, p, o, got, want)
			var under []control.Move
			for _, owner := range sortedKeys(o.pending) {
				under = append(under, o.pending[owner])
			}
			outcomes := drawOutcomes(t, under)
			apply(p, outcomes)
			for _, x := range outcomes {
				o.apply(x.move.Owner, x.move.Version, x.status)
			}
		}
	})
}

func compare(t *rapid.T, p *Policy, o *oracle, got decider.Output, want result) {
	var moves []control.Move
	for _, c := range got.Commands {
		for _, m := range c.Placement.Moves {
			if m.To != c.Scope {
				t.Fatalf("a move to %s in a command of %s", m.To, c.Scope)
			}
			moves = append(moves, m)
		}
	}
	if got.Case != want.kind || !slices.Equal(moves, want.moves) {
		t.Fatalf("got case %q, moves %v\n%s\nwant case %q, moves %v", got.Case, moves, printed(got), want.kind, want.moves)
	}
	why, overs, remains := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, r := range got.Reasons {
		for c := range codes {
			if stays[c] && r.Code == c.String() && r.Scope == "" {
				why[r.Code] += r.Count
			}
		}
		switch r.Code {
		case "OverCapacity":
			overs[r.Scope] = r.Count
		case "Evacuating":
			if n := r.Evidence["remaining"].(int64); n > 0 {
				remains[r.Scope] = n
			}
		}
	}
	if fmt.Sprint(why, overs, remains) != fmt.Sprint(want.why, want.overs, want.remains) {
		t.Fatalf("reasons: got %v %v %v\n%s\nwant %v %v %v", why, overs, remains, printed(got), want.why, want.overs, want.remains)
	}
	for _, owner := range sortedKeys(o.owners) {
		v, ok := p.Explain(owner)
		if !ok {
			t.Fatalf("%s is not known", owner)
		}
		e := v.(Explanation)
		if e.Site != o.site[owner] || e.Version != o.version[owner] || e.Stored != o.stored[owner] || e.MovingTo != o.pending[owner].To {
			t.Fatalf("%s: explained %+v; want site %s, version %d, stored %d, moving to %q", owner, e, o.site[owner], o.version[owner], o.stored[owner], o.pending[owner].To)
		}
		for i, w := range o.weights(owner) {
			s := e.Sites[i]
			if s.Weight != w.e/1e9 || s.NSW != w.s/1e9 || s.NDW != w.d/1e9 || s.Allowed != w.allowed {
				t.Fatalf("%s at %s: explained %+v, want %+v", owner, w.site, s, w)
			}
			if s.Observed != o.observed[w.site] || o.planned && s.Expected != o.expected[w.site] {
				t.Fatalf("%s: observed %d, expected %d; want %d, %d", w.site, s.Observed, s.Expected, o.observed[w.site], o.expected[w.site])
			}
		}
	}
}

// TestNothingElseDecides runs equal windows through policies that differ in
// workers, in the order and the cuts of rows, and in restarts at any point.
func TestNothingElseDecides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		if rapid.Bool().Draw(t, "optimal") {
			c = drawOptimal(t)
		}
		one, other := newPolicy(t, c, 1), newPolicy(t, c, rapid.IntRange(2, 7).Draw(t, "workers"))
		r, q := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		restart := func() {
			if rapid.Bool().Draw(t, "restart") {
				other = restarted(t, other)
			}
			if a, b := one.Digest(), other.Digest(); a != b {
				t.Fatalf("digests %s and %s", a, b)
			}
		}
		var under []control.Move
		for n := 1; n <= rapid.IntRange(1, 6).Draw(t, "windows"); n++ {
			in := drawWindow(t, c, n)
			a, b := one.Decide(in.input(r)), other.Decide(in.input(q))
			if x, y := printed(a), printed(b); x != y {
				t.Fatalf("one decides\n%s\nthe other\n%s", x, y)
			}
			restart()
			for _, command := range a.Commands {
				under = append(under, command.Placement.Moves...)
			}
			outcomes := drawOutcomes(t, under)
			apply(one, outcomes)
			apply(other, outcomes)
			restart()
		}
		if x, y := snapshot(t, one), snapshot(t, other); !bytes.Equal(x, y) {
			t.Fatal("equal states have unequal snapshots")
		}
	})
}

func snapshot(t rapid.TB, p *Policy) []byte {
	var b bytes.Buffer
	if err := p.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func restarted(t *rapid.T, p *Policy) *Policy {
	again, err := Parse(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	again.SetWorkers(p.workers)
	if err := again.Restore(bytes.NewReader(snapshot(t, p))); err != nil {
		t.Fatal(err)
	}
	for _, id := range p.state.names.sorted {
		owner := string([]byte(p.state.names.at(id)))
		a, _ := p.Explain(owner)
		b, _ := again.Explain(owner)
		x, _ := control.Encode(a)
		y, _ := control.Encode(b)
		if !bytes.Equal(x, y) {
			t.Fatalf("explained before\n%s\nafter\n%s", x, y)
		}
	}
	return again
}
