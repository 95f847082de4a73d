package mover

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/schemas/control"
)

// TestParallel: as many moves run at a time as there may, and no more.
func TestParallel(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	running, most := 0, 0
	full := make(chan struct{})
	hook := func(s step, _ *task) error {
		mu.Lock()
		defer mu.Unlock()
		switch s {
		case stepPlanned:
			running++
			if most = max(most, running); running == 3 && most == 3 {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			mu.Unlock()
			<-full // nobody goes on before three are at it
			mu.Lock()
		case stepClosed:
			running--
		default:
		}
		return nil
	}
	m := w.mover(func(o *Options) { o.Parallel, o.after = 3, hook })
	var wg sync.WaitGroup
	for c := range 2 {
		var moves []control.Move
		for i := range 10 {
			owner := fmt.Sprintf("%d-%d", c, i)
			w.put("a", owner, objects(2))
			moves = append(moves, move(owner, "a", "b", 1))
		}
		wg.Go(func() {
			if err := m.Apply(t.Context(), command(moves...), w.answer); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most != 3 || len(w.outcomes) != 20 {
		t.Errorf("%d at a time, %d outcomes", most, len(w.outcomes))
	}
}

// TestSameOwner: moves of one owner wait for each other, whatever commands they
// came with.
func TestSameOwner(t *testing.T) {
	w := newWorld(t)
	w.put("a", "o", objects(3))
	var mu sync.Mutex
	running := 0
	hook := func(s step, k *task) error {
		mu.Lock()
		defer mu.Unlock()
		switch s {
		case stepPlanned:
			if running++; running > 1 {
				return fmt.Errorf("two moves of %s at a time", k.Owner)
			}
		case stepClosed:
			running--
		default:
		}
		return nil
	}
	m := w.mover(func(o *Options) { o.after = hook })
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := m.Apply(t.Context(), command(move("o", "a", "b", 1)), w.answer); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(w.outcomes) != 1 || w.known != 4 {
		t.Errorf("%d outcomes, %d already applied", len(w.outcomes), w.known)
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
