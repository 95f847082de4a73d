package topology

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/decider"
	"penstock/consumers/decider/placement"
	"penstock/consumers/panes"
	"penstock/infra/bus"
	"penstock/pipeline/config"
	"penstock/pipeline/report"
	"penstock/pipeline/whatif"
	"penstock/schemas/control"
	"penstock/schemas/sphere"
	"penstock/schemas/window"
)

// Shadow says what placement would have brought, over the windows that are on a
// bus: those of a Penstock that serves in mode advise, or of a replay. Nothing on
// the bus is changed, and nothing is moved.
type Shadow struct {
	Config *config.Config
	// Policy is tmatch or optimal; empty takes the configuration's, or optimal.
	Policy string
	// From leaves out windows that start before it.
	From time.Time
	// Out is the folder of the report.
	Out string
	// Note is told what else is worth knowing.
	Note   func(text string)
	Logger zerolog.Logger
}

// shadowed is a strategy on its way through the windows.
type shadowed struct {
	strategy report.Strategy
	player   *whatif.Player // nil of the baselines, which play together
}

// shadowing is a shadow at work.
type shadowing struct {
	*Shadow
	recording *whatif.Recording
	all       []shadowed
	others    *whatif.Others
	played    report.Played
	rows      []report.WindowReport // what the policy said of each window
}

// Run reads the windows, plays them and writes the report.
func (s *Shadow) Run(ctx context.Context, client *bus.Client) (*report.Report, error) {
	if s.Note == nil {
		s.Note = func(string) {}
	}
	policy := placement.Optimal
	if s.Config.Placement.Policy != config.Auto {
		policy = s.Config.Placement.Policy
	}
	if s.Policy != "" {
		policy = s.Policy
	}
	cfg := *s.Config
	cfg.Placement.Policy = policy
	p, err := placement.New(placementConfig(&cfg, policy, nil, nil))
	if err != nil {
		return nil, err
	}
	rtts, err := roundTrips(&cfg)
	if err != nil {
		return nil, err
	}
	run := s.start(&cfg, policy, p, rtts)
	// A window's rows are gone once it is played: memory is that of the owners.
	_, err = panes.Each(ctx, client, panes.Options{Group: window.Owners, Width: cfg.Placement.Window.Std()}, panes.Visitor{
		Window: func(w *panes.Window) error { run.window(w); return ctx.Err() },
	})
	if err != nil {
		return nil, fmt.Errorf("shadow: %w", err)
	}
	return run.report(ctx, client, decider.ConfigDigest(p.Config()), rtts.Source())
}

// start puts all strategies on their stages.
func (s *Shadow) start(cfg *config.Config, name string, p *placement.Policy, rtts *report.RTTs) *shadowing {
	run := &shadowing{Shadow: s}
	run.played.Sites, run.played.PerThousand = reportSites(cfg), cfg.Prices.Requests
	sites := make([]whatif.Site, len(cfg.Sites))
	play := whatif.Play{Capacity: make([]int64, len(cfg.Sites))}
	for i, site := range run.played.Sites {
		sites[i] = whatif.Site{Name: site.Name, Lat: site.Lat, Lon: site.Lon}
		play.Capacity[i] = site.Capacity
	}
	play.Prices = func(from, _ int16) float64 { return run.played.Sites[from].Egress }
	run.recording = whatif.NewRecording(whatif.Options{Sites: sites, Network: network{rtts}, Served: true})
	add := func(st whatif.Strategy, text string, unmoved bool) {
		run.all = append(run.all, shadowed{
			report.Strategy{Name: st.Name(), Text: text, Copies: 1, Unmoved: unmoved}, whatif.NewPlayer(st, play),
		})
	}
	add(whatif.NewPolicy(name, p), "as policy "+name+" decides, each move done at the end of its window", false)
	add(whatif.AsServed(), "where each owner's data was served", true)
	run.others = whatif.NewOthers(sites, true, play)
	for _, st := range run.others.Strategies() {
		run.all = append(run.all, shadowed{report.Strategy{Name: st.Name(), Text: st.Text(), Copies: st.Copies()}, nil})
	}
	return run
}

