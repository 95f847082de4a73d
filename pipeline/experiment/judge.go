package experiment

import (
	"fmt"
	"strings"

	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/report"
)

// judge sets the paper's figures (PAPERS §1.5) beside ours, on the standard
// friend model.
func (r *Result) judge() {
	for _, c := range r.Cases {
		if c.Target > 0 {
			r.judgeReduction(&c)
		}
	}
	r.judgeRoom()
	r.judgeLatency()
	for _, c := range r.Cases {
		r.judgeHours(&c)
	}
	r.judgeOvershoot()
	r.judgeStorage()
	r.judgeTraffic()
	r.judgeObjective()
}

func (r *Result) say(figure, paper, ours, reached, note string) {
	r.Verdicts = append(r.Verdicts, sheet.Verdict{Figure: figure, Paper: paper, Ours: ours, Reached: reached, Note: note})
}

// judgeReduction compares the median reduction with the target.
func (r *Result) judgeReduction(c *Case) {
	for _, strategy := range []string{TMatch, Optimal, Advised(TMatch, r.Advice), Advised(Optimal, r.Advice)} {
		s := spreadOf(r.of(r.Standard, c.Name, strategy), reduction)
		if !s.Median.Known() {
			continue
		}
		var others []string
		for _, m := range r.Models {
			if m.Name != r.Standard {
				if o := spreadOf(r.of(m.Name, c.Name, strategy), reduction); o.Median.Known() {
					others = append(others, m.Name+" "+o.Text(1))
				}
			}
		}
		reached, note := sheet.Yes(float64(s.Median) >= c.Target), ""
		if strategy == Optimal || strategy == Advised(Optimal, r.Advice) {
			// The paper has no such policy: there is nothing for it to reach.
			reached = ""
		}
		if strategy == Advised(TMatch, r.Advice) {
			note = "the paper's advice: plan with a capacity a little under the real one; "
		}
		if len(others) > 0 {
			note += "other friend models: " + strings.Join(others, ", ")
		}
		r.say(fmt.Sprintf("reduction of execution delay, case %s, %s, %%", c.Name, strategy), fmt.Sprintf("> %g", c.Target), s.Text(1), reached, note)
	}
}

// judgeRoom says where all capacity together exceeds the load.
func (r *Result) judgeRoom() {
	for _, c := range r.Cases {
		peak := spreadOf(r.of(r.Standard, c.Name, Baseline), func(x *Run) report.Figure { return report.Figure(100 * x.Peak) })
		if !peak.Median.Known() {
			continue
		}
		most := spreadOf(r.of(r.Standard, c.Name, Clairvoyant), reduction)
		note := "all capacity exceeds the load of every hour: any balancer that knew the hour ahead would reach 100 %"
		if peak.Most > 100 {
			note = "in the busiest hour the load exceeds all capacity"
		}
		r.say(fmt.Sprintf("busiest hour of all sites against all capacity, case %s, %%", c.Name), "–", peak.Text(1), "",
			note+"; clairvoyant: "+most.Text(1))
	}
}

// judgeLatency compares mean latency delays in the overhead cases.
func (r *Result) judgeLatency() {
	for _, c := range r.Cases {
		ours := spreadOf(r.of(r.Standard, c.Name, TMatch), latency)
		base := spreadOf(r.of(r.Standard, c.Name, Baseline), latency)
		alone := spreadOf(r.of(r.Standard, c.Name, DistanceOnly), latency)
		if !ours.Median.Known() {
			continue
		}
		r.say("mean latency delay, case "+c.Name+", ms", "≤ 50", ours.Text(1), sheet.Yes(ours.Most <= 50), "optimal: "+
			spreadOf(r.of(r.Standard, c.Name, Optimal), latency).Text(1))
		above, below := 0, 0
		for i, x := range r.of(r.Standard, c.Name, TMatch) {
			if x.Latency.Mean > r.of(r.Standard, c.Name, Baseline)[i].Latency.Mean {
				above++
			}
			if x.Latency.Mean < r.of(r.Standard, c.Name, DistanceOnly)[i].Latency.Mean {
				below++
			}
		}
		n := len(r.of(r.Standard, c.Name, TMatch))
		r.say("  above the baseline, case "+c.Name, "yes", fmt.Sprintf("%d of %d days", above, n), sheet.Yes(above == n), "baseline: "+base.Text(1))
		r.say("  below distance only, case "+c.Name, "yes", fmt.Sprintf("%d of %d days", below, n), sheet.Yes(below == n), "distance only: "+alone.Text(1))
	}
}

