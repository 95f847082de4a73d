package serving

import (
	"math"
	"slices"

	"penstock/pipeline/experiment/serving/simservers"
	"penstock/pipeline/report"
)

// Cell is what a policy came to in a scenario and mode: medians over seeds.
type Cell struct {
	Scenario   string        `json:"scenario"`
	Overloaded bool          `json:"overloaded"`
	HeldOut    bool          `json:"held_out"`
	Mode       Mode          `json:"mode"`
	Policy     string        `json:"policy"`
	Cost       report.Figure `json:"cost"`
	ServerCost report.Figure `json:"server_cost"`
	Penalty    report.Figure `json:"penalty"`
	P50        report.Figure `json:"p50_s"`
	P90        report.Figure `json:"p90_s"`
	P99        report.Figure `json:"p99_s"`
	Late       report.Figure `json:"share_late"`
	Changes    report.Figure `json:"changes"`
	Requests   report.Figure `json:"requests"`
	// Bound is the median of the bounds.
	Bound report.Figure `json:"bound"`

	text   string
	costs  []float64 // by seed
	bounds []float64
}

// add sums up what came of a scenario.
func (r *Result) add(t *trial, seeds []ran) {
	for m, mode := range modes {
		for i := range r.params.Policies {
			of := func(f func(o *simservers.Outcome) float64) []float64 {
				v := make([]float64, len(seeds))
				for s := range seeds {
					v[s] = f(seeds[s].outs[m][i])
				}
				return v
			}
			c := Cell{
				Scenario: t.name, Overloaded: t.overloaded, HeldOut: t.heldOut, Mode: mode, Policy: r.params.Policies[i].Name, text: t.text,
				ServerCost: middle(of(func(o *simservers.Outcome) float64 { return o.ServerCost })),
				Penalty:    middle(of(func(o *simservers.Outcome) float64 { return o.Penalty })),
				P50:        middle(of(func(o *simservers.Outcome) float64 { return o.P50 })),
				P90:        middle(of(func(o *simservers.Outcome) float64 { return o.P90 })),
				P99:        middle(of(func(o *simservers.Outcome) float64 { return o.P99 })),
				Late:       middle(of(func(o *simservers.Outcome) float64 { return o.Late })),
				Changes:    middle(of(func(o *simservers.Outcome) float64 { return float64(o.Changes) })),
				Requests:   middle(of(func(o *simservers.Outcome) float64 { return float64(o.Requests) })),
				costs:      of(func(o *simservers.Outcome) float64 { return o.Cost }),
			}
			for s := range seeds {
				c.bounds = append(c.bounds, seeds[s].bounds[m])
			}
			c.Cost, c.Bound = middle(c.costs), middle(c.bounds)
			r.Cells = append(r.Cells, c)
		}
	}
	r.Courses = append(r.Courses, seeds[0].course...)
}

// middle is the median of values, rounded so that the last bits of a sum show nowhere.
func middle(values []float64) report.Figure {
	v := slices.Clone(values)
	slices.Sort(v)
	n := len(v)
	return rounded((v[(n-1)/2] + v[n/2]) / 2)
}

// rounded is v to a ten-thousandth.
func rounded(v float64) report.Figure { return report.Figure(math.Round(v*1e4) / 1e4) }

// cell is that of a policy; nil if there is none.
func (r *Result) cell(scenario string, mode Mode, policy string) *Cell {
	i := slices.IndexFunc(r.Cells, func(c Cell) bool { return c.Scenario == scenario && c.Mode == mode && c.Policy == policy })
	if i < 0 {
		return nil
	}
	return &r.Cells[i]
}

// scenarios are the cells of the first policy in a mode that pass a sieve.
func (r *Result) scenarios(mode Mode, keep func(c *Cell) bool) []*Cell {
	var out []*Cell
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Mode == mode && c.Policy == r.params.Policies[0].Name && keep(c) {
			out = append(out, c)
		}
	}
	return out
}

func each(*Cell) bool { return true }

// Course is a run of the first seed over time: once a period.
type Course struct {
	Scenario string    `json:"scenario"`
	Mode     Mode      `json:"mode"`
	Policy   string    `json:"policy"`
	Queued   []int     `json:"queued"`
	On       []int     `json:"on"`
	Penalty  []float64 `json:"penalty"`
}

// watch adds what is seen; nil of none.
func (c *Course) watch() func(*simservers.Look) {
	if c == nil {
		return nil
	}
	return func(l *simservers.Look) {
		queued, penalty, on := 0, 0.0, 0
		for z := range l.Zones {
			queued += l.Zones[z].Queued
			penalty += l.Zones[z].Penalty
		}
		for _, s := range l.Servers {
			if s != simservers.Off {
				on++
			}
		}
		c.Queued, c.On, c.Penalty = append(c.Queued, queued), append(c.On, on), append(c.Penalty, float64(rounded(penalty)))
	}
}
