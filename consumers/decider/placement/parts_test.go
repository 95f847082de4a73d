package placement

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/sphere"
)

func TestNamesAreNumberedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, want := newNames(), map[string]int32{}
		for range rapid.IntRange(1, 6).Draw(t, "dictionaries") {
			values := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]{1,3}|é.{0,2}`), 0, 40, rapid.ID[string]).Draw(t, "values")
			if rapid.Bool().Draw(t, "sorted") {
				slices.Sort(values)
			}
			ids := n.intern(values, rapid.IntRange(1, 5).Draw(t, "workers"))
			for i, v := range values {
				if id, ok := want[v]; ok && id != ids[i] {
					t.Fatalf("%q was %d and is %d", v, id, ids[i])
				}
				want[v] = ids[i]
			}
		}
		if n.len() != len(want) || len(n.sorted) != len(want) {
			t.Fatalf("%d names, %d sorted, want %d", n.len(), len(n.sorted), len(want))
		}
		for v, id := range want {
			if n.at(id) != v || n.find(v) != id || n.sorted[n.rank[id]] != id {
				t.Fatalf("%q has id %d, found %d, named %q", v, id, n.find(v), n.at(id))
			}
		}
		if !slices.IsSortedFunc(n.sorted, func(a, b int32) int {
			if n.at(a) < n.at(b) {
				return -1
			}
			return 1
		}) || n.find("nobody") != -1 {
			t.Fatal("names are not in order, or one is found that isn't there")
		}
	})
}

func TestAQueueSortsAsFarAsItIsAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.Int64Range(0, rapid.SampledFrom([]int64{0, 3, 1000, math.MaxInt64}).Draw(t, "most")), 0, 400).Draw(t, "keys")
		var q queue
		for i, k := range keys {
			q.entries = append(q.entries, entry{k, int32(i), int32(i)})
		}
		want := slices.Clone(q.entries)
		slices.SortFunc(want, func(a, b entry) int {
			if before(a, b) {
				return -1
			}
			return 1
		})
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		r.Shuffle(len(q.entries), func(i, j int) { q.entries[i], q.entries[j] = q.entries[j], q.entries[i] })
		for i := range want {
			if e, ok := q.next(); !ok || e != want[i] {
				t.Fatalf("entry %d is %v (%v), want %v", i, e, ok, want[i])
			}
			if !ok(q.entries[i+1:], want[i]) {
				t.Fatalf("after %d entries the rest does not come after %v", i+1, want[i])
			}
		}
		if _, ok := q.next(); ok {
			t.Fatal("an entry after the last")
		}
	})
}

func ok(rest []entry, last entry) bool {
	return !slices.ContainsFunc(rest, func(e entry) bool { return !before(last, e) })
}

func TestRoughDistancesAreWithinTheirBound(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	point := func() sphere.Vector { return sphere.FromDegrees(r.Float64()*180-90, r.Float64()*360-180) }
	check := func(a, b sphere.Vector) {
		t.Helper()
		exact := sphere.Distance(a, b)
		got := float64(kept(a, b)) * step
		if math.Abs(got-exact) > roughError || kept(a, b) >= farAway {
			t.Fatalf("%v to %v: kept %v km, exact %v", a, b, got, exact)
		}
	}
	for range 20_000 {
		a, b := point(), point()
		check(a, b)
		// Near each other and near the antipode, where the arc is steep.
		near := sphere.Vector{X: a.X + (b.X-a.X)*1e-4, Y: a.Y + (b.Y-a.Y)*1e-4, Z: a.Z + (b.Z-a.Z)*1e-4}
		n := math.Sqrt(near.X*near.X + near.Y*near.Y + near.Z*near.Z)
		near = sphere.Vector{X: near.X / n, Y: near.Y / n, Z: near.Z / n}
		check(a, near)
		check(a, sphere.Vector{X: -near.X, Y: -near.Y, Z: -near.Z})
		check(a, a)
		check(a, sphere.Vector{X: -a.X, Y: -a.Y, Z: -a.Z})
	}
}

// TestTheRoughMatchIsTheExactOne compares the L-matches that decisions use with
// those of exact weights, with sites near each other so that many are close.
func TestTheRoughMatchIsTheExactOne(t *testing.T) {
	for _, tolerance := range []float64{0, 1e-9, 1e-4, 0.1} {
		for _, place := range []string{Latest, Mean} {
			t.Run(fmt.Sprint(place, tolerance), func(t *testing.T) {
				r := rand.New(rand.NewPCG(7, 8))
				c := benchConfig(1000, r)
				c.TieTolerance, c.Place = tolerance, place
				for i := range 6 { // pairs of sites some km from each other, and at one spot
					c.Sites[2*i+1].Lat, c.Sites[2*i+1].Lon = c.Sites[2*i].Lat+0.05*float64(i), c.Sites[2*i].Lon
				}
				p, err := New(c)
				if err != nil {
					t.Fatal(err)
				}
				in := benchWindow(1000, 1, r)
				for i := range in.Tables["interactions"].Ints[0] { // also levels that don't fit into lanes
					in.Tables["interactions"].Ints[0][i] <<= max(0, r.IntN(24)-8)
				}
				p.learn(in.Tables)
				m, w := p.newMatcher(), newWeights(len(c.Sites))
				roughly := 0
				for id := range int32(p.state.names.len()) {
					m.allowed = p.candidates(id, m.allowed[:0])
					exactly := m.exactly
					best, tie := p.match(id, int(id)%len(c.Sites), m)
					if m.exactly == exactly {
						roughly++
					}
					p.weigh(id, w)
					left := p.nearest(p.candidates(id, nil), w)
					if best != left[0] || tie != slices.Contains(left, int(id)%len(c.Sites)) {
						t.Fatalf("owner %d: got %d (%v), exact %v", id, best, tie, left)
					}
				}
				if roughly < p.state.names.len()/4 {
					t.Errorf("only %d of %d L-matches were told by kept distances", roughly, p.state.names.len())
				}
			})
		}
	}
}

// TestSocialLevelsAddUp compares edges with a map over several windows, with
// rows in any order, repeated ones, and numbers beyond 32 bits.
func TestSocialLevelsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ids = 9
		rank := make([]int32, ids)
		for i, r := range rapid.Permutation([]int32{0, 1, 2, 3, 4, 5, 6, 7, 8}).Draw(t, "rank") {
			rank[i] = r
		}
		workers := rapid.IntRange(1, 4).Draw(t, "workers")
		var e edges
		e.grow(ids)
		want := map[[2]int32]int64{}
		for range rapid.IntRange(1, 5).Draw(t, "windows") {
			r := rows{of: []int32{0, 1, 2, 3, 4, 5, 6, 7, 8}, by: []int32{8, 7, 6, 5, 4, 3, 2, 1, 0}, owners: ids, workers: workers}
			added := map[[2]int32]int64{}
			for range rapid.IntRange(0, 30).Draw(t, "rows") {
				o, u := rapid.Int32Range(-1, ids-1).Draw(t, "owner"), rapid.Int32Range(-1, ids-1).Draw(t, "user")
				n := rapid.SampledFrom([]int64{-1, 0, 1, 2, 5, bigRow - 1, bigRow, bigRow + 1, escaped - 1, escaped, escaped + 1, 1 << 40}).Draw(t, "n")
				r.owner, r.user, r.number = append(r.owner, o), append(r.user, u), append(r.number, n)
				if o >= 0 && u >= 0 && n > 0 && r.of[o] != r.by[u] {
					added[[2]int32{r.of[o], r.by[u]}] += n
				}
			}
			seen := make([]map[[2]int32][2]int64, workers)
			for w := range seen {
				seen[w] = map[[2]int32][2]int64{}
			}
			e.mergeInto(collect(r, rank), merging{
				rank: rank, workers: workers, touch: func(int, []edge, bool, bool) {},
				changed: func(w int, o, u int32, before, after int64) { seen[w][[2]int32{o, u}] = [2]int64{before, after} },
			})
			told := map[[2]int32][2]int64{}
			for _, s := range seen {
				for k, v := range s {
					told[k] = v
				}
			}
			if len(told) != len(added) {
				t.Fatalf("told of %d pairs, want %d", len(told), len(added))
			}
			for k, n := range added {
				if told[k] != [2]int64{want[k], want[k] + n} {
					t.Fatalf("pair %v: told %v, was %d, added %d", k, told[k], want[k], n)
				}
				want[k] += n
			}
		}
		got := 0
		for o := range int32(ids) {
			lo, hi := e.of(o)
			for i := lo; i < hi; i++ {
				if i > lo && rank[e.list[i-1].user] >= rank[e.list[i].user] {
					t.Fatalf("users of %d are not in order", o)
				}
				if v := e.at(o, i); v != want[[2]int32{o, e.list[i].user}] {
					t.Fatalf("pair %d, %d: %d, want %d", o, e.list[i].user, v, want[[2]int32{o, e.list[i].user}])
				}
				got++
			}
		}
		if got != len(want) {
			t.Fatalf("%d pairs, want %d", got, len(want))
		}
	})
}

func TestProportionsDoNotOverflow(t *testing.T) {
	for _, c := range [][4]int64{
		{40, 1, 4, 10},
		{7, 1, 3, 2},
		{7, 9, 3, 7},
		{0, 1, 3, 0},
		{5, 1, 0, 0},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, 1, 2, math.MaxInt64 / 2},
	} {
		if got := proportion(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%d·%d/%d is %d, want %d", c[0], c[1], c[2], got, c[3])
		}
	}
}
