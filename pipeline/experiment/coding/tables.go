package coding

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/report"
)

// Tables are what the result says, in order.
func (r *Result) Tables() []sheet.Table {
	out := []sheet.Table{verdictTable(fmt.Sprintf(
		"The paper's figures beside ours: mean ± half of a 95 %% interval over %d seeds", r.Seeds), r.Verdicts)}
	out[0].Notes = []string{
		"The best static is that with the least mean over all seeds, of every code that keeps up, so a little of its luck counts for it. " +
			"\"" + TOFEC + "\" is told the store's model, \"" + Taught + "\" begins from a wrong one and learns from windows.",
		"\"any code\" is the most that a code comes to, of all simulated here: of means the quickest code's where requests never meet, which no policy is below, " +
			"whatever codes it takes; of capacities the greatest; of standard deviations the steadiest static code's whose mean is near enough to the best one's. " +
			"Where that is too little by more than its interval a figure is \"" + string(OutOfReach) + "\".",
	}
	out = append(out, r.storesTable())
	for i := range r.Stores {
		s := &r.Stores[i]
		if !s.site.Judged {
			out = append(out, s.meansTable(r.Seeds))
			continue
		}
		out = append(out, s.meansTable(r.Seeds))
		for _, x := range []struct {
			title string
			of    func(*Point) Estimate
		}{
			{"90th percentile, ms", func(p *Point) Estimate { return p.P90 }},
			{"99th percentile, ms", func(p *Point) Estimate { return p.P99 }},
			{"standard deviation, ms", func(p *Point) Estimate { return p.SD }},
			{"US dollars for a million requests", func(p *Point) Estimate { return p.USD }},
		} {
			out = append(out, s.byLoad(s.Name+": "+x.title, s.shown(), func(p *Point) string { return p.of(x.of).Text(1) }))
		}
		out = append(out, s.detailTable(TOFEC), s.detailTable(Taught), s.staticsTable(), s.capacityTable())
	}
	return append(out, r.checkTable(), r.stepTable(), r.rampTable(), r.learningTable(), r.thresholdTable())
}

// Text prints the tables.
func (r *Result) Text(w io.Writer) error { return sheet.Text(w, r.Tables()) }

// of is a figure's value; unknown of no point.
func (p *Point) of(of func(*Point) Estimate) report.Figure {
	if p == nil {
		return report.Unknown()
	}
	return of(p).Value
}

func mean(p *Point) Estimate { return p.Mean }

// shown are the policies that stand side by side: all but most static codes.
func (s *StoreResult) shown() []string {
	out := []string{"(1,1)", "(2,1)", s.bestStatic(s.site.loads[0]).Policy}
	for i := range s.site.arms {
		if a := &s.site.arms[i]; a.static.K == 0 {
			out = append(out, a.name)
		}
	}
	return out
}

// byLoad is a table of policies by load.
func (s *StoreResult) byLoad(title string, policies []string, cell func(*Point) string) sheet.Table {
	t := sheet.Table{Title: title, Head: []string{"load, %"}}
	for _, l := range s.site.loads {
		row := []string{strconv.Itoa(l)}
		for _, p := range policies {
			row = append(row, cell(s.point(p, l)))
		}
		t.Rows = append(t.Rows, row)
	}
	for _, p := range policies {
		name := p
		if p == "(2,1)" {
			name += " replication"
		}
		t.Head = append(t.Head, name)
	}
	return t
}

// meansTable has means beside the envelope.
func (s *StoreResult) meansTable(seeds int) sheet.Table {
	policies := s.shown()
	t := s.byLoad(fmt.Sprintf("%s: mean, ms, %d seeds; full load is %s a second, a request %s MB", s.Name, seeds, report.Figure(s.PerSecond).Text(1), report.Figure(s.SizeMB).Text(3)),
		policies, func(p *Point) string { return p.of(mean).Text(1) })
	t.Notes = []string{s.Text}
	ours := []string{Taught}
	if s.site.arm(TOFEC) != nil {
		ours = []string{TOFEC, Taught}
	}
	t.Head = append(t.Head, "best static", "its mean, ms")
	for _, p := range ours {
		t.Head = append(t.Head, p+" over it")
	}
	for i, l := range s.site.loads {
		best := s.bestStatic(l)
		name := "–"
		if best != nil {
			name = best.Policy
		}
		t.Rows[i] = append(t.Rows[i], name, best.of(mean).Text(1))
		for _, p := range ours {
			t.Rows[i] = append(t.Rows[i], s.overBest(p, l).Text(3))
		}
	}
	return t
}

