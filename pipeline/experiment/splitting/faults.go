package splitting

import (
	"math/rand/v2"
	"time"

	"penstock/pipeline/experiment/multitier"
)

// affected is the site at which faults happen.
const affected = 0

// length is for how long a run of the fault lasts, and what of it is reported.
func (p *Params) length(f *Fault) (length, from, to time.Duration) {
	if f.Natural {
		return p.Time.Natural, p.Time.Warm, p.Time.Natural
	}
	return p.Time.Length, p.Time.From, p.Time.To
}

// changes are a fault in an application.
func (p *Params) changes(f *Fault, a *application, seed uint64) []multitier.Change {
	if f.Natural {
		return p.Natural.spells(a, seed, p.Time.Warm, p.Time.Natural)
	}
	base := multitier.Change{From: p.Time.From, To: p.Time.To, Site: affected}
	var out []multitier.Change
	if f.Servers > 0 {
		c := base
		c.Component, c.Servers = a.focus, f.Servers
		out = append(out, c)
	}
	if f.Latency > 0 {
		c := base
		c.Component, c.Latency = a.storage, f.Latency
		out = append(out, c)
	}
	if f.Heavy > 0 || f.Between > 0 || f.Within > 0 || f.Arrivals > 0 {
		c := base
		c.Heavy, c.Between, c.Within, c.Arrivals = f.Heavy, f.Between, f.Within, f.Arrivals
		out = append(out, c)
	}
	return out
}

// spells draws the bad spells of all replicas, each from a generator of its own.
func (n *Natural) spells(a *application, seed uint64, warm, length time.Duration) []multitier.Change {
	var out []multitier.Change
	for i := range a.app.Components {
		for site := range a.app.Sites {
			r := rand.New(rand.NewPCG(seed, 1_000_000+uint64(i*len(a.app.Sites)+site)))
			at := warm
			for {
				at += time.Duration(r.ExpFloat64() * float64(n.Good))
				if at >= length {
					break
				}
				c := multitier.Change{From: at, To: at + time.Duration(r.ExpFloat64()*float64(n.Bad)), Site: site, Component: i}
				if r.IntN(2) == 0 {
					c.Latency, c.Spread = n.Latency, true
				} else {
					c.Slow = n.Slow
				}
				at = c.To
				out = append(out, c)
			}
		}
	}
	return out
}

// arrivals is how requests come to an application by themselves.
func (p *Params) arrivals(l *Load) multitier.Arrivals {
	a := multitier.Arrivals{
		Day: p.Arrivals.Day, Swing: p.Arrivals.Swing, Every: p.Arrivals.Bursts.Every, Burst: p.Arrivals.Bursts.Mean, Factor: p.Arrivals.Bursts.Factor,
	}
	for n := range l.Sites {
		a.Rate = append(a.Rate, l.Rate)
		a.Phase = append(a.Phase, float64(n)/float64(3*(len(l.Sites)-1)))
	}
	return a
}
