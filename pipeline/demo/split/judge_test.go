package split

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/pipeline/demo/load"
	"penstock/schemas/control"
)

var (
	t0    = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	sites = []string{"east", "west"}
	row   = link{"web", "east", "quotes"}
)

// holds reports whether a fault is on at an instant.
func (f Fault) holds(at time.Time) bool { return !at.Before(f.From) && at.Before(f.To) }

func after(d time.Duration) time.Time { return t0.Add(d) }

// give adds a command that was decided on the window which ended at a time, and was
// in force lag later.
func (r *record) give(end, lag time.Duration, l link, east float64) {
	o := order{
		window: control.Window{Start: after(end - width), End: after(end)}, scope: l.from, epoch: uint64(len(r.orders) + 1),
		rows: map[link]shares{l: {"east": east, "west": 1 - east}}, applied: map[string]time.Time{},
	}
	if lag >= 0 {
		o.applied[l.site] = after(end + lag)
	}
	r.orders = append(r.orders, o)
}

// play makes answers and windows as the commands say: 10 requests a second enter at
// east, of which half need the slowed component, which takes slow while east serves
// it and fast elsewhere.
func (r *record) play(p Plan, slow, fast time.Duration) {
	for at := p.Start; at.Before(p.End); at = at.Add(100 * time.Millisecond) {
		i := int(at.Sub(p.Start) / (100 * time.Millisecond))
		s := load.Sample[shot]{Due: at, Latency: 10 * time.Millisecond, Of: shot{slowed: -1}}
		if i%2 == 0 {
			share, _ := r.force(row, "east", at, at)
			s.Of.slowed = 1
			if float64(i/2%10) < 10*share-1e-9 {
				s.Of.slowed = 0
			}
			if s.Latency = fast; s.Of.slowed == 0 && slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.holds(at) }) {
				s.Latency = slow
			}
		}
		r.shots = append(r.shots, s)
	}
	for start := p.Start.Truncate(width); start.Before(p.End); start = start.Add(width) {
		w := seen{start: start, end: start.Add(width), calls: map[link]map[string]calls{row: {}}}
		for _, s := range r.shots {
			if s.Of.slowed >= 0 && !s.Due.Before(start) && s.Due.Before(w.end) {
				c := w.calls[row][sites[s.Of.slowed]]
				c.requests++
				w.calls[row][sites[s.Of.slowed]] = c
			}
		}
		r.windows = append(r.windows, w)
	}
}

// good is a run of which all promises were kept: the fault is from 22 s on.
func good() (*judge, func(change func(*record)) []Check) {
	j := &judge{
		plan:      Plan{Start: t0, Faults: []Fault{{after(22 * time.Second), after(202 * time.Second)}}, End: after(352 * time.Second)},
		component: "quotes", site: "east", cooldown: time.Minute,
	}
	return j, func(change func(*record)) []Check {
		const s = time.Second
		ours, closest, redirect := &record{policy: "greedy", sites: sites}, &record{policy: "closest", sites: sites}, &record{policy: "redirect", sites: sites}
		ours.give(30*s, 3*s, row, 0.5)
		ours.give(40*s, 3*s, row, 0)
		for k := range 5 {
			ours.give(time.Duration(230+10*k)*s, 3*s, row, 0.2*float64(k+1))
		}
		if change != nil {
			change(ours)
		}
		ours.play(j.plan, 310*time.Millisecond, 55*time.Millisecond)
		closest.play(j.plan, 310*time.Millisecond, 10*time.Millisecond)
		redirect.play(j.plan, 80*time.Millisecond, 10*time.Millisecond)
		j.records, j.checks = []*record{ours, closest, redirect}, nil
		j.run()
		return j.checks
	}
}

func broken(checks []Check) (out []string) {
	for _, c := range checks {
		if !c.Kept {
			out = append(out, fmt.Sprintf("%s: %s", c.What, c.Got))
		}
	}
	return out
}

func TestPromisesThatAreKept(t *testing.T) {
	_, run := good()
	checks := run(nil)
	if b := broken(checks); len(b) > 0 {
		t.Errorf("%s", strings.Join(b, "\n"))
	}
	// Three shares after two windows and three after four, two after the end, two
	// quantiles, three policies that do not flap.
	if len(checks) != 13 {
		t.Errorf("%d checks: %+v", len(checks), checks)
	}
}

