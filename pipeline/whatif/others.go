package whatif

import (
	"penstock/consumers/decider/baselines"
	"penstock/pipeline/report"
)

// Others plays the strategies of others (consumers/decider/baselines) side by
// side: nearest-replica, distance-only, volley, akkio-like.
type Others struct {
	box    *baselines.Box
	sites  []Site
	served bool
	meters []meter
	places []int32 // of the box, by place of the geography
	at     []int16
}

// NewOthers starts them on an empty stage, for sites of the recording whose
// frames will be played. Served is Options.Served of that recording: new owners
// stand where its frames say.
func NewOthers(sites []Site, served bool, p Play) *Others {
	list := make([]baselines.Site, len(sites))
	for i, s := range sites {
		list[i] = baselines.Site{Lat: s.Lat, Lon: s.Lon, Capacity: p.Capacity[i]}
	}
	o := &Others{box: baselines.New(list, baselines.Options{}), sites: sites, served: served}
	for range o.box.Strategies() {
		o.meters = append(o.meters, newMeter(p))
		o.at = append(o.at, baselines.None)
	}
	return o
}

// Strategies are what is played, in order: their names, texts and copies.
func (o *Others) Strategies() []baselines.Strategy { return o.box.Strategies() }

// Delays is the distribution of the latency delays of strategy i so far.
func (o *Others) Delays(i int) *report.Delays { return o.meters[i].Delays() }

// Step takes all of them through a frame. The result is by strategy.
func (o *Others) Step(f *Frame) []Measured {
	if o.box.Places().Full() {
		o.box.Places().Reset()
		o.places = o.places[:0]
	}
	out := make([]Measured, len(o.meters))
	for i := range out {
		out[i] = o.meters[i].measured(f)
	}
	if o.served {
		for _, s := range f.fresh {
			o.box.Stand(s.id, s.site, 0)
		}
	}
	for i := range f.pairs {
		pr := &f.pairs[i]
		w := &f.owners[pr.row]
		a := baselines.Access{
			Owner: w.id, User: pr.user, Place: o.place(f, pr.place), Requests: pr.requests, Bytes: pr.bytes, Written: pr.written,
		}
		o.box.Access(&a, o.at)
		for j, site := range o.at {
			o.meters[j].access(&out[j], f, pr, site)
		}
	}
	for i := range out {
		o.meters[i].judge(&out[i])
	}
	for j, moved := range o.box.Close(f.End) {
		o.meters[j].moved(&out[j], moved)
	}
	return out
}

func (p *meter) access(m *Measured, f *Frame, pr *pair, site int16) {
	if site < 0 {
		m.Unplaced += pr.bytes
		return
	}
	m.Traffic[site] += pr.bytes
	m.Written[site] += pr.written
	m.Requests += pr.requests
	if pr.place != nowhere {
		p.delay(m, f.geo.delay(pr.place, site), pr.requests)
	}
}

// moved counts what goes from site to site at the end of a frame.
func (p *meter) moved(m *Measured, moved []baselines.Moved) {
	over := p.over(m.Traffic)
	clear(p.arrived)
	for _, v := range moved {
		if v.To == baselines.None {
			m.Between += v.Bytes
			for to := range p.sites {
				if int16(to) != v.From {
					m.USD += p.price(v.From, int16(to), v.Bytes/int64(p.sites-1))
				}
			}
			continue
		}
		m.Moves++
		m.MovedBytes += v.Bytes
		m.Between += v.Bytes
		m.USD += p.price(v.From, v.To, v.Bytes)
		if over[v.From] {
			m.Relieving++
			p.arrived[v.To] = true
		}
	}
}

// place is the box's number of a place.
func (o *Others) place(f *Frame, place int32) int32 {
	if place == nowhere {
		return baselines.None
	}
	for int(place) >= len(o.places) {
		o.places = append(o.places, baselines.None)
	}
	if o.places[place] == baselines.None {
		c := f.geo.coordinates[place]
		o.places[place] = o.box.Places().Find(c[0], c[1])
	}
	return o.places[place]
}
