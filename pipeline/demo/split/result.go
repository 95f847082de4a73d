package split

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/services"
	"penstock/pipeline/experiment/sheet"
	"penstock/schemas/window"
)

// Result is what came of a demonstration.
type Result struct {
	About    string         `json:"about"`
	Sites    []string       `json:"sites"`
	RTT      float64        `json:"rtt_ms"`
	Slowed   string         `json:"slowed"` // COMPONENT at SITE
	Seed     uint64         `json:"seed"`
	Faults   []Span         `json:"faults"`
	Policies []PolicyResult `json:"policies"` // the first one promises something
	Usage    []Usage        `json:"processors"`
	Checks   []Check        `json:"checks"`
	Void     []string       `json:"void"`   // why the run shows nothing; empty if it does
	Broken   []string       `json:"broken"` // promises that were not kept; empty if all were
	Dir      string         `json:"dir"`
	Duration float64        `json:"duration_s"`
}

// Span is a time, in s since requests began.
type Span struct {
	From float64 `json:"from_s"`
	To   float64 `json:"to_s"`
}

// PolicyResult is what was seen of a policy.
type PolicyResult struct {
	Policy    string           `json:"policy"`
	Due       uint64           `json:"due"` // requests
	Answered  int              `json:"answered"`
	Failed    int              `json:"failed"`
	MaxLag    float64          `json:"max_lag_ms"` // of the request that was sent latest after it was due
	Decisions int              `json:"decisions"`
	Commands  int              `json:"commands"`
	Reasons   map[string]int64 `json:"reasons"`
	Other     map[string]int   `json:"other_outcomes,omitempty"` // commands that were not applied, by status
	Faults    []FaultResult    `json:"faults"`
	Curve     []Point          `json:"curve"` // by window
	Probes    map[string]int64 `json:"probes"`
	Calls     map[string]int64 `json:"calls"` // by component, probes included
	Account   *window.Account  `json:"account,omitempty"`
}

// FaultResult is a fault under a policy: the requests that entered at its site.
type FaultResult struct {
	Requests int     `json:"requests"`
	P50      float64 `json:"p50_ms"`
	P90      float64 `json:"p90_ms"`
	P99      float64 `json:"p99_ms"`
	Before   float64 `json:"p90_before_ms"` // of the 30 s before
}

// Point is a window. Shares are those of the replica that gets slower in its site's
// calls: as commanded at the window's end, in answers, and in rows. A share without
// calls is −1.
type Point struct {
	At        float64   `json:"at_s"` // the window's beginning, since requests began
	Commanded float64   `json:"commanded"`
	Answers   float64   `json:"answers"`
	Rows      float64   `json:"rows"`
	P50       []float64 `json:"p50_ms"` // by site
	P90       []float64 `json:"p90_ms"`
}

// judge lets everything come to its end and compares what was promised with what
// was seen.
func (s *show) judge(ctx context.Context) (*Result, error) {
	r := &Result{
		About: s.about(), Sites: names(), RTT: ms(s.roundTrip(s.sites[0], s.sites[1])), Slowed: s.Component + " at " + s.Site, Seed: s.Seed,
		Dir: s.Dir, Duration: s.clock.Now().Sub(s.plan.Start).Seconds(), Void: []string{}, Broken: []string{},
	}
	j := &judge{plan: s.plan, component: s.Component, site: s.Site, added: s.Added, cooldown: 6 * width, late: s.Fault < shortFault}
	for _, f := range s.plan.Faults {
		r.Faults = append(r.Faults, Span{f.From.Sub(s.plan.Start).Seconds(), f.To.Sub(s.plan.Start).Seconds()})
	}
	for i, w := range s.worlds {
		rec := w.seer.record(w.policy)
		rec.shots = w.people.seen.All()
		j.records = append(j.records, rec)
		p, err := s.policy(ctx, w, rec, s.loads[i], r)
		if err != nil {
			return nil, err
		}
		r.Policies = append(r.Policies, *p)
	}
	s.usage(r)
	j.run()
	for i := range r.Policies {
		j.policy(&r.Policies[i])
	}
	r.conclude(j.checks)
	return r, errors.Join(r.write(), r.err())
}

// conclude names what was not kept.
func (r *Result) conclude(checks []Check) {
	r.Checks = checks
	for _, c := range checks {
		if !c.Kept {
			r.Broken = append(r.Broken, c.text())
		}
	}
}

// err says what came of it: ErrVoid, ErrPromise.
func (r *Result) err() error {
	var errs []error
	if len(r.Void) > 0 {
		errs = append(errs, fmt.Errorf("%w: %s", ErrVoid, strings.Join(r.Void, "; ")))
	}
	if len(r.Broken) > 0 {
		errs = append(errs, fmt.Errorf("%w:\n%s", ErrPromise, strings.Join(r.Broken, "\n")))
	}
	return errors.Join(errs...)
}

func (c *Check) text() string {
	what := c.What
	if c.Fault > 0 {
		what = fmt.Sprintf("fault %d: %s", c.Fault, what)
	}
	return fmt.Sprintf("%s: %s, expected %s", what, c.Got, c.Want)
}

