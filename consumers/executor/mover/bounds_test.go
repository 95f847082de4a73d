package mover

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/schemas/control"
)

// TestParallel: as many moves run at a time as there may, over all commands, and
// never two of one owner.
func TestParallel(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	running, most := map[string]int{}, 0
	hook := func(s step, k *task) error {
		mu.Lock()
		defer mu.Unlock()
		switch s {
		case stepPlanned:
			running[k.Owner]++
			if running[k.Owner] > 1 {
				return fmt.Errorf("two moves of %s at a time", k.Owner)
			}
			most = max(most, len(running))
		case stepClosed:
			delete(running, k.Owner)
		default:
		}
		return nil
	}
	m := w.mover(func(o *Options) { o.Parallel, o.after = 3, hook })
	var commands []*control.Command
	for c := range 4 {
		var moves []control.Move
		for i := range 10 {
			owner := fmt.Sprintf("%d-%d", c%2, i)
			if c < 2 {
				w.put("a", owner, objects(2))
			}
			moves = append(moves, move(owner, "a", "b", 1))
		}
		commands = append(commands, command(moves...))
	}
	var wg sync.WaitGroup
	for _, c := range commands {
		wg.Go(func() {
			if err := m.Apply(t.Context(), c, w.answer); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most != 3 || len(w.outcomes) != 20 || w.known != 20 {
		t.Errorf("%d at a time, %d outcomes, %d already applied", most, len(w.outcomes), w.known)
	}
}

// TestBandwidth: copies are not faster than they may be, all together.
func TestBandwidth(t *testing.T) {
	w := newWorld(t)
	const rate = 4 << 20
	m := w.mover(func(o *Options) { o.Bandwidth = rate })
	var moves []control.Move
	for i := range 4 {
		owner := fmt.Sprint(i)
		w.put("a", owner, map[string]string{"x": strings.Repeat("x", 512<<10)})
		moves = append(moves, move(owner, "a", "b", 1))
	}
	start := time.Now()
	w.apply(m, moves...)
	// 2 MB at 4 MB/s, less the burst of a quarter of a second.
	if took := time.Since(start); took < 240*time.Millisecond {
		t.Errorf("2 MB at 4 MB/s took %v", took)
	}
}

// BenchmarkMoves is a replay's load: small moves, nothing synced.
func BenchmarkMoves(b *testing.B) {
	w := newWorld(b)
	m := w.mover()
	content := strings.Repeat("0123456789", 1000)
	var moves []control.Move
	for i := range b.N {
		owner := fmt.Sprintf("owner-%d", i)
		w.put("a", owner, map[string]string{"records": content})
		moves = append(moves, move(owner, "a", "b", 1))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for from := 0; from < len(moves); from += control.MaxMoves {
		w.apply(m, moves[from:min(from+control.MaxMoves, len(moves))]...)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "moves/s")
}