// window plays one window.
func (run *shadowing) window(w *panes.Window) {
	span := w.Span()
	if span.Start.Before(run.From) {
		return
	}
	f := run.recording.Frame(whatif.Window{Start: w.Start, End: w.End, Tables: w.Tables, Incomplete: w.Incomplete})
	run.played.Windows = append(run.played.Windows, report.Span{Start: span.Start, End: span.End})
	others := run.others.Step(f)
	for i := range run.all {
		var m whatif.Measured
		if p := run.all[i].player; p != nil {
			m = p.Step(f)
		} else {
			m, others = others[0], others[1:]
		}
		st := &run.all[i].strategy
		st.Windows = append(st.Windows, report.StrategyWindow{
			Traffic: m.Traffic, Written: m.Written, Requests: m.Requests, Moves: m.Moves, Bytes: m.Between, EgressUSD: m.USD,
			Located: m.Located, DelayUS: m.DelayUS,
		})
		if i == 0 {
			row := report.WindowReport{Case: m.Case, Mode: string(control.Advise), Reasons: map[string]int64{}}
			for _, r := range m.Reasons {
				row.Reasons[r.Code] += max(r.Count, 1)
			}
			run.rows = append(run.rows, row)
		}
	}
}

// report writes what was played.
func (run *shadowing) report(ctx context.Context, client *bus.Client, digest string, source report.LatencySource) (*report.Report, error) {
	others := 0
	for i := range run.all {
		st := &run.all[i]
		if st.player != nil {
			st.strategy.All = st.player.Delays()
		} else {
			st.strategy.All = run.others.Delays(others)
			others++
		}
		run.played.Strategies = append(run.played.Strategies, st.strategy)
	}
	audit, err := report.NewAudit(ctx, client)
	if err != nil {
		return nil, err
	}
	rep := &report.Report{
		Kind: report.KindShadow, Config: digest, Account: audit.Groups[0].Total, Incomplete: audit.Groups[0].Incomplete, LatencySource: source,
	}
	run.played.Fill(rep)
	for i := range rep.Windows {
		w, row := &rep.Windows[i], run.rows[i]
		w.Case, w.Mode, w.Reasons = row.Case, row.Mode, row.Reasons
		for code, n := range row.Reasons {
			rep.Reasons[code] += n
		}
	}
	if len(rep.Windows) == 0 {
		run.Note("no closed window is on the bus: there is nothing to play yet")
	}
	if n := run.recording.Bad(); n > 0 {
		run.Note(fmt.Sprintf("%d rows of windows could not be used", n))
	}
	if err := os.MkdirAll(run.Out, 0o755); err != nil {
		return nil, fmt.Errorf("shadow: %w", err)
	}
	return rep, rep.Write(run.Out)
}

// network lets windows be played over the report's round trips.
type network struct{ *report.RTTs }

// RTT is in ms.
func (n network) RTT(lat, lon float64, site int) float64 {
	us, _ := n.Between(sphere.FromDegrees(lat, lon), site)
	return float64(us) / 1000
}

// CheckLatency reads the measured round trips that the configuration names, as
// reports will.
func CheckLatency(cfg *config.Config) error {
	_, err := roundTrips(cfg)
	return err
}

// roundTrips are those of the measured table, if the configuration names one, else
// of the formula.
func roundTrips(cfg *config.Config) (*report.RTTs, error) {
	sites := reportSites(cfg)
	if cfg.Latency == "" {
		return report.ByFormula(sites), nil
	}
	l, err := report.LoadLatency(cfg.Latency)
	if err != nil {
		return nil, err
	}
	return l.Bind(sites)
}
