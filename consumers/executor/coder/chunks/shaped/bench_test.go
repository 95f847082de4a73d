package shaped

import (
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/schemas/control"
)

// BenchmarkDelay tells by how much a call takes longer than its delay: 16 at a time, as
// over the connections of a coder, of 0.5 MB that take 5 ms.
func BenchmarkDelay(b *testing.B) {
	const at, n = 16, 500_000
	law := Exponential(control.CodingDelay{Delta: 5})
	s := New(Options{Inner: chunks.NewMemory("memory"), Delays: Delays{Read: law}})
	if err := s.Put(b.Context(), "k", strings.NewReader(strings.Repeat("x", n)), n); err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	over, calls := time.Duration(0), 0
	for b.Loop() {
		var wg sync.WaitGroup
		for range at {
			wg.Go(func() {
				start := time.Now()
				if _, err := s.Get(b.Context(), "k", 0, n, io.Discard); err != nil {
					b.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				over += time.Since(start) - 5*time.Millisecond
				calls++
			})
		}
		wg.Wait()
	}
	b.ReportMetric(over.Seconds()*1e6/float64(calls), "µs-over")
}
