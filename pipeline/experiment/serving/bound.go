package serving

import (
	"penstock/pipeline/experiment/serving/clairvoyant"
	"penstock/pipeline/experiment/serving/loads"
	"penstock/pipeline/experiment/serving/simservers"
)

// slot of the bound's machine, s.
const slot = 0.5

// bound is what a run costs at least, by what the CPUs have to do.
func (p *Params) bound(t *trial, mode Mode, requests []loads.Request) float64 {
	fastest := 0.0
	for i := range t.servers {
		fastest = max(fastest, t.servers[i].Speed)
	}
	least := len(t.servers)
	if mode == Switched {
		least = p.Switching.Least
	}
	jobs := make([]clairvoyant.Job, len(requests))
	hop := p.System.Hop.Seconds()
	for i := range requests {
		r := &requests[i]
		x := &p.Pages[r.Page]
		at := float64(r.At) / 1e9
		// Behind the CPU come the database and the way back.
		due := at + x.Limit.Seconds() - float64(r.Database)/1e9 - hop
		jobs[i] = clairvoyant.Job{At: at + hop, Due: due, Work: float64(r.CPU()) / 1e9, Penalty: x.Penalty}
	}
	always := p.ServerCost * float64(least) * t.length.Seconds()
	return always + clairvoyant.Bound(jobs, p.machine(t, least, fastest))
}

// machine is the servers as one: `least` of the fastest kind are paid for, the rest of
// their work is bought by what the fastest asks for it. It has time enough for all.
func (p *Params) machine(t *trial, least int, fastest float64) *clairvoyant.Machine {
	n := int(t.length.Seconds()/slot*1.5) + 1
	m := &clairvoyant.Machine{Slot: slot, Free: make([]float64, n), Bought: make([]float64, n), Price: p.ServerCost / fastest}
	all := least == len(t.servers)
	for k := range n {
		from, to := int64(float64(k)*slot*1e9), int64(float64(k+1)*slot*1e9)
		work := 0.0
		for i := range t.servers {
			work += done(&t.servers[i], from, to)
		}
		m.Free[k] = work
		if !all {
			m.Free[k] = min(work, float64(least)*fastest*slot)
			m.Bought[k] = work - m.Free[k]
		}
	}
	return m
}

// done is the work that a server does in a time, s.
func done(s *simservers.Server, from, to int64) float64 {
	work := float64(to-from) / 1e9
	if w := s.Slow; w != nil {
		if within := min(to, w.To) - max(from, w.From); within > 0 {
			work -= float64(within) / 1e9 * (1 - 1/w.Factor)
		}
	}
	return work * s.Speed
}
