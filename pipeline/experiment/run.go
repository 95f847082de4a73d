package experiment

import (
	"fmt"
	"time"

	"penstock/consumers/decider/assign"
	"penstock/consumers/decider/placement"
	"penstock/pipeline/report"
	"penstock/pipeline/whatif"
	"penstock/schemas/window"
)

// Names of the strategies besides those of consumers/decider/baselines.
const (
	Baseline     = "nearest-replica"
	DistanceOnly = "distance-only"
	TMatch       = "tmatch"
	Optimal      = "optimal"
	Clairvoyant  = "clairvoyant"
)

// Advised is the name of one of our policies with a part of capacities kept free.
func Advised(policy string, part float64) string {
	return fmt.Sprintf("%s, %g %% free", policy, 100*part)
}

// Run is what one strategy came to on one day.
type Run struct {
	Seed     uint64 `json:"seed"`
	Model    string `json:"model"`
	Case     string `json:"case"`
	Strategy string `json:"strategy"`
	// Execution is the mean of W over sites and hours with traffic; Reduction is
	// against the baseline of the same day and case, in percent, unknown where
	// that waits for nothing.
	Execution report.Figure `json:"execution_delay"`
	Reduction report.Figure `json:"reduction_percent"`
	Latency   report.Delay  `json:"latency_delay_ms"`
	// Over counts sites over capacity, summed over hours.
	Over int `json:"site_hours_over_capacity"`
	// Moves are owners moved; Relieving of them left a site that was over.
	Moves      int   `json:"moves"`
	Relieving  int   `json:"moves_out_of_sites_over_capacity"`
	MovedBytes int64 `json:"bytes_moved"`
	// Balancing are the hours of the day, UTC, at whose beginning owners were
	// moved out of sites that had been over capacity in the hour before.
	Balancing []int `json:"balancing_hours"`
	// Overshoot is by how much of its capacity the worst site was over that had
	// been given owners an hour before; OvershootAt is when: site and hours, UTC.
	Overshoot   float64          `json:"overshoot"`
	OvershootAt map[string][]int `json:"overshoot_at,omitempty"`
	// Between is the bytes sent from site to site: moves, or copies of writes.
	Between int64   `json:"bytes_between_sites"`
	USD     float64 `json:"usd"`
	Copies  int     `json:"copies"`
	Stored  int64   `json:"bytes_stored"` // at the end, all copies
	// Peak is the busiest hour of all sites together against all capacity.
	Peak float64 `json:"peak_of_all_capacity"`
	// Inexact, of clairvoyant: hours that were not solved to the end.
	Inexact int `json:"inexact,omitempty"`
	// Plans is the printed objective, summed over the decided windows.
	Plans *Plans `json:"objective,omitempty"`
	// Hours are the frames, of the first seed only.
	Hours []Hour `json:"hours,omitempty"`
}

// Hour is one hour under a strategy.
type Hour struct {
	Start     int64         `json:"start_us"`
	Case      string        `json:"case,omitempty"`
	Traffic   []int64       `json:"bytes_by_site"`
	Waiting   float64       `json:"waiting"`
	Latency   report.Figure `json:"latency_delay_ms"`
	Moves     int           `json:"moves"`
	Relieving int           `json:"relieving"`
}

// stage is a day's windows in one case: what strategies are played on.
type stage struct {
	frames    []*whatif.Frame
	sites     []placement.Site // with their capacities an hour
	play      whatif.Play
	objective whatif.Objective
	hours     int // of a unit of time
	keepHours bool
	// budget is of the clairvoyant; without plans the objective of policies isn't
	// asked for.
	budget assign.Options
	plans  bool
	// advice is the headroom with which our policies are played once more; 0: not.
	advice float64
}

// objective is the weights of the printed objective but for alpha and beta: the
// policy's own defaults.
var objective = placement.Objective{Overload: 100, PerGB: 1, PerUSD: 1, Margin: 0.02}

// newStage sets a stage for sites with capacities an hour.
func newStage(frames []*whatif.Frame, sites []placement.Site, alpha, beta float64) *stage {
	s := &stage{frames: frames, sites: sites, hours: 1, budget: exactly, plans: true}
	s.objective = whatif.Objective{
		Alpha: alpha, Beta: beta,
		Overload: objective.Overload, PerGB: objective.PerGB, PerUSD: objective.PerUSD, Margin: objective.Margin,
	}
	for _, site := range sites {
		s.play.Capacity = append(s.play.Capacity, site.Capacity)
	}
	s.play.Objective = &s.objective
	return s
}

