package directory

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// owners are drawn from few, so that they are changed and removed, of all lengths.
func ownerIDs() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("o", rapid.IntRange(0, 200).Draw(t, "n")) }),
		rapid.SampledFrom([]string{"", "\x00", "a@b.c", strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("é", 512)}),
	)
}

func places() *rapid.Generator[place] {
	return rapid.Custom(func(t *rapid.T) place {
		return place{
			site:    rapid.Uint32Range(0, 300).Draw(t, "site"),
			version: rapid.OneOf(rapid.Uint64Range(0, 9), rapid.Uint64()).Draw(t, "version"),
			state:   uint8(rapid.IntRange(0, len(states)-1).Draw(t, "state")),
			pinned:  rapid.Bool().Draw(t, "pinned"),
			since:   time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "sec"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
		}
	})
}

// TestTableIsAMap: whatever is put, removed, marked and swept, the table holds
// what a map holds, its account of memory and owners is right, and it gives
// memory back.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := newTable(uint8(rapid.IntRange(0, 3).Draw(t, "bits")))
		oracle, marked := map[string]place{}, map[string]bool{}
		marking := false
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				o, p := ownerIDs().Draw(t, "owner"), places().Draw(t, "place")
				old, had := oracle[o]
				added, changed, fits := table.put(o, p)
				if added == had || changed != (!had || old != p) || !fits {
					t.Fatalf("%q: added %v, changed %v, fits %v; had %v %v", o, added, changed, fits, had, old)
				}
				oracle[o], marked[o] = p, true
			},
			"again": func(t *rapid.T) {
				o := ownerIDs().Draw(t, "owner")
				if p, had := oracle[o]; had {
					if added, changed, _ := table.put(o, p); added || changed {
						t.Fatalf("%q changed", o)
					}
					marked[o] = true
				} else if table.touch(o) {
					t.Fatalf("%q is there", o)
				}
			},
			"remove": func(t *rapid.T) {
				o := ownerIDs().Draw(t, "owner")
				if _, had := oracle[o]; table.remove(o) != had {
					t.Fatalf("%q: had %v", o, had)
				}
				delete(oracle, o)
			},
			"mark": func(*rapid.T) {
				table.beginMarking()
				marking, marked = true, map[string]bool{}
			},
			"sweep": func(t *rapid.T) {
				if !marking {
					return
				}
				want := 0
				for o := range oracle {
					if !marked[o] {
						delete(oracle, o)
						want++
					}
				}
				if got := table.sweep(); got != want {
					t.Fatalf("swept %d, expected %d", got, want)
				}
				marking = false
			},
			"": func(t *rapid.T) { same(t, table, oracle) },
		})
	})
}

// same compares the table with a map, by lookups and by going through it.
func same(t *rapid.T, table *table, oracle map[string]place) {
	for o, want := range oracle {
		b := table.find(o)
		if b == nil {
			t.Fatalf("%q is missing", o)
		}
		got, n := placeOf(b)
		site, version := whereOf(b)
		if got != want || site != want.site || version != want.version || n == 0 {
			t.Fatalf("%q: %+v, expected %+v", o, got, want)
		}
	}
	if b := table.find("nobody"); b != nil {
		t.Fatalf("nobody is there: %x", b)
	}
	n, size, bytes := 0, 0, 0
	table.each(func(rec []byte) bool {
		owner, p, whole := checkRecord(rec)
		if want, there := oracle[string(owner)]; !whole || !there || want != p {
			t.Fatalf("%x: %q %+v", rec, owner, p)
		}
		n++
		size += len(rec)
		return true
	})
	for i := range table.shards {
		sh := &table.shards[i]
		s := sh.now.Load()
		bytes += s.size()
		if live := sh.liveBytes(); int(sh.garbage) > live+1024+maxRecord && sh.end > page {
			t.Fatalf("%d bytes of garbage, %d are live", sh.garbage, live)
		}
	}
	if n != len(oracle) || int(table.owners.Load()) != n || int(table.bytes.Load()) != bytes {
		t.Fatalf("%d owners, counted %d, expected %d; %d bytes, counted %d", n, table.owners.Load(), len(oracle), bytes, table.bytes.Load())
	}
}

// TestTableIsAMapForLong is the same over many more changes, in phases that grow,
// change, and shrink, while others look up.
func TestTableIsAMapForLong(t *testing.T) {
	rounds, each := 3, 10_000
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		rounds = 100
	}
	table := newTable(3)
	oracle := map[string]place{}
	var done atomic.Bool
	var readers sync.WaitGroup
	readers.Go(func() {
		rnd := rand.New(rand.NewPCG(2, 2))
		for !done.Load() {
			o := longID(rnd)
			if b := table.find(o); b != nil {
				if p, _ := placeOf(b); p.since.Unix() != int64(len(o)) || uint64(p.site) != p.version%1000 {
					t.Errorf("%.20q: %+v", o, p)
					return
				}
			}
		}
	})
	rnd := rand.New(rand.NewPCG(3, 3))
	for round := range rounds {
		removals := []int{1, 5, 9}[round%3] // of ten
		for range each {
			o := longID(rnd)
			if rnd.IntN(10) < removals {
				if _, had := oracle[o]; table.remove(o) != had {
					t.Fatalf("%.20q: had %v", o, had)
				}
				delete(oracle, o)
				continue
			}
			v := rnd.Uint64() >> rnd.IntN(64)
			p := place{site: uint32(v % 1000), version: v, since: time.Unix(int64(len(o)), 0).UTC()}
			table.put(o, p)
			oracle[o] = p
		}
		if n := int(table.owners.Load()); n != len(oracle) {
			t.Fatalf("%d owners, expected %d", n, len(oracle))
		}
		for o, want := range oracle {
			if b := table.find(o); b == nil {
				t.Fatalf("%.20q is missing", o)
			} else if got, _ := placeOf(b); got != want {
				t.Fatalf("%.20q: %+v, expected %+v", o, got, want)
			}
		}
	}
	done.Store(true)
	readers.Wait()
}

