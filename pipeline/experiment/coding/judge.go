package coding

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/report"
)

// point is what a policy came to at a load; nil if it was not run there, for it does not
// keep up.
func (s *StoreResult) point(policy string, load int) *Point {
	for i := range s.Points {
		if p := &s.Points[i]; p.Policy == policy && p.Load == load {
			return p
		}
	}
	return nil
}

// bestStatic is the static code with the least mean at a load: the envelope.
func (s *StoreResult) bestStatic(load int) *Point {
	return s.bestOf(load, func(*Point) bool { return true }, mean)
}

// bestOf is the static code with the least of a figure at a load, of those that will do.
func (s *StoreResult) bestOf(load int, do func(*Point) bool, of func(*Point) Estimate) *Point {
	var best *Point
	for i := range s.site.arms {
		if s.site.arms[i].static.K == 0 {
			continue
		}
		if p := s.point(s.site.arms[i].name, load); p != nil && do(p) && (best == nil || of(p).Value < of(best).Value) {
			best = p
		}
	}
	return best
}

// capacity is that of a policy.
func (s *StoreResult) capacity(policy string) *Capacity {
	i := slices.IndexFunc(s.Capacities, func(c Capacity) bool { return c.Policy == policy })
	return &s.Capacities[i]
}

// throughputOptimal is the static code that carries most.
func (s *StoreResult) throughputOptimal() string {
	best := ""
	for i := range s.site.arms {
		if a := &s.site.arms[i]; a.static.K > 0 && (best == "" || s.capacity(a.name).PerSecond.Value > s.capacity(best).PerSecond.Value) {
			best = a.name
		}
	}
	return best
}

// ratio is a figure of one point over that of another, by seed.
func ratio(a, b []float64) Estimate {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return estimate(out)
}

// ratios are those of a policy at a load; unknown where the other was not run.
func (s *StoreResult) overBest(policy string, load int) Estimate {
	return meanRatio(s.point(policy, load), s.bestStatic(load))
}

func meanRatio(a, b *Point) Estimate {
	if a == nil || b == nil {
		return estimate(nil)
	}
	return ratio(a.means, b.means)
}

func deviationRatio(a, b *Point) Estimate {
	if a == nil || b == nil {
		return estimate(nil)
	}
	return ratio(a.deviations, b.deviations)
}

// light is how many times the mean of the throughput-optimal static code is a policy's,
// at the least judged load.
func (s *StoreResult) light(policy string, load int) Estimate {
	return meanRatio(s.point(s.throughputOptimal(), load), s.point(policy, load))
}

// heavy is how many times as much a policy carries as the static code that is best at
// the least judged load.
func (s *StoreResult) heavy(policy string, load int) (times report.Figure, delayOptimal string) {
	best := s.bestStatic(load)
	if best == nil {
		return report.Unknown(), ""
	}
	return rounded(float64(s.capacity(policy).PerSecond.Value / s.capacity(best.Policy).PerSecond.Value)), best.Policy
}

// worst is the greatest, or least, estimate over loads, and where it is.
func worst(loads []int, most bool, of func(load int) Estimate) (Estimate, int) {
	var out Estimate
	at := -1
	for _, l := range loads {
		e := of(l)
		if e.Value.Known() && (at < 0 || (e.Value > out.Value) == most && e.Value != out.Value) {
			out, at = e, l
		}
	}
	if at < 0 {
		return estimate(nil), at
	}
	return out, at
}

func (r *Result) say(v Verdict) { r.Verdicts = append(r.Verdicts, v) }

// judge sets the paper's figures beside ours.
func (r *Result) judge() {
	r.Verdicts = nil
	for i := range r.Stores {
		s := &r.Stores[i]
		if !s.site.Judged {
			continue
		}
		for _, policy := range []string{TOFEC, Taught} {
			r.judgeDelays(s, policy)
			r.judgeShape(s, policy)
		}
	}
	r.judgeSteps()
	r.judgeThresholds()
}

