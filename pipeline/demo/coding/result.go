package coding

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"penstock/consumers/decider/coding/threshold"
	"penstock/consumers/executor/coder/admin"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/machine"
	"penstock/pipeline/experiment/sheet"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Result is what came of a demonstration.
type Result struct {
	About   string           `json:"about"`
	Seed    uint64           `json:"seed"`
	Scale   float64          `json:"scale"`
	Phases  []Phase          `json:"phases"`
	Arms    []ArmResult      `json:"coders"` // the first one promises something
	Learned []Learned        `json:"learned"`
	Account *window.Account  `json:"account,omitempty"`
	Reasons map[string]int64 `json:"reasons"`
	// Decisions and Commands of the decider, and outcomes by status.
	Decisions int                    `json:"decisions"`
	Commands  int                    `json:"commands"`
	Outcomes  map[control.Status]int `json:"outcomes"`
	Usage     []machine.Usage        `json:"processors"`
	Checks    []Check                `json:"checks"`
	Void      []string               `json:"void"`   // why the run shows nothing; empty if it does
	Broken    []string               `json:"broken"` // promises that were not kept; empty if all were
	Dir       string                 `json:"dir"`
	Duration  float64                `json:"duration_s"`
}

// ArmResult is what was seen of a coder.
type ArmResult struct {
	Policy   string        `json:"policy"`
	Due      uint64        `json:"due"`
	Answered int           `json:"answered"`
	Refused  int           `json:"refused"`
	Failed   int           `json:"failed"`
	Wrong    int           `json:"wrong"`
	Told     []string      `json:"told,omitempty"` // some of the failures
	MaxLag   float64       `json:"max_lag_ms"`
	Phases   []PhaseResult `json:"phases"`
	Curve    []Point       `json:"curve"`
	// Left is how it stood when nobody asked any more; Asked what its store was asked
	// for in all, of which Gone ended before they were answered.
	Left  admin.Status `json:"left"`
	Asked uint64       `json:"asked"`
	Gone  uint64       `json:"gone"`
	Under int64        `json:"under_way"` // requests to the store at the end
}

// PhaseResult is a phase of a coder, without its beginning. Delays are those of reads, ms.
type PhaseResult struct {
	Phase   string  `json:"phase"`
	Reads   int     `json:"reads"`
	Served  float64 `json:"served"` // answers a second, writes included
	Refused int     `json:"refused"`
	Mean    float64 `json:"mean_ms"`
	SD      float64 `json:"sd_ms"`
	P50     float64 `json:"p50_ms"`
	P90     float64 `json:"p90_ms"`
	P99     float64 `json:"p99_ms"`
	Asked   float64 `json:"asked"` // requests to the store for a read
	USD     float64 `json:"usd"`   // for a million reads
	K       float64 `json:"k"`     // mean of what was in force
}

// Point is a moment of a coder.
type Point struct {
	At       float64 `json:"at_s"`
	N        int     `json:"n"`
	K        int     `json:"k"`
	Backlog  int     `json:"backlog"`
	Smoothed float64 `json:"smoothed"`
	InUse    int     `json:"in_use"`
	Mean     float64 `json:"mean_ms"` // of reads due in the 3 s before
}

// Learned compares what the decider had learned at a time with what is true.
type Learned struct {
	When  string          `json:"when"`
	Epoch uint64          `json:"epoch"` // of the table; 0: there was none
	True  threshold.Model `json:"true"`
	Found threshold.Model `json:"found"`
	// Delay and Usage are by how much, at most, delays and the use of connections of
	// codes by what was found differ from the true ones, as a share.
	Delay float64   `json:"delay"`
	Usage float64   `json:"usage"`
	K     []float64 `json:"k"`      // thresholds in force
	TrueK []float64 `json:"true_k"` // by the true model
}

