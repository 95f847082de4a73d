package splitting

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"penstock/consumers/decider/split"
	"penstock/pipeline/experiment/multitier"
	"penstock/pipeline/report"
)

// trial is one run to be made.
type trial struct {
	application *application
	fault       *Fault
	policy      string
	seed        uint64
	keep        bool
	recorded    *recording // nil: arrivals are made up
}

func (t *trial) name() string {
	return fmt.Sprintf("%s, fault %s, %s, seed %d", t.application.name, t.fault.Name, t.policy, t.seed)
}

// trials lists the runs with made-up arrivals: by application, fault, policy, seed.
func (p *Params) trials(seeds int) ([]trial, error) {
	var out []trial
	for i := range p.Applications {
		a, err := p.Applications[i].build(&p.Network)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrParams, err)
		}
		out = append(out, p.trialsOf(seeds, p.Faults, func(int) *application { return a })...)
	}
	if len(p.Random.Sites) == 0 {
		return out, nil
	}
	drawn := make([]*application, seeds)
	for n := range seeds {
		a, err := p.Random.draw(p.FirstSeed+uint64(n), &p.Network)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrParams, err)
		}
		drawn[n] = a
	}
	return append(out, p.trialsOf(seeds, p.named(p.Random.Faults), func(n int) *application { return drawn[n] })...), nil
}

// named are the faults of those names, all without any.
func (p *Params) named(names []string) []Fault {
	if len(names) == 0 {
		return p.Faults
	}
	var out []Fault
	for _, f := range p.Faults {
		if slices.Contains(names, f.Name) {
			out = append(out, f)
		}
	}
	return out
}

func (p *Params) trialsOf(seeds int, faults []Fault, of func(n int) *application) []trial {
	var out []trial
	for f := range faults {
		for _, policy := range p.Policies {
			for n := range seeds {
				out = append(out, trial{application: of(n), fault: &faults[f], policy: policy, seed: p.FirstSeed + uint64(n), keep: n == 0})
			}
		}
	}
	return out
}

// run simulates.
func (t *trial) run(ctx context.Context, p *Params) (Run, error) {
	policy, err := split.New(t.application.config(p, t.policy))
	if err != nil {
		return Run{}, err
	}
	length, from, to := p.length(t.fault)
	o := &multitier.Options{
		App: t.application.app, Arrivals: p.arrivals(t.application.load), Heavy: t.application.load.Heavy, Users: t.application.load.Users,
		Policy: policy, Seed: t.seed, Changes: p.changes(t.fault, t.application, t.seed), Length: length, Feedback: p.Time.Feedback,
		Deadline: p.Time.Deadline, Queue: p.Time.Queue, Focus: t.application.inQuestion(t.fault), From: from, To: to,
	}
	out := Run{Application: t.application.name, Fault: t.fault.Name, Arrivals: Made, Policy: t.policy, Seed: t.seed}
	if t.recorded != nil {
		out.Arrivals = t.recorded.name
		o.Arrivals = multitier.Arrivals{Recorded: t.recorded.arrivals(t.seed, len(t.application.load.Sites), length, t.application.load.Rate)}
	}
	m, err := multitier.Run(ctx, o)
	if err != nil {
		return Run{}, err
	}
	out.All, out.Entering = latency(m.Latency(multitier.Everywhere, from, to)), latency(m.Latency(affected, from, to))
	if m.Calls > 0 {
		out.Moved = float64(m.Moved) / float64(m.Calls)
	}
	out.Bytes, out.USD, out.Probes, out.Tables, out.Repeated = m.Bytes, m.USD, m.Probes, m.Tables, m.Repeated
	if t.keep {
		out.Course = course(m, policy.Width(), length)
	}
	return out, nil
}

// inQuestion is the component whose share is followed.
func (a *application) inQuestion(f *Fault) int {
	if f.Latency > 0 {
		return a.storage
	}
	return a.focus
}

func latency(l multitier.Latency) Latency {
	out := Latency{Requests: l.Requests, Failed: l.Failed, P50: report.Unknown(), P90: report.Unknown(), P99: report.Unknown()}
	if l.Requests > 0 {
		out.P50, out.P90, out.P99 = ms(l.P50), ms(l.P90), ms(l.P99)
	}
	return out
}

// ms is whole µs, so that it prints the same wherever it was computed.
func ms(d time.Duration) report.Figure { return report.Figure(float64(d.Microseconds()) / 1000) }

func course(m *multitier.Measured, width, length time.Duration) *Course {
	c := &Course{}
	for at := time.Duration(0); at < length; at += width {
		c.P90 = append(c.P90, latency(m.Latency(affected, at, at+width)).P90)
	}
	for _, x := range m.Shares {
		c.Share = append(c.Share, report.Figure(math.Round(x*1e4)/1e4))
	}
	return c
}