func (r *Result) judgeDelays(s *StoreResult, policy string) {
	t, judged := &r.params.Targets, r.params.Judged
	least := judged[0]
	name := func(text string) string { return fmt.Sprintf("%s, %s: %s", s.Name, policy, text) }
	light, most, best := s.light(policy, least), s.mostLight(least), s.bestStatic(least)
	quickest := ""
	if q := s.quickest(); q != nil {
		quickest = fmt.Sprintf("; %s is quickest where requests never meet, %s ms", q.Policy, q.Mean.Text(1))
	}
	r.say(Verdict{
		Figure: name(fmt.Sprintf("mean of the throughput-optimal static over ours at %d %%", least)), Paper: fmt.Sprintf("%g [S]", t.Light), Ours: light.Text(2), Bound: most.Text(2),
		Reached: atLeast(t.Light, light.Value, most),
		Note:    fmt.Sprintf("%s carries most; the best static code there, %s, reaches %s", s.throughputOptimal(), best.name(), meanRatio(s.point(s.throughputOptimal(), least), best).Value.Text(2)) + quickest,
	})
	heavy, delayOptimal := s.heavy(policy, least)
	most = s.mostHeavy(delayOptimal)
	r.say(Verdict{
		Figure: name("requests a second carried, over those of the delay-optimal static"), Paper: fmt.Sprintf("> %g [S]", t.Heavy), Ours: heavy.Text(2), Bound: most.Value.Text(2),
		Reached: atLeast(t.Heavy, heavy, most),
		Note: fmt.Sprintf("%s is best at %d %%; it carries %s a second, ours %s; %s", delayOptimal, least,
			s.capacity(delayOptimal).PerSecond.Text(1), s.capacity(policy).PerSecond.Text(1), r.sustained(s, policy, delayOptimal)),
	})
	over, at := worst(judged, true, func(l int) Estimate { return s.overBest(policy, l) })
	var notes []string
	for _, l := range judged {
		notes = append(notes, fmt.Sprintf("%d %%: %s", l, s.overBest(policy, l).Text(3)))
	}
	r.say(Verdict{
		Figure: name("mean over the best static's, greatest of the judged loads"), Paper: fmt.Sprintf("≤ %g", t.Envelope), Ours: fmt.Sprintf("%s at %d %%", over.Text(3), at),
		Reached: held(at >= 0 && float64(over.Value) <= t.Envelope), Note: strings.Join(notes, "; "),
	})
}

// sustained says what the mean is at the highest load run that is as many times the
// delay-optimal code's capacity as the target says.
func (r *Result) sustained(s *StoreResult, policy, delayOptimal string) string {
	for _, l := range s.site.loads {
		if p := s.point(policy, l); p != nil && p.PerSecond >= r.params.Targets.Heavy*float64(s.capacity(delayOptimal).PerSecond.Value) {
			return fmt.Sprintf("at %s a second, %d %%, our mean is %s ms", report.Figure(p.PerSecond).Text(1), l, p.Mean.Text(1))
		}
	}
	return "no load that was run is as many times its capacity"
}

func (r *Result) judgeShape(s *StoreResult, policy string) {
	t, judged := &r.params.Targets, r.params.Judged
	name := func(text string) string { return fmt.Sprintf("%s, %s: %s", s.Name, policy, text) }
	share, at := worst(judged, false, func(l int) Estimate {
		if p := s.point(policy, l); p != nil {
			return p.Neighbours
		}
		return estimate(nil)
	})
	var notes []string
	for _, l := range judged {
		p := s.point(policy, l)
		if p == nil {
			continue
		}
		text := fmt.Sprintf("%d %%: k %d–%d %s", l, p.K1, p.K1+1, p.Neighbours.Value.Text(3))
		if float64(p.Neighbours.Value) < t.Neighbours {
			text += " in transition, " + shares(p.K)
		}
		notes = append(notes, text)
	}
	if elsewhere := s.transitions(policy, judged, t.Neighbours); elsewhere != "" {
		notes = append(notes, "between the judged loads: "+elsewhere)
	}
	r.say(Verdict{
		Figure: name("share of requests on two neighbouring k, least of the judged loads"), Paper: fmt.Sprintf("> %g [S]", t.Neighbours), Ours: fmt.Sprintf("%s at %d %%", share.Text(3), at),
		Reached: held(float64(share.Value) >= t.Neighbours), Note: strings.Join(notes, "; "),
	})
	r.judgeDeviation(s, policy)
}