// judgeHours compares the hours in which owners are moved out of sites over
// capacity.
func (r *Result) judgeHours(c *Case) {
	runs := r.of(r.Standard, c.Name, TMatch)
	if len(runs) == 0 {
		return
	}
	count := make([]int, 24)
	late := 0
	for _, x := range runs {
		for _, h := range x.Balancing {
			count[h]++
			if afterPeak(h) {
				late++
			}
		}
	}
	paper := c.Hours
	if paper == "" {
		paper = "none"
	}
	ours := hours(count, len(runs))
	reached := ""
	if c.Target == 0 {
		reached = sheet.Yes(ours == "none")
	}
	r.say("balancing hours, case "+c.Name+", UTC", paper, ours, reached,
		"hours at whose beginning owners leave a site that was over; with the part of the days")
	if c.Target > 0 {
		r.say("  after the peak at 20 h, case "+c.Name, "none", fmt.Sprintf("%d in %d days", late, len(runs)), sheet.Yes(late == 0), "from 21 h to 8 h")
	}
}

// afterPeak reports whether an hour lies between the day's peak and its end.
func afterPeak(h int) bool { return h >= 21 || h < 8 }

// hours prints hours with the share of days in which they were counted, in the
// order of the paper's day, from 8 h.
func hours(count []int, days int) string {
	var out []string
	for i := range 24 {
		h := (i + 8) % 24
		if count[h] > 0 {
			out = append(out, fmt.Sprintf("%d (%d %%)", h, (100*count[h]+days/2)/days))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

func (r *Result) judgeOvershoot() {
	last := r.Cases[len(r.Cases)-1]
	runs := r.of(r.Standard, last.Name, TMatch)
	worst, seen := 0.0, map[string]bool{}
	for _, x := range runs {
		worst = max(worst, x.Overshoot)
		for site := range x.OvershootAt {
			seen[site] = true
		}
	}
	var where []string
	for _, s := range r.Sites {
		if seen[s] {
			where = append(where, s)
		}
	}
	ours := "none"
	if len(where) > 0 {
		ours = fmt.Sprintf("%s, at most %.1f %% over", strings.Join(where, ", "), 100*worst)
	}
	r.say("overshoot at a site that took owners in, case "+last.Name, "South Central, 12–15 h", ours, "", "")
}

func (r *Result) judgeStorage() {
	base, ours := r.of(r.Standard, r.Cases[0].Name, Baseline), r.of(r.Standard, r.Cases[0].Name, TMatch)
	if len(base) == 0 || base[0].Stored == 0 {
		return
	}
	part := float64(ours[0].Stored) / float64(base[0].Stored)
	r.say("storage against the baseline", "1/3", fmt.Sprintf("%.4f", part), sheet.Yes(part < 0.3334 && part > 0.3333),
		"one copy against one a site; copies that wait for their deletion are not counted")
}

// judgeTraffic compares traffic between sites, an hour (PAPERS §1.2, 6).
func (r *Result) judgeTraffic() {
	for _, c := range r.Cases {
		base, ours := spreadOf(r.of(r.Standard, c.Name, Baseline), mbAnHour), spreadOf(r.of(r.Standard, c.Name, TMatch), mbAnHour)
		if !ours.Median.Known() {
			continue
		}
		r.say("traffic between sites, case "+c.Name+", MB an hour", "W·2·1 KB against Σ K·1 KB", base.Text(2)+" against "+ours.Text(2), "",
			"the baseline sends writes on to two slaves, ours moves the whole history of each owner that moves, L-matches included; optimal: "+
				spreadOf(r.of(r.Standard, c.Name, Optimal), mbAnHour).Text(2))
	}
}

// judgeObjective compares tmatch and optimal on the printed objective.
func (r *Result) judgeObjective() {
	for _, c := range r.Cases {
		worse, windows, exact, all := 0, 0, 0, 0
		gap, said := report.Figure(0), report.Figure(0)
		for i := range r.Runs {
			x := &r.Runs[i]
			if x.Case != c.Name || x.Plans == nil {
				continue
			}
			switch x.Strategy {
			case TMatch:
				worse, windows = worse+x.Plans.Worse, windows+x.Plans.Windows
			case Optimal:
				exact, all = exact+x.Plans.Exact, all+x.Plans.Windows
				gap, said = most(gap, x.Plans.Gap), most(said, x.Plans.Said)
			}
		}
		if windows == 0 {
			continue
		}
		r.say("windows in which optimal is worse than tmatch from the same state, case "+c.Name, "–", fmt.Sprintf("%d of %d", worse, windows), sheet.Yes(worse == 0),
			"on the printed objective; all friend models")
		r.say("  greatest gap of optimal to the least objective", "–", fmt.Sprintf("%.2g (it says %.2g)", float64(gap), float64(said)), "",
			fmt.Sprintf("least found apart from the policy, proven exact in %d of %d windows", exact, all))
	}
}
