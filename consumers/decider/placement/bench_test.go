package placement

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// benchOwners is how many owners BenchmarkPlacement has: PLACEMENT_OWNERS, by
// default as many as a continuous build has patience for. DESIGN §7 asks for
// 10,000,000 within 10 s and 4 GB on two cores.
func benchOwners(b *testing.B) int {
	text := os.Getenv("PLACEMENT_OWNERS")
	if text == "" {
		return 50_000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("PLACEMENT_OWNERS is %q, expected a number of owners", text)
	}
	return n
}

const (
	benchSites = 20
	benchAsks  = 5 // pairs of user and owner, by user
)

// benchConfig is twenty sites of which some are too small for what comes.
func benchConfig(owners int, r *rand.Rand) Config {
	c := Config{Limits: Limits{Moves: 10_000, Bytes: 10_000_000_000}}
	for i := range benchSites {
		c.Sites = append(c.Sites, Site{
			Name: fmt.Sprintf("site-%02d", i), Lat: r.Float64()*120 - 60, Lon: r.Float64()*360 - 180,
			Capacity: int64(owners) * 1000 / benchSites * int64(1+i%3),
		})
	}
	return c
}

// benchWindow is a window in which every owner has traffic, every user is
// located and asks for the data of benchAsks owners. Tables are sorted as merged
// ones are, and share what they can, so that their own size stays small.
func benchWindow(owners, n int, r *rand.Rand) decider.Input {
	names := make([]string, owners)
	text := make([]byte, 0, 10*owners)
	for i := range names {
		text = fmt.Appendf(text, "u%09d", i)
	}
	all := string(text)
	for i := range names {
		names[i] = all[10*i : 10*i+10]
	}
	start := make([]int64, owners*benchAsks)
	for i := range start {
		start[i] = hour(n)
	}
	each := make([]int32, owners)
	for i := range each {
		each[i] = int32(i)
	}
	traffic := &window.Table{Rollup: window.Traffic, Start: start[:owners], Keys: make([]event.Dict, 2), Hists: make([][]window.Bins, 5)}
	sites, at := make([]string, benchSites), make([]int32, owners)
	for i := range sites {
		sites[i] = fmt.Sprintf("site-%02d", i)
	}
	requests, volume := make([]int64, owners), make([]int64, owners)
	for i := range at {
		at[i], requests[i], volume[i] = int32(r.IntN(benchSites)), 5, 100+int64(r.ExpFloat64()*1000)
	}
	traffic.Keys[0].Set(each, names)
	traffic.Keys[1].Set(at, sites)
	traffic.Ints = [][]int64{requests, requests, requests, volume, requests}

	places := &window.Table{Rollup: window.Places, Start: start[:owners], Keys: make([]event.Dict, 1), Hists: make([][]window.Bins, 7), Ints: make([][]int64, 7)}
	places.Keys[0].Set(each, names)
	for v := range places.Ints {
		places.Ints[v] = make([]int64, owners)
	}
	for i := range owners {
		for v, x := range placeRow(hour(n), r.Float64()*120-60, r.Float64()*360-180, 1) {
			places.Ints[v][i] = x
		}
	}
	asks := &window.Table{Rollup: window.Interactions, Start: start, Keys: make([]event.Dict, 2), Hists: make([][]window.Bins, 1)}
	users, asked, count := make([]int32, 0, len(start)), make([]int32, 0, len(start)), make([]int64, len(start))
	for u := range int32(owners) {
		from := len(asked)
		for range benchAsks {
			users, asked = append(users, u), append(asked, int32(r.IntN(owners-benchAsks)))
		}
		slices.Sort(asked[from:])
		for i := from + 1; i < len(asked); i++ { // a pair comes once in a merged table
			asked[i] = max(asked[i], asked[i-1]+1)
		}
	}
	for i := range count {
		count[i] = 1 + int64(i%7)
	}
	asks.Keys[0].Set(users, names)
	asks.Keys[1].Set(asked, names)
	asks.Ints = [][]int64{count}
	return decider.Input{
		Window:   control.Window{Start: time.UnixMicro(hour(n)).UTC(), End: time.UnixMicro(hour(n + 1)).UTC()},
		Tables:   map[string]*window.Table{"traffic": traffic, "places": places, "interactions": asks},
		Operator: control.Operator{Mode: control.Act},
	}
}

func heapMB() float64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// cpuTime is the processor time of this process: on a machine that others use
// too it says more than the wall clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPlacement decides one window in which everything is new, and one in
// which everything is known, everybody is somewhere else and as many pairs are
// new as there were; then it writes the state and reads it back.
func BenchmarkPlacement(b *testing.B) {
	owners := benchOwners(b)
	r := rand.New(rand.NewPCG(3, 4))
	c := benchConfig(owners, r)
	first := benchWindow(owners, 1, r)
	input := heapMB()
	run := func(b *testing.B, p *Policy, in decider.Input) {
		b.ReportAllocs()
		cpu := cpuTime()
		out := p.Decide(in)
		b.StopTimer()
		b.ReportMetric((cpuTime() - cpu).Seconds(), "cpu-s")
		if out.Case != "overhead-first" && out.Case != "overhead-continuous" {
			b.Fatalf("case %q", out.Case)
		}
		b.ReportMetric(heapMB()-input, "MB-state")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(owners), "ns/owner")
		b.StartTimer()
	}
	var p *Policy
	b.Run(fmt.Sprintf("first/owners=%d", owners), func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			var err error
			if p, err = New(c); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			run(b, p, first)
		}
	})
	first = decider.Input{} // free for the next one
	next := benchWindow(owners, 2, r)
	b.Run(fmt.Sprintf("next/owners=%d", owners), func(b *testing.B) {
		for range b.N {
			run(b, p, next)
		}
	})
	var saved bytes.Buffer
	b.Run(fmt.Sprintf("snapshot/owners=%d", owners), func(b *testing.B) {
		cpu := cpuTime()
		for range b.N {
			saved.Reset()
			if err := p.Snapshot(&saved); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((cpuTime()-cpu).Seconds()/float64(b.N), "cpu-s")
		b.ReportMetric(float64(saved.Len())/1e6, "MB")
	})
	b.Run(fmt.Sprintf("restore/owners=%d", owners), func(b *testing.B) {
		cpu := cpuTime()
		for range b.N {
			if err := p.Restore(bytes.NewReader(saved.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((cpuTime()-cpu).Seconds()/float64(b.N), "cpu-s")
	})
}