// tally adds measured frames up to a run.
func (s *stage) tally(name string, copies int, frames []whatif.Measured, d *report.Delays) Run {
	r := Run{Strategy: name, Copies: copies, Balancing: []int{}, OvershootAt: map[string][]int{}}
	waiting, loaded, all, stored := 0.0, 0, int64(0), int64(0)
	for _, c := range s.play.Capacity {
		all += c
	}
	for i := range frames {
		m := &frames[i]
		waiting += m.Waiting
		loaded += m.Loaded
		r.Over += m.Over
		r.Moves += m.Moves
		r.Relieving += m.Relieving
		r.MovedBytes += m.MovedBytes
		r.Between += m.Between
		r.USD += m.USD
		total := int64(0)
		for j, t := range m.Traffic {
			total += t
			stored += m.Written[j]
		}
		r.Peak = max(r.Peak, float64(total)/float64(all))
		if m.Relieving > 0 {
			r.Balancing = append(r.Balancing, hourOf(m.End))
		}
		s.overshoot(&r, m)
		if s.keepHours {
			r.Hours = append(r.Hours, hourOfFrame(m))
		}
	}
	r.Stored = stored * int64(copies)
	r.Execution, r.Reduction = report.Unknown(), report.Unknown()
	if loaded > 0 {
		r.Execution = report.Figure(waiting / float64(loaded))
	}
	if d != nil {
		r.Latency = d.Summary(0)
	}
	return r
}

// overshoot notes sites that are over capacity after they took owners in.
func (s *stage) overshoot(r *Run, m *whatif.Measured) {
	for j, over := range m.Overshoot {
		if over > 0 {
			r.Overshoot = max(r.Overshoot, over)
			name := s.sites[j].Name
			r.OvershootAt[name] = append(r.OvershootAt[name], hourOf(m.Start))
		}
	}
}

func hourOfFrame(m *whatif.Measured) Hour {
	h := Hour{Start: m.Start, Case: m.Case, Traffic: m.Traffic, Waiting: m.Waiting, Latency: report.Unknown(), Moves: m.Moves, Relieving: m.Relieving}
	if m.Located > 0 {
		h.Latency = report.Figure(float64(m.DelayUS) / float64(m.Located) / 1000)
	}
	return h
}

// against sets the reduction of execution delay against a baseline.
func (r *Run) against(base *Run) {
	if base.Execution > 0 && r.Execution.Known() {
		r.Reduction = report.Figure(100 * (1 - float64(r.Execution)/float64(base.Execution)))
	}
}

// config is a policy's configuration for the stage.
func (s *stage) config(policy string) placement.Config {
	c := placement.Config{
		Alpha: s.objective.Alpha, Beta: s.objective.Beta, Headroom: s.objective.Headroom, Place: placement.Latest,
		Policy: policy, Objective: objective, Window: window.Traffic.Width * time.Duration(s.hours),
	}
	for i, site := range s.sites {
		site.Capacity *= int64(s.hours)
		c.Sites = append(c.Sites, site)
		if s.objective.Egress != nil {
			if c.Egress == nil {
				c.Egress = map[string]float64{}
			}
			c.Egress[site.Name] = s.objective.Egress[i]
		}
	}
	return c
}

func places(sites []placement.Site) []whatif.Site {
	out := make([]whatif.Site, len(sites))
	for i, s := range sites {
		out[i] = whatif.Site{Name: s.Name, Lat: s.Lat, Lon: s.Lon}
	}
	return out
}

// baselines plays the strategies of others.
func (s *stage) baselines() []Run {
	o := whatif.NewOthers(places(s.sites), false, s.play)
	all := make([][]whatif.Measured, len(o.Strategies()))
	for _, f := range s.frames {
		for i, m := range o.Step(f) {
			all[i] = append(all[i], m)
		}
	}
	var out []Run
	for i, st := range o.Strategies() {
		out = append(out, s.tally(st.Name(), st.Copies(), all[i], o.Delays(i)))
	}
	return out
}
