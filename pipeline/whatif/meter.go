package whatif

import "penstock/pipeline/report"

// meter measures what a strategy serves.
type meter struct {
	play    Play
	sites   int
	all     report.Delays
	arrived []bool // by site: owners were moved there at the end of the last frame to relieve another
}

func newMeter(p Play) meter {
	return meter{play: p, sites: len(p.Capacity), arrived: make([]bool, len(p.Capacity))}
}

// Delays is the distribution of the latency delays of all frames so far.
func (p *meter) Delays() *report.Delays { return &p.all }

func (p *meter) measured(f *Frame) Measured {
	return Measured{Start: f.Start, End: f.End, Traffic: make([]int64, p.sites), Written: make([]int64, p.sites), Overshoot: make([]float64, p.sites)}
}

func (p *meter) delay(m *Measured, us, requests int64) {
	m.Located += requests
	m.DelayUS += us * requests
	p.all.Add(us, requests)
}

func (p *meter) price(from, to int16, bytes int64) float64 {
	if p.play.Prices == nil || bytes == 0 {
		return 0
	}
	return p.play.Prices(from, to) * float64(bytes) / 1e9
}

// judge finds the sites over capacity and the execution delay.
func (p *meter) judge(m *Measured) {
	for s, t := range m.Traffic {
		if t == 0 {
			continue
		}
		m.Loaded++
		ca := p.play.Capacity[s]
		if ca == 0 || t <= ca {
			continue
		}
		m.Over++
		m.Waiting += float64(t-ca) / float64(t)
		if p.arrived[s] {
			m.Overshoot[s] = float64(t-ca) / float64(ca)
		}
	}
}

// over says which sites have more than their capacity.
func (p *meter) over(traffic []int64) []bool {
	over := make([]bool, p.sites)
	for s, t := range traffic {
		over[s] = p.play.Capacity[s] > 0 && t > p.play.Capacity[s]
	}
	return over
}