func TestPromisesThatAreNotKept(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name   string
		change func(*record)
		want   []string // beginnings, of the row's checks without its name
	}{
		{"nothing is decided", func(r *record) { r.orders = nil }, []string{
			"2 windows after the fault began, commanded: 1.00 of 1.00", "2 windows after the fault began, in answers: 1.00", "2 windows after the fault began, in rows: 1.00",
			"4 windows after the fault began, commanded: 1.00 of 1.00", "4 windows after the fault began, in answers: 1.00", "4 windows after the fault began, in rows: 1.00",
			"against closest: 310 ms against 310 ms", "against redirect: 310 ms against 80 ms",
		}},
		{"too late", func(r *record) {
			for i := range r.orders[:2] {
				r.orders[i].window.End = r.orders[i].window.End.Add(30 * s)
				r.orders[i].applied["east"] = r.orders[i].applied["east"].Add(30 * s)
			}
		}, []string{
			"2 windows after the fault began, commanded: 1.00", "2 windows after the fault began, in answers: 1.00", "2 windows after the fault began, in rows: 1.00",
			"4 windows after the fault began, commanded: 0.50", "4 windows after the fault began, in answers: 0.50", "4 windows after the fault began, in rows: 0.20",
			"against closest: 310 ms", "against redirect: 310 ms",
		}},
		{"commanded and never applied", func(r *record) {
			for i := range r.orders {
				r.orders[i].applied = nil
			}
		}, []string{
			"2 windows after the fault began, commanded: 1.00", "2 windows after the fault began, in answers: 1.00", "2 windows after the fault began, in rows: 1.00",
			"4 windows after the fault began, commanded: 1.00", "4 windows after the fault began, in answers: 1.00", "4 windows after the fault began, in rows: 1.00",
			"against closest", "against redirect",
		}},
		{"not back", func(r *record) { r.orders = r.orders[:5] }, []string{
			"1m30s after the fault's end, commanded: 0.60, not back", "1m30s after the fault's end, in answers: 0.60",
		}},
		{"to and fro", func(r *record) {
			r.give(310*s, 3*s, row, 0.9)
		}, []string{"greedy: shares that go to and fro within a cooldown of 1m0s: 2, such as web at east to quotes: the share of east"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, run := good()
			got := broken(run(c.change))
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], "web at east to quotes: share of east ")
				got[i] = strings.TrimPrefix(got[i], "p90 at east over the fault, greedy ")
			}
			ok := len(got) == len(c.want)
			for i := range min(len(got), len(c.want)) {
				ok = ok && strings.HasPrefix(got[i], c.want[i])
			}
			if !ok {
				t.Errorf("\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestSharesAreCheckedWithCallsOnly(t *testing.T) {
	j, run := good()
	run(nil)
	for _, r := range j.records {
		r.shots, r.windows = nil, nil
	}
	j.checks = nil
	j.run()
	for _, c := range j.checks {
		if c.Kept && (strings.Contains(c.What, "in answers") || strings.Contains(c.What, "in rows") || strings.Contains(c.What, "p90")) {
			t.Errorf("kept without a call: %+v", c)
		}
	}
}

func TestAShortFault(t *testing.T) {
	j, run := good()
	j.late, j.added = true, 300*time.Millisecond
	j.plan = Plan{Start: t0, Faults: []Fault{{after(20 * time.Second), after(80 * time.Second)}}, End: after(80 * time.Second)}
	checks := run(func(r *record) { r.orders = r.orders[:2] })
	if b := broken(checks); len(b) > 0 || len(checks) != 11 {
		t.Errorf("%d checks; %s", len(checks), strings.Join(b, "\n"))
	}
	// The first 40 s of the fault are not in the quantile.
	if last := checks[6]; !strings.HasPrefix(last.Got, "55 ms against 310 ms: 5.6 times") {
		t.Errorf("%+v", last)
	}
	if j.added = 600 * time.Millisecond; broken(run(func(r *record) { r.orders = r.orders[:2] }))[0] != "p90 at east at the fault's end, greedy against closest: 55 ms against 310 ms: 5.6 times lower" {
		t.Errorf("%q", broken(j.checks))
	}
}

// TestATableInTheLastWindow: it is in time, and leaves no whole window of the fault
// whose rows could tell.
func TestATableInTheLastWindow(t *testing.T) {
	const s = time.Second
	j, run := good()
	j.late, j.added = true, 300*time.Millisecond
	j.plan = Plan{Start: t0, Faults: []Fault{{after(20 * s), after(70 * s)}}, End: after(70 * s)}
	for lag, want := range map[time.Duration]int{0: 11, s / 2: 10} {
		checks := run(func(r *record) {
			r.orders = r.orders[:1]
			r.give(60*s, lag, row, 0)
		})
		if b := broken(checks); len(b) > 0 || len(checks) != want {
			t.Errorf("%v after the window: %d checks; %s", lag, len(checks), strings.Join(b, "\n"))
		}
	}
}

func TestPlans(t *testing.T) {
	d := durations{faults: 3, warm: time.Minute, fault: 3 * time.Minute, pause: 150 * time.Second, phase: width}
	start := after(3 * time.Second)
	p := newPlan(start, d, seeded(7))
	if q := newPlan(start, d, seeded(7)); !slices.Equal(p.Faults, q.Faults) {
		t.Error("another plan from the same seed")
	}
	last := start.Add(d.warm)
	for _, f := range p.Faults {
		if wait := f.From.Sub(last); wait < 0 || wait > 2*width || f.To.Sub(f.From) != d.fault {
			t.Errorf("%v to %v, after %v", f.From, f.To, last)
		}
		if e := f.closing(1); !e.After(f.From) || e.Sub(f.From) > width || !e.Equal(e.Truncate(width)) || f.closing(4).Sub(e) != 3*width {
			t.Errorf("a fault at %v: its first window ends at %v", f.From, e)
		}
		if !f.holds(f.From) || f.holds(f.To) || f.holds(f.From.Add(-1)) {
			t.Error("a fault holds from its beginning to before its end")
		}
		last = f.To.Add(d.pause)
	}
	if !p.End.Equal(last) {
		t.Errorf("the end is at %v", p.End)
	}
	d = durations{faults: 1, warm: 17 * time.Second, fault: time.Minute}
	if p := newPlan(start, d, seeded(7)); !p.Faults[0].From.Equal(after(20 * time.Second)) {
		t.Errorf("without a phase a fault begins with a window, not at %v", p.Faults[0].From)
	}
}