// longID is one of 5,000 ids of 6 to 105 bytes.
func longID(rnd *rand.Rand) string {
	n := rnd.IntN(5000)
	return fmt.Sprintf("o%05d%s", n, strings.Repeat("-", n%100))
}

// TestReadersSeeWholeRecords: while a writer changes, removes, grows and shrinks,
// a reader sees for each owner a place that was put for it, and never one older
// than one that it saw before; owners that are only changed are always there.
func TestReadersSeeWholeRecords(t *testing.T) {
	const fixed, coming, rounds = 50, 2000, 6
	table := newTable(2)
	site := func(i int) uint32 { return uint32(i % 7) }
	var ids [fixed + coming]string
	for i := range ids {
		ids[i] = fmt.Sprint("owner-", i)
	}
	put := func(i int, version uint64) {
		table.put(ids[i], place{site: site(i) + uint32(version%2)*7, version: version, since: time.Unix(int64(version), 0)})
	}
	var lowest [fixed]atomic.Uint64
	for i := range fixed {
		put(i, 1)
		lowest[i].Store(1)
	}
	var done atomic.Bool
	var readers sync.WaitGroup
	for r := range 2 {
		readers.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(r)))
			for !done.Load() {
				i := rnd.IntN(fixed + coming)
				least := uint64(0)
				if i < fixed {
					least = lowest[i].Load()
				}
				b := table.find(ids[i])
				if b == nil {
					if i < fixed {
						t.Errorf("owner %d is missing", i)
						return
					}
					continue
				}
				p, _ := placeOf(b)
				if p.version < least || p.site != site(i)+uint32(p.version%2)*7 || p.since.Unix() != int64(p.version) {
					t.Errorf("owner %d: %+v, at least version %d", i, p, least)
					return
				}
			}
		})
	}
	version := uint64(1)
	for range rounds {
		for i := range fixed {
			version++
			put(i, version)
			lowest[i].Store(version)
		}
		for i := fixed; i < fixed+coming; i++ {
			put(i, version)
		}
		for i := fixed; i < fixed+coming; i++ {
			table.remove(ids[i])
		}
	}
	done.Store(true)
	readers.Wait()
	if n := table.owners.Load(); n != fixed {
		t.Errorf("%d owners", n)
	}
	if b := table.bytes.Load(); b > 20<<10 {
		t.Errorf("%d owners take %d bytes after the others are gone", fixed, b)
	}
}

// TestAFullShardTakesNoMore: what has no room is refused, and what is there stays.
func TestAFullShardTakesNoMore(t *testing.T) {
	table := newTable(0)
	long := strings.Repeat("x", maxOwner-8)
	n := 0
	for ; ; n++ {
		if _, _, fits := table.put(fmt.Sprintf("%s%08d", long, n), place{}); !fits {
			break
		}
	}
	if n < maxArena/maxRecord || n > maxArena/maxOwner {
		t.Errorf("full at %d", n)
	}
	for i := range n {
		if table.find(fmt.Sprintf("%s%08d", long, i)) == nil {
			t.Fatalf("owner %d is missing", i)
		}
	}
	table.remove(fmt.Sprintf("%s%08d", long, 3))
	if _, _, fits := table.put("short", place{}); !fits {
		t.Error("there is no room although one is gone")
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	d := &Directory{table: newTable(4), hints: newTable(2), names: newNames([]string{"a", "b"})}
	d.table.put("owner", place{site: 1, version: 7})
	d.hints.put("hinted", place{site: 0, version: 2})
	if n := testing.AllocsPerRun(100, func() {
		for _, o := range []string{"owner", "hinted", "nobody"} {
			d.Locate(o)
			d.Get(o)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s, v, known := d.Locate("owner"); s != "b" || v != 7 || !known {
		t.Error(s, v, known)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(appendRecord(nil, "a@b.c", place{site: 3, version: 1 << 63, state: 1, pinned: true, since: time.Unix(1e9, 5)}))
	f.Add([]byte{1, 'a', 8, 0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		owner, p, whole := checkRecord(b)
		if !whole {
			return
		}
		if n := recordLen(b); n != len(b) {
			t.Errorf("%x: %d of %d bytes", b, n, len(b))
		}
		o, at := ownerOf(b)
		if site, version := whereOf(b[at:]); string(o) != string(owner) || site != p.site || version != p.version {
			t.Errorf("%x: %q %d %d, expected %q %+v", b, o, site, version, owner, p)
		}
	})
}
