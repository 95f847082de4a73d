package servers

import (
	"slices"

	"penstock/consumers/decider/servers/switching"
	"penstock/schemas/control"
)

// Apply takes an outcome in. One of the server switch tells what servers are; one of a
// dispatcher tells that it gives requests by the table, or won't. Of an earlier epoch it
// changes nothing.
func (t *Policy) Apply(o *control.Outcome) {
	i, ok := t.index[o.Scope]
	if !ok || o.Kind != control.Servers {
		return
	}
	s := &t.state.sites[i]
	if o.Target != control.SwitchTarget {
		s.served.Take(o)
		return
	}
	if o.Epoch < s.switched.Epoch {
		return
	}
	took := *o
	if o.Status == control.Failed && len(o.Failed) > 0 {
		took.Status = control.Done // But for those servers.
	}
	s.switched.Take(&took)
	if took.Status == control.Done || took.Status == control.AlreadyApplied {
		t.arrived(i, o.Failed)
	}
}

// arrived takes servers for what they are to be, but for those that failed.
func (t *Policy) arrived(i int, failed []string) {
	s := &t.state.sites[i]
	for j, name := range t.names[i] {
		x := &s.servers[j]
		bad := slices.Contains(failed, name)
		switch {
		case x.wanted && bad:
			x.become(switching.Failed, t.state.now)
		case x.wanted:
			x.become(switching.On, t.state.now)
		case bad:
			x.become(switching.Draining, t.state.now)
		case x.state != switching.Failed: // One that failed is still one, until it is tried again.
			x.become(switching.Off, t.state.now)
		}
	}
}

// judge looks at the outcomes since the last window. A table that every dispatcher that
// answered refused or could not apply is not in force: the one before it is. One that the
// server switch could not apply at all has started nothing.
func (w *decision) judge() {
	t := w.t
	for i := range t.state.sites {
		s := &t.state.sites[i]
		if n := len(s.tables); s.served.Judge(s.last) && n > 0 && s.tables[n-1].window == s.sent {
			s.tables = s.tables[:n-1]
		}
		name := t.config.Sites[i].Name
		if s.switched.Judge(s.last) {
			w.reasons.Add(SwitchRefused, name, nil, "the server switch could not apply the table: what was to start has not")
			for j := range s.servers {
				if s.servers[j].state == switching.Starting {
					s.servers[j].become(switching.Failed, t.state.now)
				}
			}
		}
		for j := range s.servers {
			if x := &s.servers[j]; x.state == switching.Failed && x.since == t.state.now && x.wanted {
				w.reasons.Add(ServerFailed, name, map[string]any{"server": t.names[i][j]}, "it could not be turned on")
			}
		}
	}
}
