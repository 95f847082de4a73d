package picker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/shares"
	"penstock/schemas/control"
)

// callee is a component that this application calls.
type callee struct {
	p    *Picker
	link shares.Link
	now  atomic.Pointer[known]

	mu    sync.Mutex // of those who change what is known
	state State
	first chan struct{} // closed at the first answer
	told  bool
}

// known is what is known of a component at one moment. It is not changed, but for
// the shares that its router has.
type known struct {
	shares *shares.Router
	sites  []site
	table  bool // the shares are of one; else writes alone may have a site
}

// State is what is known of a component, and from when.
type State struct {
	Component string
	// Epoch is that of the table by which is picked; Known is false if there is none
	// for these calls.
	Epoch uint64
	Known bool
	// Answered is when the API was last in touch; zero: never.
	Answered time.Time
	// Age is for how long the API had not heard the bus then.
	Age time.Duration
	// Err is why the last question had no answer that could be used; nil if it had.
	Err error
	// Out are servers that are out, of all Servers.
	Out, Servers int
}

func newCallee(p *Picker, component string) *callee {
	c := &callee{
		p: p, link: shares.Link{From: p.o.Component, FromSite: p.o.Site, To: component},
		state: State{Component: component}, first: make(chan struct{}),
	}
	k := &known{shares: shares.New(shares.Options{Clock: p.o.Clock})}
	k.sites = c.sites(k, nil)
	c.now.Store(k)
	return c
}

// at returns a site, nil if it isn't known.
func (k *known) at(name string) *site {
	for i := range k.sites {
		if k.sites[i].name == name {
			return &k.sites[i]
		}
	}
	return nil
}

// mostAgain bounds how often a choice is made again because what was known was
// replaced under it.
const mostAgain = 100

// choose chooses a site and one of its servers. What is known may be replaced
// between the two, so that the site is one of before or after; then it chooses again.
func (c *callee) choose(key string, write bool) Choice {
	for again := 0; ; again++ {
		k := c.now.Load()
		var at shares.Choice
		if write {
			at = k.shares.Writes(c.link, key)
		} else {
			at = k.shares.Pick(c.link, key)
		}
		s := k.at(at.Site)
		if s == nil && again < mostAgain && c.now.Load() != k {
			continue
		}
		choice := Choice{Site: at.Site, Epoch: at.Epoch, Known: at.Known && k.table}
		switch {
		case s == nil:
		case key == "":
			choice.server = s.next(c.p.nanos)
		default:
			choice.server = s.forKey(key, c.p.nanos)
		}
		if choice.server == nil {
			c.p.metrics.noServer.Inc()
			return choice
		}
		choice.callee, choice.Server = c, choice.server.url
		return choice
	}
}

// sites makes the sites of an answer and this one, with the servers that there were
// before, and the fallback for this site where none are named.
func (c *callee) sites(before *known, ratios []control.SplitSite) []site {
	here := control.SplitSite{Site: c.p.o.Site}
	if !slices.ContainsFunc(ratios, func(r control.SplitSite) bool { return r.Site == here.Site }) {
		ratios = append(slices.Clone(ratios), here)
	}
	out := make([]site, len(ratios))
	for i, r := range ratios {
		addresses := r.Servers
		if len(addresses) == 0 && r.Site == c.p.o.Site {
			addresses = c.p.o.Fallback[c.link.To]
		}
		old := before.at(r.Site)
		out[i] = site{name: r.Site, servers: make([]*server, len(addresses))}
		if old != nil {
			out[i].turns = old.turns
		} else {
			out[i].turns = &turns{}
		}
		for j, address := range addresses {
			if out[i].servers[j] = old.server(address); out[i].servers[j] == nil {
				out[i].servers[j] = newServer(address, out[i].turns)
			}
		}
	}
	return out
}

// server returns a server of a site by its address, nil if it has none.
func (s *site) server(address string) *server {
	if s == nil {
		return nil
	}
	for _, each := range s.servers {
		if each.url == address {
			return each
		}
	}
	return nil
}

// apply brings an answer into force; anew forgets what epochs there were. Sites are
// known before shares send anybody there, and as long as they may.
func (c *callee) apply(a *control.SplitAnswer, anew bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.now.Load()
	next := &known{shares: before.shares, sites: c.sites(before, a.Ratios), table: a.Known}
	if anew {
		next.shares = shares.New(shares.Options{Clock: c.p.o.Clock})
	} else {
		both := &known{shares: before.shares, sites: append([]site(nil), next.sites...), table: a.Known}
		for _, s := range before.sites {
			if both.at(s.name) == nil {
				both.sites = append(both.sites, s)
			}
		}
		c.now.Store(both)
	}
	err := c.put(next.shares, a)
	if err != nil {
		c.now.Store(before)
		return err
	}
	c.now.Store(next)
	for _, s := range before.sites {
		for _, each := range s.servers {
			if next.at(s.name).server(each.url) == nil {
				each.leave()
			}
		}
	}
	c.state.Epoch, c.state.Known = a.Epoch, a.Known
	c.settle(c.p.o.Clock.Now().UnixNano())
	return nil
}

// put gives the table of an answer to a router, or none. Where no table has the calls
// an answer can still say where those that write go.
func (c *callee) put(r *shares.Router, a *control.SplitAnswer) error {
	ctx := context.Background() // nothing of it waits
	if !a.Known && a.WritesAt == "" {
		return r.Clear(ctx, c.link.From)
	}
	row := shares.Row{FromSite: a.FromSite, To: a.Component, WritesAt: a.WritesAt}
	for _, each := range a.Ratios {
		row.Ratios = append(row.Ratios, shares.Ratio{Site: each.Site, Share: each.Share})
	}
	_, err := r.Put(ctx, shares.Table{From: a.From, Epoch: a.Epoch, Rows: []shares.Row{row}})
	return err
}

// settle tells the shares which sites can take requests, and returns when that may
// be otherwise by itself; 0: never. The caller holds mu.
func (c *callee) settle(now int64) (again int64) {
	k := c.now.Load()
	for i := range k.sites {
		s := &k.sites[i]
		until, all := s.allOut(now)
		k.shares.Up(shares.Replica{Component: c.link.To, Site: s.name}, !all && len(s.servers) > 0)
		if all && (again == 0 || until < again) {
			again = until
		}
	}
	return again
}
