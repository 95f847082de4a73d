package live

import (
	"math"
	"slices"
	"time"

	"penstock/consumers/decider/coding/threshold"
	"penstock/pipeline/demo/machine"
	"penstock/pipeline/experiment/coding/simcoder"
)

// Result is what a sweep came to.
type Result struct {
	Scale      float64         `json:"scale"`
	Bytes      int             `json:"bytes"`
	Seed       uint64          `json:"seed"`
	Model      threshold.Model `json:"model"`
	Capacities []Capacity      `json:"capacities"`
	Points     []Point         `json:"points"`
	Machine    []machine.Usage `json:"machine"`
	// Wrong are reads that failed or gave other bytes; refused ones are counted at
	// their points.
	Wrong  []string `json:"wrong,omitempty"`
	Checks []Check  `json:"checks"`
	// Void says why the run shows nothing, if it does not.
	Void []string `json:"void,omitempty"`

	near, best float64
}

// Capacity is what a code carries by the model, and its delay without a queue.
type Capacity struct {
	Code      string  `json:"code"`
	PerSecond float64 `json:"per_second"`
	Delay     float64 `json:"delay_ms"`
}

// Point is a policy at a load. Delays are in ms.
type Point struct {
	Policy    string  `json:"policy"`
	Percent   int     `json:"percent"`
	PerSecond float64 `json:"per_second"` // requests due, by the plan
	Served    float64 `json:"served"`     // answers a second while requests came
	Requests  int     `json:"requests"`   // that count
	Refused   int     `json:"refused"`
	simcoder.Figures
	// K is the share of requests with each k, from 1 on; Chunks the mean n.
	K      []float64 `json:"k"`
	Chunks float64   `json:"chunks"`
	// Asked is how many requests the store got for one that was not refused.
	Asked float64 `json:"asked"`
	// Latest is how late the request was sent that was latest.
	Latest    float64    `json:"latest_ms"`
	Simulated *Simulated `json:"simulated,omitempty"`
}

// Simulated is the same by the simulation, on average over its runs. Of a code that does not keep up it says only
// what it answers while many wait.
type Simulated struct {
	KeepsUp bool    `json:"keeps_up"`
	Served  float64 `json:"served"`
	simcoder.Figures
	// Error is by how much the means of its runs differ, as a standard deviation: what
	// chance makes of as many requests as the coder gets.
	Error float64   `json:"error_ms"`
	K     []float64 `json:"k"`
	Asked float64   `json:"asked"`
}

// result has a place for each point.
func (o *Options) result() *Result {
	r := &Result{Scale: o.Scale, Bytes: o.Bytes, Seed: o.Seed, Model: o.model(threshold.DefaultRead), near: o.Near, best: o.Best}
	for _, p := range policies {
		if p.code.K > 0 {
			r.Capacities = append(r.Capacities, Capacity{p.name, o.capacity(p.code.N, p.code.K), r.Model.Service(o.sizeMB(), p.code.N, p.code.K)})
		}
	}
	for _, l := range o.Loads {
		for _, p := range policies {
			r.Points = append(r.Points, Point{Policy: p.name, Percent: l.Percent, PerSecond: o.rate(l)})
		}
	}
	return r
}

// point is that of a policy and load, of which there is one.
func (r *Result) point(policy string, percent int) *Point {
	i := slices.IndexFunc(r.Points, func(p Point) bool { return p.Policy == policy && p.Percent == percent })
	return &r.Points[i]
}

// capacity is that of a static policy.
func (r *Result) capacity(code string) *Capacity {
	i := slices.IndexFunc(r.Capacities, func(c Capacity) bool { return c.Code == code })
	return &r.Capacities[i]
}

// beside is the point with what the simulation says.
func (p *Point) beside(s *Simulated) Point {
	out := *p
	out.Simulated = s
	return out
}

// measure sums answers up. Requests that count were due from one instant to another; in
// that time those before them are answered too.
func (p *Point) measure(answers []answer, from, to time.Time) {
	var sum, squares float64
	var delays []float64
	served := 0
	for _, a := range answers {
		if !a.at.Before(from) && !a.at.After(to) {
			served++
		}
		if a.counts {
			delays = append(delays, ms(a.took))
			sum += ms(a.took)
		}
	}
	if span := to.Sub(from).Seconds(); span > 0 {
		p.Served = float64(served) / span
	}
	if len(delays) == 0 {
		return
	}
	slices.Sort(delays)
	n := float64(len(delays))
	p.Mean = sum / n
	for _, d := range delays {
		squares += (d - p.Mean) * (d - p.Mean)
	}
	p.SD = math.Sqrt(squares / n)
	at := func(q float64) float64 { return delays[min(len(delays)-1, max(0, int(math.Ceil(q*n))-1))] }
	p.P50, p.P90, p.P99 = at(0.5), at(0.9), at(0.99)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
