package assign

import (
	"cmp"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// BenchmarkSolve is of the hard instance with 20 sites and 100,000 items, or as
// many as ASSIGN_ITEMS lists: the solver's time without that of Rows, its gap, and
// the most memory an item that it holds.
func BenchmarkSolve(b *testing.B) {
	sizes := cmp.Or(os.Getenv("ASSIGN_ITEMS"), "100000")
	for text := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			b.Fatalf("ASSIGN_ITEMS is %q, expected numbers of items", sizes)
		}
		b.Run(text, func(b *testing.B) { benchSolve(b, hard(n, 20, 2)) })
	}
}

func benchSolve(b *testing.B, p *Problem) {
	rows := timeRows(p)
	b.ReportAllocs()
	var s *Solution
	before := cpu(b)
	for b.Loop() {
		s = Solve(p, Options{})
	}
	per := b.Elapsed() / time.Duration(b.N)
	b.ReportMetric((per - time.Duration(s.Rounds)*rows).Seconds(), "solver-s")
	b.ReportMetric(rows.Seconds(), "rows-s")
	b.ReportMetric(((cpu(b) - before) / time.Duration(b.N)).Seconds(), "cpu-s")
	b.ReportMetric(s.Gap()*100, "gap-%")
	b.ReportMetric(float64(s.Rounds), "rounds")
	b.ReportMetric(float64(peak(func() { Solve(p, Options{}) }))/float64(len(p.Load)), "peak-B/item")
	b.Logf("%s: cost %d, bound %d, %d nodes, over %v", s.Method, s.Cost, s.Bound, s.Nodes, s.Over)
}

// cpu is how long this process has had a processor. It tells more than the time
// of a machine that does other things as well.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
