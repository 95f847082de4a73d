package split

import (
	"fmt"
	"time"

	"penstock/pipeline/demo/services"
)

// What is promised (issue: make split-demo).
const (
	soon, mostSoon   = 2, 0.7 // windows, and of the share before
	later, mostLater = 4, 0.1
	timesClosest     = 3.0
	backWithin       = 90 * time.Second
	backTo           = 0.05
	mostProcessor    = 0.3
	mostProbes       = 0.1
	fewestCalls      = 20 // in a window, for a share of calls to say anything
)

// Check is one promise and what was found.
type Check struct {
	Fault int    `json:"fault,omitempty"` // from 1; 0: of the whole run
	What  string `json:"what"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	Kept  bool   `json:"kept"`
}

// judge compares what was seen with what is promised. It is pure.
type judge struct {
	plan      Plan
	component string // that gets slower
	site      string // at which it does
	cooldown  time.Duration
	added     time.Duration
	// late: the fault is too short for a quantile over all of it. The one from when the
	// row had to be moved counts, and since it is of few requests, which a busy machine
	// makes later by itself, half of what was added must be gone from it.
	late    bool
	records []*record // the first is the policy that promises something
	checks  []Check
}

func (j *judge) add(fault int, kept bool, what, want, format string, args ...any) {
	j.checks = append(j.checks, Check{Fault: fault, What: what, Want: want, Got: fmt.Sprintf(format, args...), Kept: kept})
}

// run makes all checks of faults.
func (j *judge) run() {
	for i, f := range j.plan.Faults {
		for _, from := range services.Callers(j.component) {
			j.shares(i+1, f, link{from, j.site, j.component})
		}
		j.quantiles(i+1, f)
	}
	for _, r := range j.records {
		turns := r.reversals(j.cooldown)
		got := "none"
		if len(turns) > 0 {
			got = fmt.Sprintf("%d, such as %s", len(turns), turns[0])
		}
		j.add(0, len(turns) == 0, r.policy+": shares that go to and fro within a cooldown of "+j.cooldown.String(), "none", "%s", got)
	}
}

// shares checks a link's share of the slowed replica in a fault and after it.
func (j *judge) shares(n int, f Fault, l link) {
	r := j.records[0]
	before, _ := r.force(l, j.site, f.From, f.From)
	for _, c := range []struct {
		windows int
		most    float64
	}{{soon, mostSoon}, {later, mostLater}} {
		closed := f.closing(c.windows)
		if !closed.Before(f.To) {
			continue
		}
		share, since := r.force(l, j.site, closed, closed.Add(width))
		if since.Before(closed) {
			since = closed // It was so before.
		}
		most := c.most * before
		want := fmt.Sprintf("at most %.2f", most)
		what := fmt.Sprintf("%s: share of %s %d windows after the fault began", l, j.site, c.windows)
		j.add(n, share <= most, what+", commanded", want, "%.2f of %.2f before, in force %.1f s after the window", share, before, since.Sub(closed).Seconds())
		sent, of := r.sent(j.site, j.site, since, since.Add(width))
		j.add(n, of >= fewestCalls && sent <= most, what+", in answers", want, "%.2f of %d calls", sent, of)
		if next := since.Add(width - 1).Truncate(width); next.Add(width).After(f.To) {
			continue // A table that came in time, but no whole window of the fault is left to be seen.
		}
		rows, ok := r.rows(l, j.site, since)
		j.add(n, ok && rows <= most, what+", in rows", want, "%s", shareText(rows, ok))
	}
	at := f.To.Add(backWithin)
	if at.Add(width).After(j.plan.End) {
		return
	}
	share, _ := r.force(l, j.site, at, at)
	least := before - backTo
	want := fmt.Sprintf("at least %.2f", least)
	what := fmt.Sprintf("%s: share of %s %v after the fault's end", l, j.site, backWithin)
	j.add(n, share >= least, what+", commanded", want, "%.2f, %s", share, r.backAfter(l, j.site, f.To, least))
	sent, of := r.sent(j.site, j.site, at, at.Add(width))
	j.add(n, of >= fewestCalls && sent >= least, what+", in answers", want, "%.2f of %d calls", sent, of)
}

// backAfter says when a share was back.
func (r *record) backAfter(l link, site string, end time.Time, least float64) string {
	for d := time.Duration(0); d <= 2*backWithin; d += 100 * time.Millisecond {
		at := end.Add(d)
		if share, _ := r.force(l, site, at, at); share >= least {
			return fmt.Sprintf("back after %.0f s", d.Seconds())
		}
	}
	return "not back"
}

func shareText(share float64, ok bool) string {
	if !ok {
		return "no calls"
	}
	return fmt.Sprintf("%.2f, probes included", share)
}

// span is the time over which quantiles of a fault are taken.
func (j *judge) span(f Fault) (from, to time.Time, name string) {
	if j.late {
		return f.closing(later), f.To, "at the fault's end"
	}
	return f.From, f.To, "over the fault"
}

// quantiles compares the slowest tenth of requests that entered at the fault's site.
func (j *judge) quantiles(n int, f Fault) {
	from, to, name := j.span(f)
	ours := j.records[0]
	p90, of := ours.quantile(0.9, j.site, from, to)
	for _, r := range j.records[1:] {
		theirs, _ := r.quantile(0.9, j.site, from, to)
		times := float64(theirs) / float64(max(p90, 1))
		what := fmt.Sprintf("p90 at %s %s, %s against %s", j.site, name, ours.policy, r.policy)
		want, kept := "lower", times > 1
		if r.policy == "closest" {
			want, kept = fmt.Sprintf("at least %.0f times lower", timesClosest), times >= timesClosest
			if j.late {
				want, kept = fmt.Sprintf("at least %v lower", j.added/2), theirs-p90 >= j.added/2
			}
		}
		j.add(n, kept && of >= fewestCalls, what, want, "%.0f ms against %.0f ms: %.1f times lower", ms(p90), ms(theirs), times)
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
