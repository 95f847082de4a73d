package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"penstock/consumers/executor/coder/codes"
	"penstock/consumers/executor/coder/queue"
	"penstock/schemas/control"
)

// lookups is how many are timed at once.
const lookups = 1 << 20

// BenchmarkCodes is what a coder's request costs before its first byte moves: the
// look-up of (n,k), and the queue for each of its tasks, which do nothing here.
func BenchmarkCodes(b *testing.B) {
	c, timely := chooserOfPaper(b, 0), chooserOfPaper(b, codes.Over)
	for range b.N {
		var each []float64
		for range repeats {
			each = append(each, timed(lookups, func() { lookUp(b, c, lookups) }))
		}
		allocs := testing.AllocsPerRun(100, func() { lookUp(b, c, 1) })
		b.ReportMetric(middle(each), "ns/lookup")
		results.add(line{
			name: "(n,k) of a request", figure: middle(each), unit: "ns", least: 100, lower: true,
			note: fmt.Sprintf("its arrival smoothed, too; %.0f allocations; best of %d: %.1f ns", allocs, repeats, slices.Min(each)),
		})
		each = each[:0]
		for range repeats {
			each = append(each, timed(lookups/8, func() { follow(b, timely, lookups/8) }))
		}
		b.ReportMetric(middle(each), "ns/lookup-followed")
		results.add(line{
			name: "  with the backlog averaged over time", figure: middle(each), unit: "ns",
			note: "as a coder has it: the clock is read when a request comes and when it is let in",
		})
		for _, code := range []queue.Code{{N: 1, K: 1}, {N: 12, K: 6}} {
			each = each[:0]
			for range repeats {
				each = append(each, queued(b, code, 20_000))
			}
			b.ReportMetric(middle(each), fmt.Sprintf("ns/task-%d-%d", code.N, code.K))
			results.add(line{
				name: fmt.Sprintf("the queue's cost of a task at (%d,%d)", code.N, code.K), figure: middle(each), unit: "ns",
				note: fmt.Sprintf("one client, tasks of nothing, goroutines woken and all; best of %d: %.0f ns", repeats, slices.Min(each)),
			})
		}
	}
	b.ReportMetric(0, "ns/op") // of no meaning beside the others
}

// timed is how many nanoseconds each of n things takes that f does.
func timed(n int, f func()) float64 {
	began := time.Now()
	f()
	return float64(time.Since(began).Nanoseconds()) / float64(n)
}

// chooserOfPaper has the paper's thresholds, of the default model of reads (PAPERS §3.4).
func chooserOfPaper(t testing.TB, over time.Duration) *codes.Chooser {
	t.Helper()
	paper := control.CodingCodes{
		K: []float64{2.811, 0.869, 0.310, 0.120, 0.050}, RMax: 2,
		N: []float64{4.666, 2.205, 1.266, 0.798, 0.535, 0.375, 0.267, 0.198, 0.149, 0.115, 0.090},
	}
	c, err := codes.New(codes.Options{Over: over, Default: control.CodingTable{Policy: control.CodingTOFEC, Read: paper, Write: paper}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lookUp has n requests arrive and chooses their codes.
func lookUp(t testing.TB, c *codes.Chooser, n int) {
	for i := range n {
		c.Arrived(i & 7)
		if c.Choose(queue.Op(i&1), 16).K == 0 {
			t.Fatal("no code")
		}
	}
}

// follow has n requests arrive, be let in, and get their codes.
func follow(t testing.TB, c *codes.Chooser, n int) {
	for i := range n {
		c.Follows(i & 7)
		c.Follows(i & 3)
		if c.Choose(queue.Op(i&1), 16).K == 0 {
			t.Fatal("no code")
		}
	}
}

// queued sends so many requests through a queue and tells how many nanoseconds a task
// of them took that ran.
func queued(t testing.TB, code queue.Code, requests int) float64 {
	t.Helper()
	q, err := queue.New(queue.Options{CoreOptions: queue.CoreOptions{Connections: 16, Chooser: queue.Fixed(code)}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	nothing := func(context.Context) error { return nil }
	took := timed(1, func() {
		for range requests {
			if err := q.Do(t.Context(), &queue.Request{Plan: func(c queue.Code) queue.Plan {
				p := queue.Plan{Tasks: make([]queue.Task, c.N), Need: c.K}
				for i := range p.Tasks {
					p.Tasks[i].Run = nothing
				}
				return p
			}}); err != nil {
				t.Fatal(err)
			}
		}
	})
	s := q.State()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	ran := s.Done + s.Cancelled
	if ran < uint64(requests*code.K) {
		t.Fatalf("%d tasks ran of %d requests of (%d,%d)", ran, requests, code.N, code.K)
	}
	return took / float64(ran)
}

func TestTheCodesBenchmarkWorks(t *testing.T) {
	c := chooserOfPaper(t, 0)
	lookUp(t, c, 100)
	follow(t, chooserOfPaper(t, codes.Over), 100)
	if allocs := testing.AllocsPerRun(10, func() { lookUp(t, c, 1) }); allocs != 0 {
		t.Errorf("%v allocations a look-up", allocs)
	}
	if ns := queued(t, queue.Code{N: 4, K: 2}, 100); ns <= 0 {
		t.Errorf("a task took %v ns", ns)
	}
}