// judge lets everything come to its end and compares what was promised with what was
// seen.
func (s *show) judge(ctx context.Context) (*Result, error) {
	seer := s.world.seer
	r := &Result{
		About: s.about(), Seed: s.Seed, Scale: s.Scale, Phases: s.phases, Reasons: seer.reasons, Decisions: seer.decisions, Commands: len(seer.all()),
		Outcomes: seer.outcomes, Usage: s.usage, Dir: s.Dir, Duration: s.clock.Now().Sub(s.start).Seconds(), Void: []string{}, Broken: []string{},
	}
	for i, a := range s.world.arms {
		left, under, err := s.world.rest(ctx, a)
		if err != nil {
			return nil, err
		}
		x := s.arm(i, a)
		x.Left, x.Under = left, under
		r.Arms = append(r.Arms, x)
		if l := s.loads[i]; l.Late > 0 || l.Crowded > 0 {
			r.Void = append(r.Void, fmt.Sprintf("%s: of %d requests %d were more than %v late, and %d not sent for want of answers", a.text, l.Due, l.Late, maxLag, l.Crowded))
		}
	}
	r.Learned = s.learned(seer.all())
	settled := s.world.settle(ctx)
	r.Account = s.world.account
	if settled != nil && r.Account == nil {
		return nil, settled
	}
	for i := range s.usage {
		if u := &s.usage[i]; u.Late > mostLate*s.Scale {
			r.Void = append(r.Void, fmt.Sprintf("%s; more than %.1f ms", u, mostLate*s.Scale))
		}
	}
	gains, err := s.gains(ctx)
	if err != nil {
		return nil, err
	}
	j := &judge{Result: r, demo: s.Demo, audit: settled, gains: gains}
	j.run()
	for _, c := range r.Checks {
		if !c.Kept {
			r.Broken = append(r.Broken, fmt.Sprintf("%s: %s, expected %s", c.What, c.Got, c.Want))
		}
	}
	return r, errors.Join(r.write(), r.err())
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

// arm sums up what was seen of a coder.
func (s *show) arm(number int, a *arm) ArmResult {
	l := s.loads[number]
	counts := a.store.Counts()
	x := ArmResult{
		Policy: a.text, Due: l.Due, Answered: a.people.seen.Len(), Refused: a.people.refusals.Len(), MaxLag: ms(l.MaxLag),
		Asked: counts.Reads + counts.Writes + counts.Others, Gone: counts.Gone,
	}
	x.Failed, x.Wrong, x.Told = a.people.failures()
	sights, answers := s.sights(number), a.people.seen.All()
	for i := range s.phases {
		x.Phases = append(x.Phases, s.phase(&s.phases[i], a, answers, sights))
	}
	for i := 0; i < len(sights); i += 2 {
		at := &sights[i]
		p := Point{At: at.at.Seconds(), N: at.status.Read.N, K: at.status.Read.K, Backlog: at.status.Backlog, Smoothed: at.status.Smoothed, InUse: at.status.Connections}
		p.Mean = ms(mean(between(answers, s.start.Add(at.at-3*time.Second), s.start.Add(at.at))))
		x.Curve = append(x.Curve, p)
	}
	return x
}

// between are delays of reads that were due in a time.
func between(answers []load.Sample[shot], from, to time.Time) load.Latencies {
	return load.LatenciesOf(answers, func(x *load.Sample[shot]) bool { return !x.Of.write && !x.Due.Before(from) && x.Due.Before(to) })
}

// phase sums up one.
func (s *show) phase(p *Phase, a *arm, answers []load.Sample[shot], sights []sight) PhaseResult {
	from, to := s.start.Add(p.from+settling), s.start.Add(p.to)
	reads := between(answers, from, to)
	x := PhaseResult{Phase: p.Name, Reads: len(reads), Mean: ms(mean(reads)), P50: ms(reads.Quantile(0.5)), P90: ms(reads.Quantile(0.9)), P99: ms(reads.Quantile(0.99))}
	var squares float64
	for _, d := range reads {
		squares += (ms(d) - x.Mean) * (ms(d) - x.Mean)
	}
	x.SD = math.Sqrt(squares / max(1, float64(len(reads))))
	served, done := 0, 0
	for i := range answers {
		at := answers[i].Due.Add(answers[i].Latency)
		if !at.Before(from) && at.Before(to) {
			served++
			if !answers[i].Of.write {
				done++
			}
		}
	}
	x.Served = float64(served) / to.Sub(from).Seconds()
	x.Refused = len(a.people.refusals.Where(func(x *load.Sample[shot]) bool { return !x.Due.Before(from) && x.Due.Before(to) }))
	var first, last *sight
	n := 0
	for i := range sights {
		if at := sights[i].at; at >= p.from+settling && at < p.to {
			if first == nil {
				first = &sights[i]
			}
			last = &sights[i]
			x.K += float64(sights[i].status.Read.K)
			n++
		}
	}
	if n > 1 && done > 0 {
		x.K /= float64(n)
		part := (last.at - first.at).Seconds() / to.Sub(from).Seconds()
		x.Asked = float64(last.counts.Reads-first.counts.Reads) / (float64(done) * part)
		x.USD = x.Asked * price
	}
	return x
}

// compared are the codes by which models are compared.
var compared = []struct{ n, k int }{{1, 1}, {2, 1}, {2, 2}, {6, 3}, {12, 6}}

// learned compares tables with the truth: the last one of before stores were slower, and
// the last one.
func (s *show) learned(commands []*control.Command) (out []Learned) {
	change := time.Duration(0)
	for i := range s.phases {
		if s.phases[i].Slower && change == 0 {
			change = s.phases[i].from
		}
	}
	pick := func(until time.Time) *control.Command {
		var last *control.Command
		for _, c := range commands {
			if c.Coding != nil && !c.Window.End.After(until) {
				last = c
			}
		}
		return last
	}
	if change > 0 {
		out = append(out, s.compare("before stores are slower", pick(s.start.Add(change)), false), s.compare("at the end", pick(s.start.Add(time.Hour)), true))
		return out
	}
	return append(out, s.compare("at the end", pick(s.start.Add(time.Hour)), false))
}

func (s *show) compare(when string, c *control.Command, late bool) Learned {
	x := Learned{When: when}
	x.True, _ = s.truth(late)
	table, err := threshold.Corrected(x.True, threshold.Limits{Connections: connections, SizeMB: sizeMB, KMax: kMax, NMax: kMax * rMax, RMax: rMax})
	if err == nil {
		x.TrueK = table.K
	}
	if c == nil {
		x.Delay, x.Usage = 1, 1
		return x
	}
	m := c.Coding.Model.Read
	x.Epoch, x.K = c.Epoch, c.Coding.Read.K
	x.Found = threshold.Model{Delta: m.Delta, DeltaPerMB: m.DeltaPerMB, Psi: m.Psi, PsiPerMB: m.PsiPerMB}
	for _, of := range compared {
		x.Delay = max(x.Delay, math.Abs(x.Found.Service(sizeMB, of.n, of.k)/x.True.Service(sizeMB, of.n, of.k)-1))
		x.Usage = max(x.Usage, math.Abs(x.Found.Usage(sizeMB, of.n, of.k)/x.True.Usage(sizeMB, of.n, of.k)-1))
	}
	return x
}

// write writes the report.
func (r *Result) write() error {
	p, err := r.page()
	if err != nil {
		return err
	}
	return sheet.Write(r.Dir, "report", r, p)
}
