package servers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/machine"
	"penstock/pipeline/demo/servers/backend"
	"penstock/pipeline/experiment/sheet"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Result is what came of a demonstration.
type Result struct {
	About     string                 `json:"about"`
	Seed      uint64                 `json:"seed"`
	Policy    string                 `json:"policy"`
	Phases    []Phase                `json:"phases"`
	Faults    []Fault                `json:"faults"`
	Sites     []SiteResult           `json:"sites"` // the first one promises something
	Servers   []ServerResult         `json:"servers"`
	Tables    []Table                `json:"tables"`
	Curve     []Point                `json:"curve"`
	Account   *window.Account        `json:"account,omitempty"`
	Decisions int                    `json:"decisions"`
	Reasons   map[string]int64       `json:"reasons"`
	Outcomes  map[control.Status]int `json:"outcomes"`
	Cut       []string               `json:"cut,omitempty"` // outcomes of drains that ended with requests left
	Usage     []machine.Usage        `json:"processors"`
	Checks    []Check                `json:"checks"`
	Void      []string               `json:"void"`   // why the run shows nothing; empty if it does
	Broken    []string               `json:"broken"` // promises that were not kept; empty if all were
	Dir       string                 `json:"dir"`
	Duration  float64                `json:"duration_s"`
}

// SiteResult is what was seen of a site, by its clients and by its machines.
type SiteResult struct {
	Site     string `json:"site"`
	Due      uint64 `json:"due"`
	Answered int    `json:"answered"`
	Failed   int    `json:"failed"`
	// Excused of those that failed were in service at the server that was killed, and may
	// not be sent twice.
	Excused int      `json:"excused"`
	Told    []string `json:"told,omitempty"` // some of the failures
	MaxLag  float64  `json:"max_lag_ms"`
	// ServerSeconds is how long servers were on, all together; Penalties what late requests
	// cost, by their clients' clocks, those that failed as late as their limit.
	ServerSeconds float64 `json:"server_seconds"`
	ServerCost    float64 `json:"server_cost"`
	Penalties     float64 `json:"penalties"`
	Cost          float64 `json:"cost"` // all together
	Mean          float64 `json:"mean_ms"`
	P50           float64 `json:"p50_ms"`
	P90           float64 `json:"p90_ms"`
	P99           float64 `json:"p99_ms"`
	Late          float64 `json:"late"` // share
	// Phases are the penalties and the p99 of each.
	Phases []PhaseResult `json:"phases"`
}

