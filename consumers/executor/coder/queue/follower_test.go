package queue_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"penstock/consumers/executor/coder/queue"
)

// watcher is a chooser that is told what waits.
type watcher struct {
	queue.Fixed
	waits, told int
}

func (w *watcher) Follows(waiting int) { w.waits = waiting; w.told++ }

// TestFollowersKnowWhatWaits: whatever comes and goes, a chooser that follows the
// backlog knows it, before it is asked for a code too.
func TestFollowersKnowWhatWaits(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	w := &watcher{Fixed: queue.Fixed{N: 2, K: 1}}
	c := queue.NewCore(queue.CoreOptions{Connections: 3, MaxWaiting: 20, Chooser: w})
	var running []*queue.Task
	var all []*queue.Request
	for range 20_000 {
		switch rng.IntN(5) {
		case 0, 1:
			r := &queue.Request{Background: rng.IntN(3) == 0}
			r.Plan = func(code queue.Code) queue.Plan {
				if !r.Background && w.waits != c.State().Backlog {
					t.Fatalf("told of %d at an admission, %d wait", w.waits, c.State().Backlog)
				}
				return queue.Plan{Tasks: make([]queue.Task, code.N), Need: code.K}
			}
			if c.Arrive(r) {
				all = append(all, r)
			}
		case 2, 3:
			if n := len(running); n > 0 {
				i := rng.IntN(n)
				task := running[i]
				running[i] = running[n-1]
				running = running[:n-1]
				c.Done(task, nil)
			}
		default:
			if len(all) > 0 {
				c.Abandon(all[rng.IntN(len(all))], errors.New("nobody waits"))
			}
			if rng.IntN(50) == 0 {
				c.AbandonAll(false, true, errors.New("closed"))
			}
		}
		for task, ok := c.Next(); ok; task, ok = c.Next() {
			running = append(running, task)
		}
		for _, ok := c.Event(); ok; _, ok = c.Event() {
		}
		if w.waits != c.State().Backlog {
			t.Fatalf("told of %d, %d wait", w.waits, c.State().Backlog)
		}
	}
	if w.told < 1000 {
		t.Errorf("told %d times", w.told)
	}
}

// TestFollowersAreToldOnceOfWhatNeedNotWait: to be told costs a look at the clock.
func TestFollowersAreToldOnceOfWhatNeedNotWait(t *testing.T) {
	w := &watcher{Fixed: queue.Fixed{N: 1, K: 1}}
	c := queue.NewCore(queue.CoreOptions{Connections: 1, Chooser: w})
	next := func() (out *queue.Task) {
		for task, ok := c.Next(); ok; task, ok = c.Next() {
			out = task
		}
		return out
	}
	arrive := func() {
		c.Arrive(&queue.Request{Plan: func(queue.Code) queue.Plan { return queue.Plan{Tasks: make([]queue.Task, 1), Need: 1} }})
	}
	expect := func(what string, told, waits int) {
		t.Helper()
		if w.told != told || w.waits != waits {
			t.Errorf("%s: told %d times, of %d at last, expected %d and %d", what, w.told, w.waits, told, waits)
		}
	}
	arrive()
	running := next()
	expect("one that need not wait", 1, 0)
	arrive()
	next()
	expect("one that waits", 2, 1)
	c.Done(running, nil)
	running = next()
	expect("it is let in", 3, 0)
	c.Done(running, nil)
	next()
	expect("nothing is left", 3, 0)
}
