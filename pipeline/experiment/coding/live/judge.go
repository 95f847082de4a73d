package live

import (
	"fmt"
	"math"
	"strings"
)

// What is promised (issue: must show 2 and 4).
const (
	leastGain = 2.5 // of the mean delay at the least load, against (1,1)
	leastRate = 3.0 // times what (12,6) answers, at the greatest load
	// mostLate is how late a sleeper may wake up on average (ms), for each unit of scale:
	// a read waits for several timers, the least of which is 39 ms.
	mostLate = 1
	// deviations is how many standard deviations of what chance makes of a mean are added
	// to what is allowed: it is no failure.
	deviations = 3
	// oneLoad: a check that is of no single load.
	oneLoad = 0
)

// Check is one promise and what was found.
type Check struct {
	Percent int    `json:"percent,omitempty"` // the load; 0: of the whole run
	What    string `json:"what"`
	Want    string `json:"want"`
	Got     string `json:"got"`
	Kept    bool   `json:"kept"`
}

func (r *Result) add(percent int, kept bool, what, want, format string, args ...any) {
	r.Checks = append(r.Checks, Check{Percent: percent, What: what, Want: want, Got: fmt.Sprintf(format, args...), Kept: kept})
}

// judge compares what was measured with what is promised.
func (r *Result) judge() error {
	r.light(r.Points[0].Percent)
	r.heavy(r.Points[len(r.Points)-1].Percent)
	for i := 0; i < len(r.Points); i += len(policies) {
		r.envelope(r.Points[i].Percent)
	}
	for i := range r.Points {
		r.simulated(&r.Points[i])
	}
	got := "none"
	if len(r.Wrong) > 0 {
		got = fmt.Sprintf("such as: %s", r.Wrong[0])
	}
	r.add(oneLoad, len(r.Wrong) == 0, "reads that failed or gave other bytes than were written", "none", "%s", got)
	for _, m := range r.Machine {
		if m.Late > mostLate*r.Scale {
			r.Void = append(r.Void, fmt.Sprintf("%s; more than %.1f ms", &m, mostLate*r.Scale))
		}
	}
	switch broken := r.broken(); {
	case len(r.Void) > 0:
		return fmt.Errorf("%w: %s", ErrVoid, strings.Join(r.Void, "; "))
	case broken > 0:
		return fmt.Errorf("%w: %d of %d", ErrPromise, broken, len(r.Checks))
	}
	return nil
}

func (r *Result) broken() (n int) {
	for _, c := range r.Checks {
		if !c.Kept {
			n++
		}
	}
	return n
}

// light compares with the code that carries most, where hardly anything waits.
func (r *Result) light(percent int) {
	ours, basic := r.point("tofec", percent), r.point("(1,1)", percent)
	gain := basic.Mean / ours.Mean
	r.add(percent, gain >= leastGain, "mean delay, (1,1) over tofec", fmt.Sprintf("at least %.1f", leastGain),
		"%.2f: %.0f ms over %.0f ms; without queues the model gives %.2f", gain, basic.Mean, ours.Mean, r.capacity("(1,1)").Delay/r.capacity("(12,6)").Delay)
}

// heavy compares with the code that is fastest without a queue.
func (r *Result) heavy(percent int) {
	ours, wide := r.point("tofec", percent), r.point("(12,6)", percent)
	times := ours.PerSecond / r.capacity("(12,6)").PerSecond
	if times < leastRate {
		return // the load is none at which that could show
	}
	r.add(percent, ours.Refused == 0, "requests that tofec refused", "none", "%d of %d", ours.Refused, ours.Requests)
	r.add(percent, wide.Refused > 0, "requests that (12,6) refused", "some", "%d of %d", wide.Refused, wide.Requests)
	rate, chance := ours.Served/wide.Served, leastRate/math.Sqrt(float64(ours.Requests))
	r.add(percent, rate >= leastRate-chance, "answers a second, tofec over (12,6)", fmt.Sprintf("at least %.2f, by chance %.2f less", leastRate, chance),
		"%.2f: %.1f over %.1f; by the model at least %.2f", rate, ours.Served, wide.Served, times)
}

// envelope compares with the best of the codes at a load.
func (r *Result) envelope(percent int) {
	ours := r.point("tofec", percent)
	var best *Point
	for _, p := range policies[1:] {
		if x := r.point(p.name, percent); x.Simulated.KeepsUp && (best == nil || x.Mean < best.Mean) {
			best = x
		}
	}
	if best == nil {
		return
	}
	over := ours.Mean / best.Mean
	chance := math.Hypot(ours.Simulated.chance(), best.Simulated.chance())
	r.add(percent, over <= 1+r.best+deviations*chance, "mean delay, tofec over the best of the codes", within("at most %.2f", 1+r.best, chance),
		"%.2f: %.0f ms over %.0f ms of %s", over, ours.Mean, best.Mean, best.Policy)
}

// simulated compares with the simulation: a mean, and of a code that does not keep up
// what it carries.
func (r *Result) simulated(p *Point) {
	s := p.Simulated
	if !s.KeepsUp {
		off := p.Served/s.Served - 1
		r.add(p.Percent, math.Abs(off) <= r.near, p.Policy+": answers a second against the simulation, saturated", fmt.Sprintf("within %.0f %%", 100*r.near),
			"%+.1f %%: %.1f against %.1f", 100*off, p.Served, s.Served)
		return
	}
	off := p.Mean/s.Mean - 1
	r.add(p.Percent, math.Abs(off) <= r.near+deviations*s.chance(), p.Policy+": mean delay against the simulation", within("within %.2f", r.near, s.chance()),
		"%+.1f %%: %.1f ms against %.1f ms", 100*off, p.Mean, s.Mean)
}

// chance is the share by which means differ by chance.
func (s *Simulated) chance() float64 { return s.Error / s.Mean }

// within says what is allowed, and what chance adds to it.
func within(format string, allowed, chance float64) string {
	return fmt.Sprintf(format+", by chance %.2f more", allowed, deviations*chance)
}
