package baselines

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/schemas/sphere"
)

// world is a random history for all strategies.
type world struct {
	sites   []Site
	windows [][]Access // places are indices of degrees
	degrees [][2]float32
	home    []int // of users
}

func drawWorld(t *rapid.T, moving bool) world {
	w := world{sites: []Site{{Lat: 40, Lon: -75}, {Lat: 30, Lon: -98}, {Lat: 37, Lon: -122}}}
	for i := range w.sites {
		w.sites[i].Capacity = rapid.Int64Range(0, 40).Draw(t, "capacity") * 100
	}
	for range rapid.IntRange(2, 8).Draw(t, "places") {
		w.degrees = append(w.degrees, [2]float32{float32(rapid.Float64Range(25, 49).Draw(t, "lat")), float32(rapid.Float64Range(-124, -70).Draw(t, "lon"))})
	}
	ids := rapid.IntRange(1, 8).Draw(t, "ids")
	place := func() int { return rapid.IntRange(0, len(w.degrees)-1).Draw(t, "place") }
	for range ids {
		w.home = append(w.home, place())
	}
	id := func(label string) int32 { return int32(rapid.IntRange(-1, ids-1).Draw(t, label)) }
	for range rapid.IntRange(1, 8).Draw(t, "windows") {
		var rows []Access
		for range rapid.IntRange(1, 25).Draw(t, "rows") {
			a := Access{Owner: id("owner"), User: id("user"), Place: None, Requests: 1, Bytes: rapid.Int64Range(0, 300).Draw(t, "bytes")}
			if a.User >= 0 && rapid.IntRange(0, 9).Draw(t, "located") > 0 {
				a.Place = int32(w.home[a.User])
			}
			if rapid.Bool().Draw(t, "write") {
				a.Written = a.Bytes
			}
			rows = append(rows, a)
		}
		w.windows = append(w.windows, rows)
		if moving {
			w.home[rapid.IntRange(0, ids-1).Draw(t, "who")] = place()
		}
	}
	return w
}

func (w *world) feed(b *Box, rows []Access) (at [][]int16) {
	for _, a := range rows {
		if a.Place >= 0 {
			a.Place = b.Places().Find(w.degrees[a.Place][0], w.degrees[a.Place][1])
		}
		served := make([]int16, len(b.strategies))
		b.Access(&a, served)
		at = append(at, served)
	}
	return at
}

// stand puts every owner's data somewhere.
func (w *world) stand(boxes ...*Box) {
	for id, p := range w.home {
		for _, b := range boxes {
			b.Stand(int32(id), int16(p%len(w.sites)), int64(10*id))
		}
	}
}

// windowEnd of the i-th window, in µs.
func windowEnd(i int) int64 { return int64(i+1) * time.Hour.Microseconds() }

func clone(moved [][]Moved) [][]Moved {
	var out [][]Moved
	for _, m := range moved {
		out = append(out, slices.Clone(m))
	}
	return out
}

// A window's table, whose rows stand for many requests, gives what the requests
// themselves give, once every owner has a home.
func TestTablesOfWindowsGiveWhatRowsGive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, true)
		rows, tables := New(w.sites, Options{}), New(w.sites, Options{})
		w.stand(rows, tables)
		for i, window := range w.windows {
			w.feed(rows, window)
			w.feed(tables, together(window))
			a, b := clone(rows.Close(windowEnd(i))), clone(tables.Close(windowEnd(i)))
			for s := range a {
				if !slices.Equal(a[s], b[s]) {
					t.Fatalf("window %d, %s: rows move %v, the table %v", i, rows.strategies[s].Name(), a[s], b[s])
				}
			}
		}
	})
}

// together merges rows that differ in nothing but bytes, in order of the first.
func together(rows []Access) []Access {
	type key struct{ owner, user, place int32 }
	index := map[key]int{}
	var out []Access
	for _, a := range rows {
		k := key{a.Owner, a.User, a.Place}
		i, ok := index[k]
		if !ok {
			index[k], i = len(out), len(out)
			out = append(out, Access{Owner: a.Owner, User: a.User, Place: a.Place})
		}
		out[i].Requests++
		out[i].Bytes += a.Bytes
		out[i].Written += a.Written
	}
	return out
}

// What strategies do follows from the accesses of a window, not from their order,
// once every owner has a home.
func TestTheOrderWithinAWindowDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, false)
		a, b := New(w.sites, Options{}), New(w.sites, Options{})
		w.stand(a, b)
		for i, window := range w.windows {
			w.feed(a, window)
			w.feed(b, rapid.Permutation(window).Draw(t, "order"))
			x, y := clone(a.Close(windowEnd(i))), clone(b.Close(windowEnd(i)))
			for s := range x {
				if !slices.Equal(x[s], y[s]) {
					t.Fatalf("window %d, %s: %v, in another order %v", i, a.strategies[s].Name(), x[s], y[s])
				}
			}
		}
	})
}

// An owner is never moved twice within the cooldown, whatever is asked.
func TestAkkioNeverMovesInsideTheCooldown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, true)
		cooldown := time.Duration(rapid.IntRange(1, 5).Draw(t, "cooldown")) * time.Hour
		b := New(w.sites, Options{Akkio: AkkioOptions{Least: 1, Share: 0.1, Lead: 0.01, Cooldown: cooldown}})
		last := map[int32]int64{}
		for i, window := range w.windows {
			w.feed(b, window)
			for _, m := range b.Close(windowEnd(i))[3] {
				if at, ok := last[m.Owner]; ok && windowEnd(i)-at < cooldown.Microseconds() {
					t.Fatalf("owner %d moved after %v, the cooldown is %v", m.Owner, time.Duration(windowEnd(i)-at)*time.Microsecond, cooldown)
				}
				last[m.Owner] = windowEnd(i)
			}
		}
	})
}

