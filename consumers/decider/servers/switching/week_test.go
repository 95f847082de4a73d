package switching

import (
	"slices"
	"testing"
	"time"
)

// checkChanges checks what must be shown of every run (P35, issue): no more than one change
// in a cooldown, no server on and off inside it, never below the least, no request cut.
func checkChanges(t *testing.T, w *world) {
	t.Helper()
	cool := int(max(0, w.opts.Cooldown) / time.Second)
	last, by := -cool, map[int]int{}
	for _, c := range w.events {
		if at, ok := by[c.server]; ok && c.at-at < cool {
			t.Errorf("server %d is switched at %d and %d, inside a cooldown of %d s", c.server, at, c.at, cool)
		}
		by[c.server] = c.at
		if c.code == Replaced || c.code == BelowLeast || c.at == last {
			continue
		}
		if c.at-last < cool {
			t.Errorf("changes at %d and %d, inside a cooldown of %d s", last, c.at, cool)
		}
		last = c.at
	}
	if w.least < w.opts.Least {
		t.Errorf("%d servers ran, expected %d at least", w.least, w.opts.Least)
	}
	for range 100_000 { // No more requests come; what is there is served.
		if w.arrived == w.served {
			break
		}
		w.rate = func(int) float64 { return 0 }
		w.second()
	}
	if w.arrived != w.served {
		t.Errorf("%v requests came and %v were served", w.arrived, w.served)
	}
}

// A week of days that swing by a factor of ten, at the seconds that a site lives by: servers
// follow the load, at a fraction of the cost of all of them, and without flapping.
func TestAWeek(t *testing.T) {
	t.Parallel()
	costs := map[bool]float64{}
	penalties := map[bool]float64{}
	for _, forecast := range []bool{false, true} {
		o := Options{Servers: equal(12, 2), Least: 2, Cooldown: 5 * time.Minute, StartDelay: time.Minute, Forecast: forecast}
		w, err := newWorld(o, 1, 12)
		if err != nil {
			t.Fatal(err)
		}
		w.rate, w.mean = day(5, 50), 2
		var at []float64
		w.steps = func(o *Observation, d *Decision) {
			if w.now%86400 == 0 {
				at = append(at, w.cost+w.penalty)
			}
		}
		w.run(7 * 86400)
		codes := map[Code]int{}
		for _, c := range w.events {
			codes[c.code]++
		}
		t.Logf("forecast %v: %d changes %v, cost %.0f of %d, penalty %.0f, ceiling %.3f, by day %.0f", forecast, len(w.events), codes, w.cost, 12*7*86400, w.penalty, w.rule.m.ceiling, at)
		checkChanges(t, w)
		costs[forecast], penalties[forecast] = w.cost, w.penalty
		if all := float64(12 * 7 * 86400); w.cost+w.penalty > 0.75*all {
			t.Errorf("cost %.0f and penalty %.0f, expected three quarters of %.0f at most", w.cost, w.penalty, all)
		}
		if n := len(w.events); n < 7*8 || n > 7*60 {
			t.Errorf("%d changes, expected the load to be followed without flapping", n)
		}
	}
	if penalties[true] >= penalties[false] || costs[true]+penalties[true] >= 1.02*(costs[false]+penalties[false]) {
		t.Errorf("penalties %v, costs %v: expected fewer penalties with the forecast, for no more in all", penalties, costs)
	}
	_ = slices.Max[[]int]
}
