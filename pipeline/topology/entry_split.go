package topology

import (
	"penstock/infra/shares"
	"penstock/producers/entry"
	"penstock/producers/entry/upstream"
)

// components are the parts of the service that are called here, each with the pool
// of its servers at this site.
func (e *Entry) components(v *alone, o *entry.Options) ([]*upstream.Pool, error) {
	var pools []*upstream.Pool
	for i := range e.Config.Components {
		k := &e.Config.Components[i]
		r := entry.ComponentRoute{Name: k.Name, Hosts: k.Hosts, Path: k.Path, Public: k.Public, Sites: e.Config.SitesOf(k.Name), WritesAt: k.WritesAt}
		if len(k.Pin) > 0 {
			r.Sites = k.Pin
		}
		if here := k.Servers[e.Site]; len(here) > 0 {
			po := e.pool(v, k.Name+"@"+e.Site, upstreamServers(here))
			po.H2 = e.Config.Entry.ServersH2
			pool, err := upstream.New(po)
			if err != nil {
				return nil, err
			}
			pools, r.Local = append(pools, pool), pool
		}
		o.Components = append(o.Components, r)
	}
	return pools, nil
}

// split makes what holds the split tables in force; nil if nothing is split.
func (e *Entry) split(o *entry.Options) *shares.Router {
	if !e.Config.Splits() {
		return nil
	}
	s := e.Config.Entry.Session
	o.Session = entry.Session{Cookie: s.Cookie, Header: s.Header, TTL: s.TTL.Std()}
	o.Shares = shares.New(shares.Options{Name: "entry", Sites: siteNames(e.Config)})
	return o.Shares
}