// PhaseResult is a phase of a site.
type PhaseResult struct {
	Requests  int     `json:"requests"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Late      float64 `json:"late"`
	Penalties float64 `json:"penalties"`
}

// ServerResult is a server of the site with dispatchers.
type ServerResult struct {
	Number   int     `json:"server"`
	Slowness float64 `json:"slowness"`
	Ups      int     `json:"ups"`
	Downs    int     `json:"downs"` // by the server switch
	On       float64 `json:"on_s"`
	Most     int     `json:"most"` // in service at once, as it counted itself
	Waited   int64   `json:"waited"`
	Done     int64   `json:"done"`
	Left     int     `json:"left"` // in service when it was told to end, the most of its runs
	// Answers, what was estimated and what they took, by the dispatchers, without those
	// that estimates are learned from; ms.
	Answers   float64 `json:"answers"`
	Estimated float64 `json:"estimated_ms"`
	Took      float64 `json:"took_ms"`
	Failure   float64 `json:"estimate_error"` // mean relative error, over these answers
}

// Table is one of the decider's.
type Table struct {
	At     float64 `json:"at_s"` // since requests began
	Epoch  uint64  `json:"epoch"`
	On     int     `json:"on"`
	Reason string  `json:"reason"`
}

// Point is a moment.
type Point struct {
	At      float64   `json:"at_s"`
	On      int       `json:"on"` // servers, by the switch
	Queued  float64   `json:"queued"`
	Penalty float64   `json:"penalty"` // a second, by the dispatchers
	Shares  []float64 `json:"shares"`  // of servers
	Took    []float64 `json:"took_ms"` // by servers, below 0: nothing
	Means   []float64 `json:"mean_ms"` // by sites, as entry points have it
}

// judge lets everything come to its end and compares what was promised with what was seen.
func (s *show) judge(ctx context.Context) (*Result, error) {
	seer := s.world.seer
	end := s.clock.Now()
	ran := s.ran(end)
	r := &Result{
		About: s.about(), Seed: s.Seed, Policy: s.Policy, Phases: s.phases, Faults: s.faults, Usage: s.usage, Dir: s.Dir,
		Duration: end.Sub(s.start).Seconds(), Void: []string{}, Broken: []string{},
	}
	for i := range s.loads {
		x := s.site(i, (ran[i] - s.begun[i]).Seconds())
		r.Sites = append(r.Sites, x)
		if l := s.loads[i]; l.Late > 0 || l.Crowded > 0 {
			r.Void = append(r.Void, fmt.Sprintf("%s: of %d requests %d were more than %v late, and %d not sent for want of answers", x.Site, l.Due, l.Late, maxLag, l.Crowded))
		}
	}
	r.Curve = s.curve()
	settled := s.world.settle(ctx)
	r.Account = s.world.account
	if settled != nil && r.Account == nil {
		return nil, settled
	}
	if err := s.world.rooms[0].stop(); err != nil {
		return nil, err
	}
	var err error
	if r.Servers, err = s.servers(); err != nil {
		return nil, err
	}
	commands, switched := seer.all()
	for _, c := range commands {
		t := Table{At: c.Window.End.Sub(s.start).Seconds(), Epoch: c.Epoch, Reason: c.Reason.Code}
		if c.Servers != nil {
			t.On = len(c.Servers.On)
		}
		r.Tables = append(r.Tables, t)
	}
	for _, x := range switched {
		if strings.Contains(x.Reason, "deadline of its drain") {
			r.Cut = append(r.Cut, fmt.Sprintf("table %d: %s", x.Epoch, x.Reason))
		}
	}
	r.Decisions, r.Reasons, r.Outcomes = seer.decisions, seer.reasons, seer.outcomes
	for i := range s.usage {
		if u := &s.usage[i]; u.Late > mostLate {
			r.Void = append(r.Void, fmt.Sprintf("%s; more than %.1f ms", u, mostLate))
		}
	}
	j := &judge{Result: r, audit: settled}
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

// site sums up what was seen of a site.
func (s *show) site(number int, seconds float64) SiteResult {
	p := s.world.people[number]
	answers, failed := p.seen.All(), p.failures()
	x := SiteResult{
		Site: []string{dispatched, plain}[number], Due: s.loads[number].Due, Answered: len(answers), Failed: len(failed), MaxLag: ms(s.loads[number].MaxLag),
		ServerSeconds: seconds, ServerCost: cost * seconds,
	}
	var killed time.Time
	for _, m := range s.world.rooms[number].rack {
		if !m.killed.IsZero() {
			killed = m.killed
		}
	}
	for i := range failed {
		f := &failed[i]
		x.Penalties += classOf(f.class).Penalty * classOf(f.class).Limit.Seconds()
		if f.excused(killed) {
			x.Excused++
		}
		if len(x.Told) < maxExamples {
			x.Told = append(x.Told, f.why)
		}
	}
	var sum time.Duration
	late := 0
	for i := range answers {
		a := &answers[i]
		sum += a.Latency
		x.Penalties += a.Of.penalty(a.Latency)
		if a.Latency > classOf(a.Of.class).Limit {
			late++
		}
	}
	all := load.LatenciesOf(answers, func(*load.Sample[shot]) bool { return true })
	x.Mean, x.P50, x.P90, x.P99 = ms(sum)/float64(max(1, len(answers))), ms(all.Quantile(0.5)), ms(all.Quantile(0.9)), ms(all.Quantile(0.99))
	x.Late, x.Cost = float64(late)/float64(max(1, len(answers))), x.ServerCost+x.Penalties
	for i := range s.phases {
		x.Phases = append(x.Phases, s.phase(&s.phases[i], answers))
	}
	return x
}

// excused says whether a request may have failed because a server was killed: it may not be
// sent twice, and was under way at that time.
func (f *failure) excused(killed time.Time) bool {
	return f.write && !killed.IsZero() && f.began.Before(killed.Add(graceOfKill)) && f.ended.After(killed.Add(-graceOfKill))
}

func (s *show) phase(p *Phase, answers []load.Sample[shot]) (x PhaseResult) {
	in := func(a *load.Sample[shot]) bool {
		at := a.Due.Sub(s.start)
		return at >= p.from && at < p.to
	}
	all := load.LatenciesOf(answers, in)
	x.Requests, x.P50, x.P99 = len(all), ms(all.Quantile(0.5)), ms(all.Quantile(0.99))
	for i := range answers {
		if a := &answers[i]; in(a) {
			x.Penalties += a.Of.penalty(a.Latency)
			if a.Latency > classOf(a.Of.class).Limit {
				x.Late++
			}
		}
	}
	x.Late /= float64(max(1, len(all)))
	return x
}

// servers sums up the servers of the site with dispatchers, which have ended.
func (s *show) servers() (out []ServerResult, err error) {
	looks := s.seen()
	for i, m := range s.world.rooms[0].rack {
		x := ServerResult{Number: i + 1, Slowness: m.slowness, Ups: m.ups, Downs: m.downs, On: m.before.Seconds()}
		for n := 1; n <= m.ups; n++ {
			st, err := lastState(m.out(n))
			if err != nil {
				return nil, err
			}
			x.Most, x.Left = max(x.Most, st.Most), max(x.Left, st.Left)
			x.Waited, x.Done = x.Waited+st.Waited, x.Done+st.Done
		}
		x.estimates(looks, i, s.faults)
		out = append(out, x)
	}
	return out, nil
}

// estimates adds up estimates and what came, from look to look, without what they are
// learned from: the first answers, and those of a time in which the server was slow and
// the first ones after it.
func (x *ServerResult) estimates(looks []*look, number int, faults []Fault) {
	var estimated, took, failure float64
	from := float64(learning)
	for k := 1; k < len(looks); k++ {
		a, b := &looks[k-1].servers[number], &looks[k].servers[number]
		if slowed(faults, number, looks[k].at) {
			from = b.answers + learning
		}
		if n := b.answers - a.answers; n > 0 && a.answers >= from {
			x.Answers += n
			estimated += b.estimated - a.estimated
			took += b.took - a.took
			failure += n * b.failure
		}
	}
	if x.Answers > 0 {
		x.Estimated, x.Took, x.Failure = 1000*estimated/x.Answers, 1000*took/x.Answers, failure/x.Answers
	}
}

// slowed says whether an instant is within the time in which a server is slow, or just
// after it, when what began in it ends.
func slowed(faults []Fault, number int, at time.Duration) bool {
	for _, f := range faults {
		if t := at.Seconds(); f.Server == number && f.To > 0 && t >= f.From && t < f.To+afterFault.Seconds() {
			return true
		}
	}
	return false
}

// lastState is the last that a server's run has said of itself.
func lastState(name string) (st backend.State, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return st, fmt.Errorf("demo: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var x backend.State
		if json.Unmarshal(lines.Bytes(), &x) == nil && x.PID != 0 { // One that was killed may have left half a line.
			st = x
		}
	}
	return st, lines.Err()
}

// curve is what was seen second by second.
func (s *show) curve() (out []Point) {
	looks := s.seen()
	for k := 2; k < len(looks); k += 2 {
		var c scene
		c.compare(looks[max(0, k-4)], looks[k])
		p := Point{At: looks[k].at.Seconds(), On: c.sites[0].on, Penalty: c.sites[0].penalty, Means: []float64{max(0, c.sites[0].mean), max(0, c.sites[1].mean)}}
		for _, x := range c.servers {
			p.Queued += x.queued
			p.Shares, p.Took = append(p.Shares, x.share), append(p.Took, x.took)
		}
		out = append(out, p)
	}
	return out
}

// write writes the report.
func (r *Result) write() error {
	p, err := r.page()
	if err != nil {
		return err
	}
	return sheet.Write(r.Dir, "report", r, p)
}