// After volley a site over capacity holds only what has been everywhere, or what
// brings no traffic, and everybody is where its rank says.
func TestVolleyLeavesNothingOverThatCouldGoOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, true)
		b := New(w.sites, Options{})
		v := b.strategies[2].(*Volley)
		for i, window := range w.windows {
			w.feed(b, window)
			b.ledger.order()
			v.Close(windowEnd(i))
			loads := make([]int64, len(w.sites))
			for _, p := range v.points[:v.fixed] {
				loads[p.site] += b.ledger.nodes[p.owner].bytes
				if v.stands[p.owner] != p.site || ranked(b.ledger.at, p.x, p.rank) != p.site {
					t.Fatalf("owner %d stands at %d, its rank %d is %d", p.owner, v.stands[p.owner], p.rank, ranked(b.ledger.at, p.x, p.rank))
				}
			}
			for site, load := range loads {
				if c := w.sites[site].Capacity; c > 0 && load > c && len(v.leastAsked(int16(site))) > 0 {
					t.Fatalf("site %d has %d of %d and keeps owners that could go on", site, load, c)
				}
			}
			b.ledger.turn()
		}
	})
}

func TestPlacesAndLinksAreWhatMapsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPlaces([]Site{{}, {Lat: 50}})
		numbers := map[[2]float32]int32{}
		var l links
		pairs := map[uint64]int64{}
		for range rapid.IntRange(1, 3000).Draw(t, "times") {
			at := [2]float32{float32(rapid.IntRange(-60, 60).Draw(t, "lat")), float32(rapid.IntRange(-9, 9).Draw(t, "lon"))}
			got := p.Find(at[0], at[1])
			if want, ok := numbers[at]; ok && got != want || !ok && int(got) != len(numbers) {
				t.Fatalf("%v is number %d", at, got)
			}
			numbers[at] = got
			a, b := int32(rapid.IntRange(0, 60).Draw(t, "a")), int32(rapid.IntRange(61, 99).Draw(t, "b"))
			l.add(a, b, 2)
			l.add(b, a, 1)
			pairs[uint64(a)<<32|uint64(b)] += 3
		}
		if p.Len() != len(numbers) || l.used != len(pairs) {
			t.Fatalf("%d places, expected %d; %d links, expected %d", p.Len(), len(numbers), l.used, len(pairs))
		}
		for _, s := range l.table {
			if s.requests != 0 && pairs[s.key] != s.requests {
				t.Fatalf("link %x has %d, expected %d", s.key, s.requests, pairs[s.key])
			}
		}
		p.Reset()
		l.reset()
		if p.Find(1, 2) != 0 || l.used != 0 || slices.ContainsFunc(l.table, func(x link) bool { return x.requests != 0 }) {
			t.Fatal("something is left after a reset")
		}
	})
}

func TestRankedIsTheOrderByDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sites []sphere.Vector
		for range rapid.IntRange(1, 5).Draw(t, "sites") {
			lat, lon := degrees(t, "site")
			sites = append(sites, sphere.FromDegrees(float64(lat), float64(lon)))
		}
		lat, lon := degrees(t, "at")
		x := sphere.FromDegrees(float64(lat), float64(lon))
		var got []int16
		for r := range sites {
			got = append(got, ranked(sites, x, int16(r)))
		}
		if got[0] != nearest(sites, x) || !slices.IsSortedFunc(got, func(a, b int16) int {
			return cmp.Compare(sphere.Distance(x, sites[a]), sphere.Distance(x, sites[b]))
		}) {
			t.Fatalf("ranks %v", got)
		}
	})
}

func TestAccessesDoNotAllocate(t *testing.T) {
	b := New([]Site{{Lat: 40, Lon: -75}, {Lat: 37, Lon: -122}}, Options{})
	at := make([]int16, 4)
	a := Access{Owner: 3, User: 5, Place: b.Places().Find(47, -122), Requests: 1, Bytes: 10, Written: 10}
	b.Access(&a, at)
	if n := testing.AllocsPerRun(1000, func() { b.Access(&a, at) }); n > 0 {
		t.Errorf("%.1f allocations an access", n)
	}
}

// BenchmarkBox is a window of 100,000 accesses to 10,000 owners, and its end.
func BenchmarkBox(b *testing.B) {
	box := New([]Site{{Lat: 40, Lon: -75, Capacity: 1e9}, {Lat: 30, Lon: -98, Capacity: 1e9}, {Lat: 37, Lon: -122, Capacity: 1e9}}, Options{})
	at := make([]int16, 4)
	rows := make([]Access, 100_000)
	for i := range rows {
		h := uint32(i) * 2654435761
		rows[i] = Access{
			Owner: int32(h % 10_000), User: int32((h / 7) % 10_000), Requests: 1, Bytes: 1000,
			Place: box.Places().Find(float32(25+h%24), -float32(70+(h>>8)%54)),
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		for r := range rows {
			box.Access(&rows[r], at)
		}
		box.Close(windowEnd(i))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/access")
}
