package follow

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestWalk writes, rotates in any way, kills and starts in any order, and counts
// the lines now and then: each is there once. Seeds that failed once stay.
func TestWalk(t *testing.T) {
	t.Parallel()
	seeds, steps := 4, 60
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		seeds, steps = 60, 300
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			walk(t, rand.New(rand.NewPCG(seed, 1)), steps)
		})
	}
}

func walk(t *testing.T, r *rand.Rand, steps int) {
	w := newWorld(t, func(o *Options) {
		o.MaxOpen = 1 + r.IntN(4)
		o.CommitRows = 1 + r.IntN(50)
	})
	var history []string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("steps:\n%s", strings.Join(history, "\n"))
		}
	})
	names := slices.Sorted(maps.Keys(rotations))
	w.append("access.log", "")
	w.start()
	for range steps {
		step := r.IntN(20)
		switch {
		case step < 6:
			n := 1 + r.IntN(40)
			history = append(history, fmt.Sprintf("add %d", n))
			w.add("access.log", n)
		case step < 8: // the beginning of a line, and its end later
			line := w.line()
			cut := 1 + r.IntN(len(line)-1)
			history = append(history, fmt.Sprintf("add a line in parts, after %d", cut))
			w.append("access.log", line[:cut])
			if r.IntN(3) == 0 {
				w.shift("access.log")
				w.rename("access.log", "access.log.1")
				w.append("access.log.1", line[cut:])
				w.append("access.log", "")
				history = append(history, "renamed between them")
				break
			}
			pause(r)
			w.append("access.log", line[cut:])
		case step < 12:
			name := names[r.IntN(len(names))]
			history = append(history, name)
			rotations[name](w)
			if _, err := os.Stat(w.path("access.log")); err != nil {
				w.append("access.log", "")
			}
		case step < 13:
			w.awaitAlive()
			history = append(history, "delete")
			w.remove("access.log")
			w.append("access.log", "")
		case step < 16:
			history = append(history, "kill")
			if r.IntN(2) == 0 {
				w.book.mu.Lock()
				w.book.dieAt = 1 + r.IntN(5)
				w.book.mu.Unlock()
				pause(r)
			}
			w.crash()
			if r.IntN(2) == 0 {
				w.start()
			}
		case step < 17:
			w.awaitAlive()
		default:
			pause(r)
		}
		w.alive(r)
	}
	w.awaitAlive()
}

// alive starts the follower again if it has died, mostly.
func (w *world) alive(r *rand.Rand) {
	if w.cancel != nil {
		select {
		case err := <-w.ended:
			w.ended <- err
			w.crash()
		default:
		}
	}
	if w.cancel == nil && r.IntN(3) > 0 {
		w.start()
	}
}

// awaitAlive waits for all lines with a follower that runs.
func (w *world) awaitAlive() {
	w.t.Helper()
	w.book.mu.Lock()
	w.book.dieAt = 0
	dead := w.book.dead
	w.book.mu.Unlock()
	if dead {
		w.crash()
	}
	if w.cancel == nil {
		w.start()
	}
	w.await()
}

func pause(r *rand.Rand) { time.Sleep(time.Duration(r.IntN(12)) * time.Millisecond) }
