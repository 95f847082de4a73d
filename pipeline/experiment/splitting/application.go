package splitting

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"penstock/consumers/decider/split"
	"penstock/pipeline/experiment/multitier"
	"penstock/schemas/sphere"
)

// application is one that can be simulated.
type application struct {
	name    string
	load    *Load
	app     *multitier.App
	focus   int // component of which servers fail
	storage int
}

// build makes an application of one that is written down.
func (a *Application) build(n *Network) (*application, error) {
	index := map[string]int{}
	for i, c := range a.Components {
		index[c.Name] = i
	}
	out := &application{name: a.Name, load: &a.Load}
	var ok, ok2 bool
	out.focus, ok = index[a.Focus]
	out.storage, ok2 = index[a.Storage]
	if !ok || !ok2 || len(index) != len(a.Components) || !(a.Rate > 0) || a.Users < 1 || len(a.Sites) < 2 {
		return nil, fmt.Errorf("%s: focus %q, storage %q, %d components of %d names, rate %v, %d users, %d sites", a.Name, a.Focus, a.Storage, len(a.Components), len(index), a.Rate, a.Users, len(a.Sites))
	}
	app := network(&a.Load, n)
	app.Entry = multitier.Call{To: 0, Light: 1, Heavy: 1, Times: 1, Bytes: entryBytes(a), Answer: 20_000}
	for _, c := range a.Components {
		k := multitier.Component{Name: c.Name, Service: c.Service, CV: c.CV, Heavy: orOne(c.Heavy), Keyed: c.Keyed}
		for range a.Sites {
			k.Servers = append(k.Servers, c.Servers)
		}
		for _, x := range c.Calls {
			to, ok := index[x.To]
			if !ok {
				return nil, fmt.Errorf("%s: %s calls %q, which is none of its components", a.Name, c.Name, x.To)
			}
			call := multitier.Call{To: to, Light: 1, Heavy: 1, Times: max(1, x.Times), Bytes: x.Bytes, Answer: x.Answer}
			if x.Light != nil {
				call.Light = *x.Light
			}
			if x.HeavyCalls != nil {
				call.Heavy = *x.HeavyCalls
			}
			k.Calls = append(k.Calls, call)
		}
		app.Components = append(app.Components, k)
	}
	out.app = app
	return out, app.Check()
}

// entryBytes is what a request from outside carries: what the front hands on.
func entryBytes(a *Application) int64 {
	if c := a.Components[0].Calls; len(c) > 0 {
		return c[0].Bytes
	}
	return 1000
}

func orOne(x float64) float64 {
	if x == 0 {
		return 1
	}
	return x
}

// network is an application's sites and the ways between them, without components.
func network(l *Load, n *Network) *multitier.App {
	app := &multitier.App{
		Within: multitier.Way{Jitter: n.Within.Jitter, Rate: n.Within.Rate}, Between: multitier.Way{Jitter: n.Between.Jitter, Rate: n.Between.Rate},
	}
	for _, a := range l.Sites {
		app.Sites = append(app.Sites, multitier.Site{Name: a.Name, Egress: a.Egress})
		var row []time.Duration
		for _, b := range l.Sites {
			rtt := n.Within.RTT
			if a.Name != b.Name {
				rtt = time.Duration(sphere.RTT(sphere.Km(a.Lat, a.Lon, b.Lat, b.Lon)) * float64(time.Millisecond)).Round(time.Microsecond)
			}
			row = append(row, rtt)
		}
		app.RTT = append(app.RTT, row)
	}
	return app
}

// draw makes a random application: a tree with an odd seed, else a graph.
func (p *Random) draw(seed uint64, n *Network) (*application, error) {
	r := rand.New(rand.NewPCG(seed, 2))
	app := network(&p.Load, n)
	app.Entry = multitier.Call{To: 0, Light: 1, Heavy: 1, Times: 1, Bytes: 2000, Answer: 20_000}
	between := func(x [2]float64) float64 { return x[0] + r.Float64()*(x[1]-x[0]) }
	for i := range p.Components {
		app.Components = append(app.Components, multitier.Component{Name: fmt.Sprintf("c%02d", i), CV: between(p.CV), Heavy: 1})
	}
	call := func(from, to int) {
		likely := between(p.Likely)
		bytes := p.Bytes[0] * math.Pow(p.Bytes[1]/p.Bytes[0], r.Float64())
		app.Components[from].Calls = append(app.Components[from].Calls, multitier.Call{
			To: to, Light: likely, Heavy: min(1, 1.5*likely), Times: 1, Bytes: int64(bytes / 4), Answer: int64(bytes),
		})
	}
	for to := 1; to < p.Components; to++ {
		reach := min(to, p.Reach)
		from := to - 1 - r.IntN(reach)
		call(from, to)
		if other := to - 1 - r.IntN(reach); seed%2 == 0 && other != from && r.Float64() < p.Second {
			call(other, to)
		}
	}
	out := &application{name: p.Name, load: &p.Load, app: app, focus: 1}
	calls := app.PerRequest(p.Heavy)
	out.storage = p.Components - 1
	for i := 1; i < p.Components; i++ {
		if calls[i] > calls[out.focus] {
			out.focus = i
		}
		if len(app.Components[i].Calls) == 0 && (calls[i] > calls[out.storage] || len(app.Components[out.storage].Calls) > 0) {
			out.storage = i
		}
	}
	app.Components[out.focus].Heavy = p.HeavyService
	for i := range app.Components {
		c := &app.Components[i]
		servers := p.Servers[0] + r.IntN(p.Servers[1]-p.Servers[0]+1)
		if i == out.focus {
			servers = 2 // One of two instances is what fails.
		}
		for range p.Sites {
			c.Servers = append(c.Servers, servers)
		}
		seconds := between(p.Busy) * float64(servers) / (p.Rate * calls[i] * (1 - p.Heavy + p.Heavy*c.Heavy))
		c.Service = time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
	}
	return out, app.Check()
}

// config is what a policy is told of the application.
func (a *application) config(p *Params, policy string) split.Config {
	c := split.Config{Policy: policy, Egress: map[string]float64{}}
	if policy == split.LP {
		c.MSPerUSD = p.MSPerUSD
	}
	for n, s := range a.load.Sites {
		c.Sites = append(c.Sites, split.Site{Name: s.Name, Lat: s.Lat, Lon: s.Lon})
		c.Egress[s.Name] = s.Egress
		for k := n + 1; k < len(a.load.Sites); k++ {
			c.Links = append(c.Links, split.Link{From: s.Name, To: a.load.Sites[k].Name, Delay: a.app.RTT[n][k]})
		}
	}
	bytes := make([]multitier.Call, len(a.app.Components))
	bytes[a.app.Entry.To] = a.app.Entry
	for i := range a.app.Components {
		for _, k := range a.app.Components[i].Calls {
			bytes[k.To] = k
		}
	}
	for i := range a.app.Components {
		k := split.Component{Name: a.app.Components[i].Name, Capacity: map[string]float64{}, CallBytes: bytes[i].Bytes, AnswerBytes: bytes[i].Answer}
		for n, s := range a.load.Sites {
			k.Sites = append(k.Sites, s.Name)
			k.Capacity[s.Name] = p.Told * a.app.Takes(i, n, a.load.Heavy)
		}
		c.Components = append(c.Components, k)
	}
	return c
}
