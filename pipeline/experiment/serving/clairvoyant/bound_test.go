package clairvoyant

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// enumerate is the least cost of lateness of jobs on servers of these speeds: every order
// of the jobs, each at the server that is drawn for it by all choices, begun as soon as the
// server is free and the job is there. Lateness is least in one of those schedules, for
// none gains by waiting.
func enumerate(jobs []Job, speeds []float64) float64 {
	free := make([]float64, len(speeds))
	done := make([]bool, len(jobs))
	best := math.Inf(1)
	var place func(n int, cost float64)
	place = func(n int, cost float64) {
		if cost >= best {
			return
		}
		if n == len(jobs) {
			best = cost
			return
		}
		for i := range jobs {
			if done[i] {
				continue
			}
			done[i] = true
			for s, v := range speeds {
				was := free[s]
				free[s] = max(was, jobs[i].At) + jobs[i].Work/v
				place(n+1, cost+jobs[i].Penalty*max(0, free[s]-jobs[i].Due))
				free[s] = was
			}
			done[i] = false
		}
	}
	place(0, 0)
	return best
}

// pooled is the machine of servers that are on all the time.
func pooled(speeds []float64, slot float64, slots int) *Machine {
	m := &Machine{Slot: slot, Free: make([]float64, slots), Bought: make([]float64, slots)}
	for _, v := range speeds {
		for t := range slots {
			m.Free[t] += v * slot
		}
	}
	return m
}

// TestNoScheduleIsBelowTheBound: on small instances the bound is not above the best of all
// schedules without interruption, whatever slots, speeds, limits and penalties.
func TestNoScheduleIsBelowTheBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		speeds := rapid.SliceOfN(rapid.Float64Range(0.3, 2), 1, 2).Draw(t, "speeds")
		jobs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Job {
			at := rapid.Float64Range(0, 4).Draw(t, "at")
			return Job{
				At: at, Due: at + rapid.Float64Range(0, 3).Draw(t, "limit"), Work: rapid.Float64Range(0.05, 2).Draw(t, "work"),
				Penalty: rapid.Float64Range(0, 5).Draw(t, "penalty"),
			}
		}), 0, 5).Draw(t, "jobs")
		m := pooled(speeds, rapid.Float64Range(0.1, 1).Draw(t, "slot"), rapid.IntRange(1, 80).Draw(t, "slots"))
		bound, best := Bound(jobs, m), enumerate(jobs, speeds)
		if bound > best*(1+1e-9)+1e-9 {
			t.Fatalf("bound %v, yet a schedule costs %v", bound, best)
		}
		if bound < 0 {
			t.Fatalf("bound %v, expected 0 or more", bound)
		}
	})
}

// TestBoughtWork: a schedule that buys what it needs costs no less than the bound. One
// server is always on and a second one of the same speed on for as long as it works.
func TestBoughtWork(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		price := rapid.Float64Range(0, 3).Draw(t, "price")
		jobs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Job {
			at := rapid.Float64Range(0, 3).Draw(t, "at")
			return Job{At: at, Due: at + rapid.Float64Range(0, 2).Draw(t, "limit"), Work: rapid.Float64Range(0.05, 2).Draw(t, "work"), Penalty: rapid.Float64Range(0, 5).Draw(t, "penalty")}
		}), 1, 5).Draw(t, "jobs")
		second := rapid.SliceOfN(rapid.Bool(), len(jobs), len(jobs)).Draw(t, "second")
		m := &Machine{Slot: 0.25, Free: make([]float64, 60), Bought: make([]float64, 60), Price: price}
		for i := range m.Free {
			m.Free[i], m.Bought[i] = 0.25, 0.25
		}
		cost, free := 0.0, [2]float64{}
		for i, j := range jobs {
			s := 0
			if second[i] {
				s = 1
				cost += price * j.Work
			}
			free[s] = max(free[s], j.At) + j.Work
			cost += j.Penalty * max(0, free[s]-j.Due)
		}
		if bound := Bound(jobs, m); bound > cost*(1+1e-9)+1e-9 {
			t.Fatalf("bound %v, yet a schedule costs %v", bound, cost)
		}
	})
}

// TestBoundIsTight: where one server has many equal pieces to do at once, the bound comes
// near the true cost: n jobs of work w and penalty p at 0, due at once, cost p·w·n(n+1)/2.
func TestBoundIsTight(t *testing.T) {
	t.Parallel()
	const n, w, p = 400, 0.1, 2.0
	jobs := make([]Job, n)
	for i := range jobs {
		jobs[i] = Job{Work: w, Penalty: p}
	}
	best := p * w * n * (n + 1) / 2
	bound := Bound(jobs, pooled([]float64{1}, 0.1, 500))
	if bound > best || bound < 0.97*best {
		t.Errorf("bound %v, the best is %v", bound, best)
	}
	// A server that keeps up costs nothing.
	for i := range jobs {
		jobs[i].At = float64(i)
		jobs[i].Due = float64(i) + 1
	}
	if bound := Bound(jobs, pooled([]float64{1}, 0.1, 5000)); bound != 0 {
		t.Errorf("bound %v of jobs that are all in time", bound)
	}
}