// detailTable is all of one policy.
func (s *StoreResult) detailTable(policy string) sheet.Table {
	t := sheet.Table{
		Title: fmt.Sprintf("%s: %s in detail", s.Name, policy),
		Head:  []string{"load, %", "a second", "mean, ms", "sd, ms", "p50", "p90", "p99", "waiting", "busy, %", "tasks a request", "US dollars a million", "two neighbours", "k", "shares of k"},
	}
	for _, l := range s.site.loads {
		p := s.point(policy, l)
		if p == nil {
			continue
		}
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(l), report.Figure(p.PerSecond).Text(1), p.Mean.Text(1), p.SD.Text(1), p.P50.Value.Text(1), p.P90.Text(1), p.P99.Text(1), p.Backlog.Value.Text(3),
			(100 * p.Busy.Value).Text(1), p.Tasks.Value.Text(2), p.USD.Value.Text(2), p.Neighbours.Text(3), fmt.Sprintf("%d–%d", p.K1, p.K1+1), shares(p.K),
		})
	}
	return t
}

// staticsTable is the mean of every static code at every load.
func (s *StoreResult) staticsTable() sheet.Table {
	t := sheet.Table{Title: s.Name + ": mean of every static code, ms, by load; – where it does not keep up", Head: []string{"code"}}
	for _, l := range s.site.loads {
		t.Head = append(t.Head, strconv.Itoa(l)+" %")
	}
	for i := range s.site.arms {
		a := &s.site.arms[i]
		if a.static.K == 0 {
			continue
		}
		row := []string{a.name}
		for _, l := range s.site.loads {
			row = append(row, s.point(a.name, l).of(mean).Text(1))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// capacityTable is what each policy carries.
func (s *StoreResult) capacityTable() sheet.Table {
	t := sheet.Table{
		Title: s.Name + ": requests a second that a policy carries",
		Head:  []string{"policy", "measured", "L/U of PAPERS §3.3 [D]", "of (1,1), %"},
		Notes: []string{"Measured with requests that always wait; L/U is for tasks that begin together, which they do not when connections become idle one by one."},
	}
	whole := s.capacity("(1,1)").PerSecond.Value
	for i := range s.Capacities {
		c := &s.Capacities[i]
		formula := "–"
		if c.Formula > 0 {
			formula = report.Figure(c.Formula).Text(1)
		}
		t.Rows = append(t.Rows, []string{c.Policy, c.PerSecond.Text(1), formula, (100 * c.PerSecond.Value / whole).Text(1)})
	}
	return t
}

// storesTable is what all stores come to.
func (r *Result) storesTable() sheet.Table {
	judged := r.params.Judged
	t := sheet.Table{
		Title: "All stores: light load, heavy load, envelope, neighbours and greedy, as above",
		Head:  []string{"store", "policy", fmt.Sprintf("gain at %d %%", judged[0]), "carries, times", "of", "mean over the best static's, most", "at, %", "two neighbours, least", "at, %", "greedy's sd over ours, least", "at, %"},
	}
	for i := range r.Stores {
		s := &r.Stores[i]
		for _, policy := range []string{TOFEC, Taught} {
			if s.site.arm(policy) == nil {
				continue
			}
			heavy, of := s.heavy(policy, judged[0])
			over, at := worst(judged, true, func(l int) Estimate { return s.overBest(policy, l) })
			share, shareAt := worst(judged, false, func(l int) Estimate {
				return s.point(policy, l).estimate(func(p *Point) Estimate { return p.Neighbours })
			})
			by, byAt := worst(judged, false, func(l int) Estimate {
				if l > r.params.Targets.Until {
					return estimate(nil)
				}
				return deviationRatio(s.point(Greedy, l), s.point(policy, l))
			})
			t.Rows = append(t.Rows, []string{
				s.Name, policy, s.light(policy, judged[0]).Text(2), heavy.Text(2), of, over.Text(3), strconv.Itoa(at), share.Text(3), strconv.Itoa(shareAt), by.Text(2), strconv.Itoa(byAt),
			})
		}
		t.Notes = append(t.Notes, s.Name+": "+s.Text)
	}
	return t
}

// estimate is a figure; unknown of no point.
func (p *Point) estimate(of func(*Point) Estimate) Estimate {
	if p == nil {
		return estimate(nil)
	}
	return of(p)
}

// check are the figures of PAPERS §3.5 [D], mean and p99 in ms by load; 0 where its
// codes did not keep up.
var check = []struct {
	policy string
	ours   string
	means  [7]int
	p99    [7]int
}{
	{"(1,1)", "(1,1)", [7]int{127, 127, 127, 127, 128, 135, 159}, [7]int{385, 385, 385, 385, 386, 395, 443}},
	{"(12,6)", "(12,6)", [7]int{42, 71}, [7]int{76, 212}},
	{"(6,3)", "(6,3)", [7]int{51, 55, 80}, [7]int{85, 103, 223}},
	{"(3,2)", "(3,2)", [7]int{71, 72, 74, 86}, [7]int{151, 152, 156, 197}},
	{"TOFEC, thresholds ×1, a = 0.02", ByPaper, [7]int{42, 54, 71, 91, 121, 151, 182}, [7]int{75, 115, 153, 214, 296, 385, 478}},
	{"TOFEC, thresholds ×0.25, a = 0.02", TOFEC, [7]int{43, 54, 69, 87, 109, 130, 158}, [7]int{76, 107, 154, 227, 299, 382, 424}},
	{"greedy", Greedy, [7]int{48, 69, 88, 100, 111, 127, 151}, [7]int{151, 256, 318, 337, 353, 386, 427}},
}

// checkLoads are the loads of those figures, per cent.
var checkLoads = [7]int{5, 20, 35, 50, 65, 80, 90}

// checkTable sets them beside ours.
func (r *Result) checkTable() sheet.Table {
	s := &r.Stores[0]
	t := sheet.Table{
		Title: s.Name + ": the check simulation of PAPERS §3.5 [D] beside ours, mean/p99, ms: its figure | ours",
		Head:  []string{"policy there", "here"},
		Notes: []string{"There one seed of 30,000 requests with the default read fit; its backlog is smoothed by 0.02 at arrivals, the paper's here by 0.01 and ours over time. In place of its ×0.25 ours are corrected for the connections."},
	}
	for _, l := range checkLoads {
		t.Head = append(t.Head, strconv.Itoa(l)+" %")
	}
	for _, c := range check {
		row := []string{c.policy, c.ours}
		for i, l := range checkLoads {
			p := s.point(c.ours, l)
			ours := p.of(mean).Text(0) + "/" + p.of(func(p *Point) Estimate { return p.P99 }).Text(0)
			theirs := "–"
			if c.means[i] > 0 {
				theirs = fmt.Sprintf("%d/%d", c.means[i], c.p99[i])
			}
			row = append(row, theirs+" | "+ours)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (r *Result) stepTable() sheet.Table {
	c := &r.params.Course
	t := sheet.Table{
		Title: fmt.Sprintf("%s: steps of the load, held %v each; k of %d seeds in bins of %v", r.Stores[0].Name, c.Hold, c.Seeds, c.Bin),
		Head:  []string{"policy", "low, %", "high, %", "k at low", "k at high", "up, s", "down, s", "most waiting"},
		Notes: []string{fmt.Sprintf("At the new point: mean k within %g of what it is at that load in the long run, for %v.", c.Near, c.Stays)},
	}
	for _, s := range r.Steps {
		t.Rows = append(t.Rows, []string{s.Policy, strconv.Itoa(s.Low), strconv.Itoa(s.High), s.KLow.Text(2), s.KHigh.Text(2), s.Up.Text(2), s.Down.Text(2), s.Most.Text(1)})
	}
	return t
}

// rampEvery is how many seconds lie between rows of the ramp.
const rampEvery = 10

func (r *Result) rampTable() sheet.Table {
	c := &r.params.Course
	t := sheet.Table{
		Title: fmt.Sprintf("%s, tofec: a ramp from %d to %d %% in %v and back", r.Stores[0].Name, c.Ramp.Low, c.Ramp.High, c.Ramp.Over),
		Head:  []string{"seconds", "load, %", "k", "k in the long run", "n", "waiting", "mean, ms"},
	}
	next := 0.0
	for _, m := range r.Ramp {
		if m.Seconds < next {
			continue
		}
		next += rampEvery
		t.Rows = append(t.Rows, []string{report.Figure(m.Seconds).Text(0), m.Load.Text(1), m.K.Text(2), m.LongRun.Text(2), m.N.Text(2), m.Backlog.Text(2), m.Delay.Text(1)})
	}
	return t
}

func (r *Result) learningTable() sheet.Table {
	prior := r.params.Learned.Prior
	t := sheet.Table{
		Title: fmt.Sprintf("%s: the policy in the loop, begun from the model (%g, %g, %g, %g)", r.Stores[0].Name, prior.Delta, prior.DeltaPerMB, prior.Psi, prior.PsiPerMB),
		Head:  []string{"load, %", "seconds", "thresholds apart from the true ones, most", "mean, ms", "told the model, ms", "model in force (delta, a MB, psi, a MB), first seed"},
		Notes: []string{"A table is sent only when a threshold has changed by more than a quarter. The parts of a model that codes of one size do not tell apart stay as believed; thresholds hang on their sums."},
	}
	for _, l := range r.Learning {
		m := l.Model
		fit := []string{report.Figure(m.Delta).Text(1), report.Figure(m.DeltaPerMB).Text(1), report.Figure(m.Psi).Text(1), report.Figure(m.PsiPerMB).Text(1)}
		t.Rows = append(t.Rows, []string{strconv.Itoa(l.Load), report.Figure(l.Seconds).Text(0), l.Apart.Text(3), l.Mean.Text(1), l.Told.Text(1), strings.Join(fit, ", ")})
	}
	return t
}

func (r *Result) thresholdTable() sheet.Table {
	t := sheet.Table{
		Title: r.Stores[0].Name + ": thresholds on the backlog; Kj is where k goes over from j+1 to j, Nj the same of n",
		Head:  []string{"threshold", "PAPERS §3.4 [D]", "ours by its formulas", "ours, corrected for the connections"},
	}
	for _, x := range r.Thresholds {
		t.Rows = append(t.Rows, []string{x.Name, x.Paper.Text(3), x.ByPaper.Text(3), x.Corrected.Text(3)})
	}
	return t
}
