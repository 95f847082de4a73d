package switching

import (
	"os"
	"testing"
	"time"
)

// checkChanges checks what must be shown of every run (P35): no more than one change in a
// cooldown, no server on and off inside it, never below the least, no request cut.
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
	w.rate = func(int) float64 { return 0 }
	for n := 0; n < 100_000 && w.arrived != w.served; n++ { // No more come; what is there is served.
		w.second()
	}
	if w.arrived != w.served {
		t.Errorf("%v requests came and %v were served", w.arrived, w.served)
	}
}

// length is a week in seconds; CI has a day of it.
func length() int {
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		return 7 * 86400
	}
	return 86400
}

// Days that swing by a factor of ten, second by second: servers follow the load at a
// fraction of the cost of all of them, and without flapping. The week of the issue is
// TestAWeekOfSite of the policy's; here seconds count.
func TestDays(t *testing.T) {
	t.Parallel()
	w, err := newWorld(Options{Servers: small(12, 2), Least: 2, Cooldown: 5 * time.Minute, StartDelay: time.Minute}, 1, 12)
	if err != nil {
		t.Fatal(err)
	}
	w.rate, w.mean = day(1, 10), 2
	w.run(length())
	days := float64(length()) / 86400
	t.Logf("%d changes, cost %.0f of %.0f, penalty %.0f, ceiling %.3f", len(w.events), w.cost, 12*86400*days, w.penalty, w.rule.m.ceiling)
	checkChanges(t, w)
	if all := 12 * 86400 * days; w.cost+w.penalty > 0.75*all {
		t.Errorf("cost %.0f and penalty %.0f, expected three quarters of %.0f at most", w.cost, w.penalty, all)
	}
	if n := float64(len(w.events)); n < 8*days || n > 100*days {
		t.Errorf("%.0f changes in %.0f days, expected the load to be followed without flapping", n, days)
	}
}

// A load that stands up within a minute each morning, and servers that take three minutes to
// start: who has seen a day turns them on before.
func TestForecastIsThereBeforeThePeak(t *testing.T) {
	t.Parallel()
	const day = 2 * 3600 // of a season that is as short
	morning := func(second int) float64 {
		if s := second % day; s >= day/3 && s < day/2 {
			return 12
		}
		return 2
	}
	run := func(forecast bool) *world {
		w, err := newWorld(Options{Servers: small(8, 1), Cooldown: 2 * time.Minute, StartDelay: 3 * time.Minute, MostUp: 8, Forecast: forecast, Season: day * time.Second}, 3, 2)
		if err != nil {
			t.Fatal(err)
		}
		w.rate, w.mean = morning, 2
		w.run(3 * day)
		w.cost, w.penalty, w.events = 0, 0, nil
		w.run(3 * day)
		return w
	}
	with, without := run(true), run(false)
	t.Logf("with: cost %.0f, penalty %.0f, %d changes; without: cost %.0f, penalty %.0f, %d changes", with.cost, with.penalty, len(with.events), without.cost, without.penalty, len(without.events))
	if with.penalty > 0.2*without.penalty {
		t.Errorf("penalty %.0f with the forecast and %.0f without, expected a fifth at most", with.penalty, without.penalty)
	}
	if with.cost > 1.1*without.cost {
		t.Errorf("cost %.0f with the forecast and %.0f without, expected a tenth more at most", with.cost, without.cost)
	}
	for _, w := range []*world{with, without} {
		checkChanges(t, w)
	}
}

// A forecast of a load that comes at another hour each day is bad, and is not gone by: it
// does no worse than the rule without.
func TestABadForecastDoesNotCount(t *testing.T) {
	t.Parallel()
	const day = 2 * 3600
	roaming := func(second int) float64 {
		d, s := second/day, second%day
		if from := (d * 7 % 20) * day / 24; s >= from && s < from+day/8 {
			return 12
		}
		return 2
	}
	var sums [2]float64
	for i, forecast := range []bool{false, true} {
		w, err := newWorld(Options{Servers: small(8, 1), Cooldown: 2 * time.Minute, StartDelay: time.Minute, Forecast: forecast, Season: day * time.Second}, 4, 2)
		if err != nil {
			t.Fatal(err)
		}
		w.rate, w.mean = roaming, 2
		w.run(8 * day)
		sums[i] = w.cost + w.penalty
		checkChanges(t, w)
	}
	if sums[1] > 1.15*sums[0] {
		t.Errorf("%.0f with the forecast and %.0f without", sums[1], sums[0])
	}
}

// What the rule sees is three periods old, and the load a square wave, or noise: there is one
// change in a cooldown at most, and no server goes on and off inside it (P35).
func TestLateFiguresDoNotFlap(t *testing.T) {
	t.Parallel()
	for name, rate := range map[string]func(int) float64{
		"square wave of 20 s":  func(s int) float64 { return float64(2 + 8*(s/10%2)) },
		"square wave of 2 min": func(s int) float64 { return float64(2 + 8*(s/60%2)) },
		"steady, with noise":   func(int) float64 { return 5 },
		"none":                 func(int) float64 { return 0 },
	} {
		for seed := range uint64(3) {
			w, err := newWorld(Options{Servers: small(8, 2), Cooldown: time.Minute, StartDelay: 5 * time.Second}, seed, 4)
			if err != nil {
				t.Fatal(err)
			}
			w.rate, w.mean, w.lag = rate, 2, 3
			w.run(4 * 3600)
			checkChanges(t, w)
			if name == "steady, with noise" && len(w.events) > 60 { // A fourth of the cooldowns.
				t.Errorf("%s: %d changes in four hours of a steady load", name, len(w.events))
			}
		}
	}
}

// Servers that fail to start are replaced, and tried again later; the load is carried.
func TestServersThatFail(t *testing.T) {
	t.Parallel()
	w, err := newWorld(Options{Servers: small(8, 2), Least: 2, Cooldown: time.Minute, StartDelay: 5 * time.Second, Retry: 5 * time.Minute}, 5, 2)
	if err != nil {
		t.Fatal(err)
	}
	w.rate, w.mean = day(2, 10), 2
	w.dies = func(server, second int) bool { return (server*7+second/60)%3 == 0 }
	w.run(86400)
	failed := 0
	for _, c := range w.events {
		if c.code == Replaced {
			failed++
		}
	}
	if failed == 0 {
		t.Error("no server failed")
	}
	checkChanges(t, w)
}
