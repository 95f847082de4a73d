package coding

import (
	"context"
	"fmt"
	"sync"

	"penstock/consumers/executor/coder/queue"
	"penstock/pipeline/experiment/coding/simcoder"
	"penstock/pipeline/experiment/side"
	"penstock/pipeline/report"
)

// Point is what a policy came to at a load.
type Point struct {
	Policy    string   `json:"policy"`
	Load      int      `json:"load_percent"`
	PerSecond float64  `json:"per_second"`
	Requests  int      `json:"requests"`
	Mean      Estimate `json:"mean_ms"`
	SD        Estimate `json:"standard_deviation_ms"`
	P50       Estimate `json:"p50_ms"`
	P90       Estimate `json:"p90_ms"`
	P99       Estimate `json:"p99_ms"`
	// Backlog is how many requests an arrival found waiting, Busy the share of
	// connections in use.
	Backlog Estimate `json:"backlog"`
	Busy    Estimate `json:"busy"`
	// Tasks were started for a request, USD is what a million requests cost by them.
	Tasks Estimate `json:"tasks_per_request"`
	USD   Estimate `json:"usd_per_million"`
	// K are the shares of requests on each k from 1 on. Neighbours is the greatest share
	// on two neighbouring k, K1 the lower of them.
	K          []report.Figure `json:"share_of_k"`
	Neighbours Estimate        `json:"share_of_two_neighbours"`
	K1         int             `json:"lower_neighbour"`

	means, deviations []float64 // by seed
}

// name is its policy's, – of no point.
func (p *Point) name() string {
	if p == nil {
		return "–"
	}
	return p.Policy
}

// work is the running of a result's parts.
type work struct {
	*Result
	workers int
	tell    func(done, all int)

	mu        sync.Mutex
	done, all int
}

// each runs n pieces side by side and tells of progress; more are to come.
func (w *work) each(ctx context.Context, n, more int, do func(i int) error) error {
	w.all = w.done + n + more
	return side.Run(ctx, w.workers, n, func(i int) error {
		err := do(i)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.done++; w.tell != nil {
			w.tell(w.done, w.all)
		}
		return err
	})
}

// piece is a policy at a store under a load.
type piece struct {
	store *StoreResult
	arm   *arm
	load  int
	outs  []*simcoder.Outcome // by seed
}

// options are those that all runs of a site have in common.
func (p *Params) options(s *site, a *arm, seed uint64) (simcoder.Options, error) {
	c, at, loop, err := a.chooser(p, s)
	op := queue.Read
	if s.Op == queue.Write.String() {
		op = queue.Write
	}
	o := simcoder.Options{
		Seed: seed, Connections: p.Connections, Chooser: c, Clock: at, Op: op, Law: s.Law, Cancel: s.Cancel, Bytes: s.bytes,
		Warm: p.Warm, Requests: p.Requests, Loop: loop,
	}
	if loop != nil {
		o.WarmFor = p.Learned.Warm
	}
	return o, err
}

// all runs pieces with every seed.
func (w *work) pieces(ctx context.Context, pieces []piece, more int, options func(*piece, uint64) (simcoder.Options, error)) error {
	for i := range pieces {
		pieces[i].outs = make([]*simcoder.Outcome, w.Seeds)
	}
	return w.each(ctx, len(pieces)*w.Seeds, more, func(i int) error {
		x, seed := &pieces[i/w.Seeds], i%w.Seeds
		o, err := options(x, w.FirstSeed+uint64(seed))
		if err == nil {
			x.outs[seed], err = simcoder.Run(ctx, o)
		}
		if err != nil {
			return fmt.Errorf("%s, %s: %w", x.store.Name, x.arm.name, err)
		}
		return nil
	})
}

// waiting is how many requests always wait while a capacity is measured: more than any
// threshold of any store here.
const waiting = 200

