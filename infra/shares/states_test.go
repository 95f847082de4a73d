package shares

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// TestSites that are down, draining or without a share, and sessions there.
func TestSites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := shares(t, 1, 4)
		state := rapid.SliceOfN(rapid.SampledFrom([]string{"up", "down", "draining", "both"}), len(s), len(s)).Draw(t, "state")
		r := New(Options{})
		marked := rapid.Bool().Draw(t, "marked before the table comes")
		mark := func() {
			for i, how := range state {
				replica := Replica{link.To, strconv.Itoa(i)}
				r.Up(replica, how == "up" || how == "draining")
				if how == "draining" || how == "both" {
					if _, err := r.Drain(context.Background(), replica); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if marked {
			mark()
		}
		if _, err := r.Put(context.Background(), table(1, s...)); err != nil {
			t.Fatal(err)
		}
		if !marked {
			mark()
		}
		best := map[string]int{"up": 3, "down": 2, "draining": 0, "both": 0}
		level := 0
		for i, how := range state {
			if s[i] > 0 {
				level = max(level, best[how])
			}
		}
		may := func(i int) bool { return s[i] > 0 && best[state[i]] >= level }
		for k := range 50 {
			for _, key := range []string{"", fmt.Sprint(k)} {
				i, err := strconv.Atoi(r.Pick(link, key).Site)
				if err != nil || !may(i) {
					t.Fatalf("shares %v, %v: picked %d", s, state, i)
				}
			}
		}
		for i := range s {
			if _, stays := r.Stay(link, strconv.Itoa(i)); stays != may(i) {
				t.Fatalf("shares %v, %v: a session at %d stays: %v", s, state, i, stays)
			}
		}
		for i := range state {
			replica := Replica{link.To, strconv.Itoa(i)}
			r.Up(replica, true)
			if err := r.Undrain(context.Background(), replica); err != nil {
				t.Fatal(err)
			}
			if _, stays := r.Stay(link, strconv.Itoa(i)); s[i] > 0 && !stays {
				t.Fatalf("site %d is back and isn't chosen", i)
			}
		}
	})
}

// TestDrainUnderRequests drains a replica while requests come and go: from the
// moment it says that none is left there is none.
func TestDrainUnderRequests(t *testing.T) {
	t.Parallel()
	r := with(t, table(1, 0.5, 0.5))
	stop := make(chan struct{})
	var all sync.WaitGroup
	drained := make(chan struct{})
	var inside atomic.Int64 // as those who are inside say
	for range 4 {
		all.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				before := false
				select {
				case <-drained:
					before = true
				default:
				}
				c := r.Enter(link, strconv.Itoa(k), "1", false)
				if before && c.Site == "1" {
					t.Error("a request came to a drained replica")
				}
				if c.Site == "1" {
					inside.Add(1)
				}
				runtime.Gosched()
				if c.Site == "1" {
					inside.Add(-1)
				}
				c.Leave()
			}
		})
	}
	for range 20 {
		if n, err := r.Drain(t.Context(), Replica{link.To, "1"}); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		for range 20 {
			if n := inside.Load(); n > 0 {
				t.Fatalf("%d are there", n)
			}
			runtime.Gosched()
		}
		if err := r.Undrain(t.Context(), Replica{link.To, "1"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Drain(t.Context(), Replica{link.To, "1"}); err != nil {
		t.Fatal(err)
	}
	close(drained)
	for range 1000 {
		r.Enter(link, "", "", false).Leave()
	}
	close(stop)
	all.Wait()
}

// TestBeginAfterADrain: a request that chose a replica just before it was drained
// chooses again.
func TestBeginAfterADrain(t *testing.T) {
	t.Parallel()
	r := with(t, table(1, 0, 1))
	by := r.force.Load()
	c := r.Pick(link, "")
	if n, err := r.Drain(t.Context(), Replica{link.To, "1"}); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if r.begin(by, c) {
		t.Error("a request began at a drained replica")
	}
	if n := c.running.Load(); n != 0 {
		t.Errorf("%d are counted", n)
	}
}
