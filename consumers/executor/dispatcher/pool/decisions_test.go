package pool

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"penstock/consumers/executor/dispatcher/line"
)

// plainly returns what the paper's formula gives for a job at a server: by a walk through
// its line, from the estimates alone.
func plainly(p *Pool, now int64, s *server, j *job) float64 {
	plain := line.NewPlain(p.policy.discipline())
	s.line.Each(func(it line.Item) bool {
		plain.Insert(now, it)
		return true
	})
	service := s.model.Service(j.size, j.dynamic)
	a, b, bias := s.model.WaitWeights()
	it := line.Item{
		ID: j.id, Deadline: j.due - nanoseconds(service), Penalty: j.class.Penalty, Service: service, Static: j.size,
	}
	if j.dynamic {
		it.Static, it.Dynamic = 0, j.size
	}
	if p.options.Policy == A3 {
		return -plain.Spread(now, it)
	}
	w := line.Wait{Bias: bias, PerStatic: a, PerDynamic: b}
	if s.in < s.m {
		w = line.Wait{} // it starts now
	}
	after, before := plain.Increase(now, it, w)
	return after - before
}

// plainEnd is when a job is expected to end at a server, behind all that it has.
func plainEnd(s *server, j *job) float64 {
	ahead := 0.0
	s.line.Each(func(it line.Item) bool { ahead += it.Service; return true })
	for _, r := range s.running {
		ahead += r.service
	}
	return s.model.Service(j.size, j.dynamic) + ahead/float64(s.m)
}

// TestDecisionsArePlain: A1 and A3 choose the least by the paper's formulas, walked
// through, A3 of those that are near by Options.Near; A2 chooses a shortest queue.
func TestDecisionsArePlain(t *testing.T) {
	t.Parallel()
	for _, policy := range []Policy{A1, A2, A3} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { plainDecisions(t, policy) })
		})
	}
}

func plainDecisions(t *rapid.T, policy Policy) {
	near := 0.0
	if policy == A3 {
		near = rapid.SampledFrom([]float64{0, 0.1, 2}).Draw(t, "near")
	}
	p, err := New(Options{Policy: policy, Classes: []Class{{0.1, 1}, {1, 5}, {0, 2}}, Ramp: -1, Near: near})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]Server, rapid.IntRange(1, 4).Draw(t, "servers"))
	for i := range list {
		list[i] = Server{Name: string(rune('a' + i)), M: rapid.IntRange(1, 2).Draw(t, "M")}
	}
	if _, _, err := p.SetServers(0, list, nil, nil); err != nil {
		t.Fatal(err)
	}
	now, runs := int64(second), []uint64(nil)
	for id := range uint64(40) {
		now += rapid.Int64Range(0, second/10).Draw(t, "after")
		if len(runs) > 0 && rapid.IntRange(0, 2).Draw(t, "end") == 0 {
			k := rapid.IntRange(0, len(runs)-1).Draw(t, "which")
			starts := p.Done(now, runs[k], Outcome{OK: true}, nil)
			runs = append(runs[:k], runs[k+1:]...)
			for _, s := range starts {
				runs = append(runs, s.ID)
			}
		}
		r := Request{
			ID: id + 1, Class: rapid.IntRange(0, 2).Draw(t, "class"), Size: rapid.Float64Range(1, 1e6).Draw(t, "size"),
			Dynamic: rapid.Bool().Draw(t, "dynamic"), Entered: now - rapid.Int64Range(0, second/2).Draw(t, "entered"),
		}
		j := p.take(now, r)
		cost, queues := map[string]float64{}, map[string]int{}
		least, shortest, soonest := math.Inf(1), math.MaxInt, math.Inf(1)
		for _, s := range p.live {
			soonest = min(soonest, plainEnd(s, j))
		}
		for _, s := range p.live {
			cost[s.name], queues[s.name] = plainly(p, now, s, j), s.queued
			shortest = min(shortest, s.queued)
			switch end, most := plainEnd(s, j), soonest*(1+near); {
			case near > 0 && end > most*(1+1e-9):
				cost[s.name] = math.Inf(1)
			case near == 0 || end <= most*(1-1e-9):
				least = min(least, cost[s.name])
			}
		}
		p.release(j)
		placed, starts, err := p.Arrive(now, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range starts {
			runs = append(runs, s.ID)
		}
		if policy == A2 {
			if queues[placed.Server] != shortest {
				t.Fatalf("%s is chosen of %v", placed.Server, queues)
			}
			continue
		}
		if tolerance := 1e-8 * max(1, math.Abs(least)); cost[placed.Server] > least+tolerance {
			t.Fatalf("%s is chosen of %v", placed.Server, cost)
		}
	}
}