// capacities measures what each policy carries, with a quarter of the requests: it
// hangs on means alone.
func (w *work) capacities(ctx context.Context) error {
	var pieces []piece
	for i := range w.Stores {
		r := &w.Stores[i]
		for j := range r.site.arms {
			pieces = append(pieces, piece{store: r, arm: &r.site.arms[j]})
		}
	}
	if err := w.pieces(ctx, pieces, len(pieces)*len(w.params.Judged)*w.Seeds, func(x *piece, seed uint64) (simcoder.Options, error) {
		o, err := w.params.options(x.store.site, x.arm, seed)
		o.Waiting, o.Requests = waiting, max(1, o.Requests/4)
		return o, err
	}); err != nil {
		return err
	}
	for i := range pieces {
		x := &pieces[i]
		c := Capacity{Policy: x.arm.name, PerSecond: over(x.outs, (*simcoder.Outcome).Throughput)}
		if s := x.store.site; x.arm.static.K > 0 && s.model() {
			c.Formula = float64(rounded(s.Law.Model().Capacity(s.sizeMB, x.arm.static.N, x.arm.static.K, w.params.Connections)))
		}
		x.store.Capacities = append(x.store.Capacities, c)
	}
	return nil
}

// points measures each policy at each load that it keeps up with.
func (w *work) points(ctx context.Context) error {
	var pieces []piece
	for i := range w.Stores {
		r := &w.Stores[i]
		for _, load := range r.site.loads {
			for j := range r.site.arms {
				rate := float64(load) / 100 * r.site.capacity
				if rate < w.params.Stable*float64(r.Capacities[j].PerSecond.Value) {
					pieces = append(pieces, piece{store: r, arm: &r.site.arms[j], load: load})
				}
			}
		}
	}
	if err := w.pieces(ctx, pieces, 0, func(x *piece, seed uint64) (simcoder.Options, error) {
		o, err := w.params.options(x.store.site, x.arm, seed)
		o.Rate = simcoder.Steady(float64(x.load) / 100 * x.store.site.capacity)
		return o, err
	}); err != nil {
		return err
	}
	for i := range pieces {
		x := &pieces[i]
		x.store.Points = append(x.store.Points, x.point(w.params))
	}
	return nil
}

// over is the estimate of a figure.
func over(outs []*simcoder.Outcome, of func(*simcoder.Outcome) float64) Estimate {
	return estimate(bySeed(outs, of))
}

func bySeed(outs []*simcoder.Outcome, of func(*simcoder.Outcome) float64) []float64 {
	values := make([]float64, len(outs))
	for i, o := range outs {
		values[i] = of(o)
	}
	return values
}

// point sums up the runs of a piece.
func (x *piece) point(p *Params) Point {
	price := max(0, p.Price.Read)
	if x.store.site.Op == queue.Write.String() {
		price = max(0, p.Price.Write)
	}
	tasks := func(o *simcoder.Outcome) float64 { return float64(o.Tasks) / float64(o.Requests) }
	out := Point{
		Policy: x.arm.name, Load: x.load, PerSecond: float64(rounded(float64(x.load) / 100 * x.store.site.capacity)),
		Mean:    over(x.outs, func(o *simcoder.Outcome) float64 { return o.Mean }),
		SD:      over(x.outs, func(o *simcoder.Outcome) float64 { return o.SD }),
		P50:     over(x.outs, func(o *simcoder.Outcome) float64 { return o.P50 }),
		P90:     over(x.outs, func(o *simcoder.Outcome) float64 { return o.P90 }),
		P99:     over(x.outs, func(o *simcoder.Outcome) float64 { return o.P99 }),
		Backlog: over(x.outs, func(o *simcoder.Outcome) float64 { return o.Backlog }),
		Busy:    over(x.outs, func(o *simcoder.Outcome) float64 { return o.Busy }),
		Tasks:   over(x.outs, tasks),
		USD:     over(x.outs, func(o *simcoder.Outcome) float64 { return price * tasks(o) }),
		means:   bySeed(x.outs, func(o *simcoder.Outcome) float64 { return o.Mean }),

		deviations: bySeed(x.outs, func(o *simcoder.Outcome) float64 { return o.SD }),
	}
	ks := simcoder.Outcome{K: make([]int64, p.KMax+1)}
	for _, o := range x.outs {
		ks.Requests += o.Requests
		for k, n := range o.K {
			ks.K[k] += n
		}
	}
	out.Requests = ks.Requests
	for _, n := range ks.K[1:] {
		out.K = append(out.K, rounded(float64(n)/float64(ks.Requests)))
	}
	_, out.K1 = ks.Neighbours()
	// All seeds have the same two k, those that most of all requests have.
	out.Neighbours = over(x.outs, func(o *simcoder.Outcome) float64 {
		both := int64(0)
		for k := out.K1; k <= out.K1+1 && k < len(o.K); k++ {
			both += o.K[k]
		}
		return float64(both) / float64(o.Requests)
	})
	return out
}