// policy fills in what was seen of a policy.
func (s *show) policy(ctx context.Context, w *world, rec *record, loads []load.Report, r *Result) (*PolicyResult, error) {
	p := &PolicyResult{Policy: w.policy, Answered: len(rec.shots), Decisions: w.seer.decisions, Commands: len(rec.orders), Reasons: w.seer.reasons, Other: map[string]int{}}
	var told []string
	p.Failed, told = w.people.failures()
	for i, l := range loads {
		p.Due += l.Due
		p.MaxLag = max(p.MaxLag, ms(l.MaxLag))
		if l.Late > 0 || l.Crowded > 0 {
			r.Void = append(r.Void, fmt.Sprintf("%s: of %d requests at %s %d were more than %v late, and %d not sent for want of answers", w.policy, l.Due, s.sites[i].Name, l.Late, maxLag, l.Crowded))
		}
	}
	for status, n := range w.seer.others {
		p.Other[string(status)] = n
	}
	if len(told) > 0 {
		s.Screen.Say("%s: %d requests failed, such as: %s", w.policy, p.Failed, strings.Join(told, "; "))
	}
	var err error
	if p.Calls, p.Probes, err = w.probes(ctx); err != nil {
		return nil, err
	}
	if err := w.settle(ctx); err != nil {
		r.Broken = append(r.Broken, err.Error())
	}
	p.Account = w.account
	for _, f := range s.plan.Faults {
		p.Faults = append(p.Faults, rec.fault(s.Site, f))
	}
	p.Curve = rec.curve(s.plan, s.Component, s.Site)
	return p, nil
}

// fault is a fault as those at its site saw it.
func (r *record) fault(site string, f Fault) FaultResult {
	of := func(q float64, from, to time.Time) float64 {
		v, _ := r.quantile(q, site, from, to)
		return ms(v)
	}
	_, n := r.quantile(0.5, site, f.From, f.To)
	return FaultResult{
		Requests: n, P50: of(0.5, f.From, f.To), P90: of(0.9, f.From, f.To), P99: of(0.99, f.From, f.To),
		Before: of(0.9, f.From.Add(-30*time.Second), f.From),
	}
}

// curve is what was seen window by window.
func (r *record) curve(p Plan, component, site string) (out []Point) {
	l := link{services.Callers(component)[0], site, component}
	for start := p.Start.Truncate(width); start.Before(p.End); start = start.Add(width) {
		end := start.Add(width)
		x := Point{At: start.Sub(p.Start).Seconds(), Answers: -1, Rows: -1}
		x.Commanded, _ = r.force(l, site, end, end)
		if share, of := r.sent(site, site, start, end); of > 0 {
			x.Answers = share
		}
		if share, ok := r.rows(l, site, start); ok {
			x.Rows = share
		}
		for _, at := range r.sites {
			p50, _ := r.quantile(0.5, at, start, end)
			p90, _ := r.quantile(0.9, at, start, end)
			x.P50, x.P90 = append(x.P50, ms(p50)), append(x.P90, ms(p90))
		}
		out = append(out, x)
	}
	return out
}

// usage says what the run took of the machine, and whether that was too much.
func (s *show) usage(r *Result) {
	if s.meter.err != nil {
		r.Void = append(r.Void, fmt.Sprintf("what it took of the processors could not be measured: %v", s.meter.err))
		return
	}
	for i, span := range s.spans {
		when := fmt.Sprintf("fault %d", i+1)
		if i == len(s.spans)-1 {
			when = "all of it"
		}
		u := s.meter.between(when, span[0], span[1])
		r.Usage = append(r.Usage, u)
		if u.Ours > mostProcessor {
			r.Void = append(r.Void, fmt.Sprintf("%s took %.0f %% of the machine's processors, more than %.0f %%", when, 100*u.Ours, 100*mostProcessor))
		}
	}
}

// policy checks what must hold of each policy, besides the shares and delays.
func (j *judge) policy(p *PolicyResult) {
	j.add(0, p.Failed == 0 && p.Answered > 0, p.Policy+": requests that failed", "none", "%d of %d", p.Failed, p.Due)
	var calls, probes int64
	for name, n := range p.Calls {
		calls += n - p.Probes[name]
		probes += p.Probes[name]
	}
	part := float64(probes) / float64(max(calls, 1))
	j.add(0, part <= mostProbes, p.Policy+": probes", fmt.Sprintf("at most %.0f %% of calls", 100*mostProbes), "%.1f %% of %d", 100*part, calls)
	if a := p.Account; a != nil {
		j.add(0, a.LostBatches == 0 && a.Received >= int64(p.Answered), p.Policy+": rows in the account", fmt.Sprintf("at least %d", p.Answered), "%d, %d batches lost", a.Received, a.LostBatches)
	}
}

// write writes the report.
func (r *Result) write() error {
	p, err := r.page()
	if err != nil {
		return err
	}
	return sheet.Write(r.Dir, "report", r, p)
}