// judgeDeviation judges how much steadier than greedy a policy is.
func (r *Result) judgeDeviation(s *StoreResult, policy string) {
	t := &r.params.Targets
	light := slices.DeleteFunc(slices.Clone(r.params.Judged), func(l int) bool { return l > t.Until })
	ours := func(l int) Estimate { return deviationRatio(s.point(Greedy, l), s.point(policy, l)) }
	most := func(l int) Estimate { return deviationRatio(s.point(Greedy, l), s.steadiest(l, t.Envelope)) }
	by, at := worst(light, false, ours)
	bound, _ := worst(light, false, most)
	var notes []string
	var reached []Reach
	for _, l := range light {
		reached = append(reached, atLeast(t.Deviation, ours(l).Value, most(l)))
		notes = append(notes, fmt.Sprintf("%d %%: %s of %s by %s", l, ours(l).Text(2), most(l).Text(2), s.steadiest(l, t.Envelope).name()))
	}
	r.say(Verdict{
		Figure: fmt.Sprintf("%s, %s: standard deviation of greedy over ours, least of the judged loads up to %d %%", s.Name, policy, t.Until),
		Paper:  "2 to 3 [S]", Ours: fmt.Sprintf("%s at %d %%", by.Text(2), at), Bound: bound.Text(2), Reached: all(reached), Note: strings.Join(notes, "; "),
	})
}

// transitions lists the loads beside the judged ones at which fewer requests than a
// share are on two neighbouring k.
func (s *StoreResult) transitions(policy string, judged []int, share float64) string {
	var out []string
	for _, l := range s.site.loads {
		if p := s.point(policy, l); p != nil && !slices.Contains(judged, l) && float64(p.Neighbours.Value) < share {
			out = append(out, fmt.Sprintf("%d %%: %s", l, p.Neighbours.Value.Text(3)))
		}
	}
	return strings.Join(out, ", ")
}

// shares prints those of k that are not nothing.
func shares(k []report.Figure) string {
	var out []string
	for i, v := range k {
		if v >= 0.005 {
			out = append(out, fmt.Sprintf("k=%d %s", i+1, v.Text(2)))
		}
	}
	return strings.Join(out, " ")
}

// judgeSteps judges tofec; what stands beside it has nothing to reach.
func (r *Result) judgeSteps() {
	t := &r.params.Targets
	for _, policy := range []string{TOFEC, ByArrivals} {
		var most report.Figure
		var notes []string
		reached := true
		for _, s := range r.Steps {
			if s.Policy != policy {
				continue
			}
			for _, v := range []report.Figure{s.Up, s.Down} {
				reached = reached && v.Known() && float64(v) <= t.Seconds
				most = report.Figure(math.Max(float64(most), float64(v))) // Unknown stays.
			}
			notes = append(notes, fmt.Sprintf("%d %% (k %s) to %d %% (k %s): %s s up, %s s down", s.Low, s.KLow.Text(1), s.High, s.KHigh.Text(1), s.Up.Text(2), s.Down.Text(2)))
		}
		verdict := Unasked
		if policy == TOFEC {
			verdict = held(reached && len(notes) > 0)
		}
		r.say(Verdict{
			Figure: fmt.Sprintf("%s, %s: seconds from a step of the load to the new point, most of the steps", r.Stores[0].Name, policy), Paper: "seconds [S]", Ours: most.Text(2),
			Reached: verdict, Note: strings.Join(notes, "; "),
		})
	}
}

func (r *Result) judgeThresholds() {
	same, known := true, false
	for _, t := range r.Thresholds {
		if t.Paper.Known() {
			known = true
			same = same && math.Abs(float64(t.Paper-t.ByPaper)) <= 0.0005+1e-9
		}
	}
	ours := "–"
	if known {
		ours = sheet.Yes(same)
	}
	r.say(Verdict{Figure: "uncorrected thresholds agree with PAPERS §3.4 to three digits", Paper: "yes [D]", Ours: ours, Reached: held(known && same), Note: "see the table of thresholds"})
}
