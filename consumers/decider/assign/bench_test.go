package assign

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// hard is an instance of any size that needs no memory but its loads: costs like
// weights of distance between 0 and 1e9, a fee for leaving the site where an item
// is, loads from a distribution with a heavy tail, total load at 90 % of all
// room, and five sites of which the least costs ask more than they have.
func hard(items, sites, workers int) *Problem {
	p := &Problem{Sites: sites, Load: make([]int64, items), Room: make([]int64, sites), Workers: workers}
	var total int64
	for i := range p.Load {
		p.Load[i] = 1000 + int64(1000/math.Pow(1-chance(uint64(i)<<1|1), 0.7))
		total += p.Load[i]
	}
	p.Overload = 100e9 * float64(items) / float64(total)
	p.Rows = func(_, lo, hi int, out []int64) {
		for i := lo; i < hi; i++ {
			h := hash(uint64(i) * 31)
			row := out[(i-lo)*sites : (i-lo+1)*sites]
			x, y := float64(h&0xffff)/0x10000, float64(h>>16&0xffff)/0x10000
			home := int(h>>32) % sites
			for j := range row {
				// Sites stand on a spiral, items lean to the first five.
				dx, dy := x-0.5-0.4*math.Cos(float64(j))*float64(j)/float64(sites), y-0.5-0.4*math.Sin(float64(j))*float64(j)/float64(sites)
				row[j] = int64(5e8 * (dx*dx + dy*dy))
				if j != home {
					row[j] += 2e7
				}
			}
		}
	}
	used := make([]int64, sites)
	out := make([]int64, sites)
	for i, w := range p.Load {
		p.Rows(0, i, i+1, out)
		used[least(out)] += w
	}
	// Five sites get three quarters of what they are asked for, all others what
	// makes up the total.
	order := make([]int, 0, sites)
	for range min(5, sites) {
		most := -1
		for j := range used {
			if p.Room[j] == 0 && (most < 0 || used[j] > used[most]) {
				most = j
			}
		}
		p.Room[most] = used[most] * 3 / 4
		order = append(order, most)
	}
	var short int64
	for _, j := range order {
		short += used[j] - p.Room[j]
	}
	rest := total*10/9 - (func() (v int64) {
		for _, j := range order {
			v += p.Room[j]
		}
		return v
	})()
	others := total - short
	for _, j := range order {
		others -= used[j] - (used[j] - p.Room[j])
	}
	for j := range p.Room {
		if p.Room[j] == 0 {
			p.Room[j] = int64(float64(rest) * float64(used[j]) / float64(max(others, 1)))
		}
	}
	return p
}

// BenchmarkSolve is of 100,000 items by 20 sites, or ASSIGN_ITEMS: the solver's
// time without that of Rows, its gap, and the most memory it holds an item.
func BenchmarkSolve(b *testing.B) {
	sizes := []int{100_000}
	if text := os.Getenv("ASSIGN_ITEMS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		sizes = []int{n}
	}
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := hard(n, 20, 2)
			rows := timeRows(p)
			b.ReportAllocs()
			var s *Solution
			for b.Loop() {
				s = Solve(p, Options{})
			}
			per := b.Elapsed() / time.Duration(b.N)
			b.ReportMetric((per - time.Duration(s.Rounds)*rows).Seconds(), "solver-s")
			b.ReportMetric(rows.Seconds(), "rows-s")
			b.ReportMetric(s.Gap()*100, "gap-%")
			b.ReportMetric(float64(s.Rounds), "rounds")
			b.ReportMetric(float64(peak(func() { Solve(p, Options{}) }))/float64(n), "peak-B/item")
			b.Logf("%s, cost %d, bound %d, nodes %d, over %v", s.Method, s.Cost, s.Bound, s.Nodes, s.Over)
		})
	}
}

// timeRows is how long one reading of all rows takes.
func timeRows(p *Problem) time.Duration {
	out := make([][]int64, p.Workers)
	for w := range out {
		out[w] = make([]int64, block*p.Sites)
	}
	start := time.Now()
	inBlocks(p.Workers, len(p.Load), func(worker, lo, hi int) { p.Rows(worker, lo, hi, out[worker]) })
	return time.Since(start)
}

// peak is how much more memory is in use at most while f runs, as the collector
// sees it.
func peak(f func()) uint64 {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var most atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most.Store(max(most.Load(), now.HeapInuse))
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	f()
	close(stop)
	<-done
	return most.Load() - min(before.HeapInuse, most.Load())
}
