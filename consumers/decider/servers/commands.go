package servers

import (
	"cmp"
	"math"
	"slices"

	"penstock/consumers/decider/servers/switching"
	"penstock/consumers/decider/standing"
	"penstock/schemas/control"
)

// maxTables is how many tables a site remembers for a rollback.
const maxTables = 64

// plan is what is to be said to a site's executors.
type plan struct {
	table *control.ServersTable
	code  string
	// decision is the rule's, as far as the table follows it.
	decision switching.Decision
	evidence map[string]any
}

// site makes the command of a site and, in mode act, notes it as in force; nil if there is
// nothing to say, or if it may not be said.
func (w *decision) site(i int, d switching.Decision) *control.Command {
	t := w.t
	s, name := &t.state.sites[i], t.config.Sites[i].Name
	if d.Code != switching.InsufficientSamples {
		s.known, s.expired = t.state.now, false
	} else if s.known == noTime {
		s.known = t.state.now
	}
	p := t.plan(i, d)
	if !d.Changes() {
		w.idle(name, &d)
	}
	if !w.in.Publishes() {
		return nil
	}
	if at := w.in.Operator.Rollback; at != nil {
		if p.table = t.known(i, s.tableAt(at.UnixMicro())); p.table == nil {
			w.reasons.Add(NoEarlierTable, name, nil, "no table is known from before; the one in force stays")
			return nil
		}
		p.code, p.decision = RolledBack, t.towards(i, p.table)
	} else if p.code = w.why(i, p); p.code == "" {
		return nil
	}
	hash := standing.HashOf(p.table)
	if hash == s.served.Refused {
		w.reasons.Add(Refused, name, nil, "this very table was refused; it is not sent again until it changes")
		return nil
	}
	if w.in.Acts() {
		t.note(i, p, hash)
	} else {
		s.advice = []past{newPast(t.state.now, p.table)}
	}
	if d.Changes() || p.code != string(d.Code) { // Else it was said already.
		w.reasons.Add(p.code, name, p.evidence, "%s", texts[p.code])
	}
	return &control.Command{Scope: name, Reason: control.Reason{Code: p.code, Text: texts[p.code], Evidence: p.evidence}, Servers: p.table}
}

// idle says why the rule changes nothing.
func (w *decision) idle(name string, d *switching.Decision) {
	if text, ok := counted[d.Code]; ok {
		w.reasons.Count(string(d.Code), 1, text)
		return
	}
	w.reasons.Add(string(d.Code), name, figures(d), "%s", texts[string(d.Code)])
}

// plan is the table that a site should have by the rule.
func (t *Policy) plan(i int, d switching.Decision) plan {
	s := &t.state.sites[i]
	if d.Code == switching.InsufficientSamples && !s.expired && t.state.now-s.known > t.config.TTL.Microseconds() {
		t.expire(i, &d)
	}
	p := plan{table: &control.ServersTable{On: []string{}, Off: []string{}, ZoneWeights: map[string]float64{}}, decision: d, evidence: figures(&d)}
	for j, name := range t.names[i] {
		if x := &s.servers[j]; x.wanted && x.state == switching.Failed && !d.Changes() {
			// Nothing is in its place: the switch may go on trying.
			d.Wanted[j] = true
		}
		if d.Wanted[j] {
			p.table.On = append(p.table.On, name)
		} else {
			p.table.Off = append(p.table.Off, name)
		}
	}
	for z := range t.config.Sites[i].Zones {
		p.table.ZoneWeights[t.config.Sites[i].Zones[z].Name] = d.Weights[z]
	}
	return p
}

// expire makes a decision of turning on what the configuration has on.
func (t *Policy) expire(i int, d *switching.Decision) {
	n := 0
	for _, z := range t.config.Sites[i].Zones {
		for _, m := range z.Servers {
			if st := t.state.sites[i].servers[n].state; !m.Off && !d.Wanted[n] && (st == switching.Off || st == switching.Draining) {
				d.On, d.Wanted[n], d.Code = append(d.On, n), true, Expired
			}
			n++
		}
	}
}

// why says why a plan's table is to be sent, "" if it is not. What was advised already is
// not advised again before it changes. Of a decision that changes servers its code is told.
func (w *decision) why(i int, p plan) string {
	s := &w.t.state.sites[i]
	now := s.inForce()
	if len(s.advice) > 0 && !w.in.Acts() {
		now = s.advice[0].table
	}
	same := now != nil && slices.Equal(now.On, p.table.On) && slices.Equal(now.Off, p.table.Off)
	switch {
	case p.decision.Changes() && !same:
		return string(p.decision.Code)
	case now == nil:
		return FirstTable
	case !same && p.decision.Code == switching.Panic:
		return string(switching.Panic)
	case !same:
		return ServersChanged
	case shift(now, p.table) > w.t.config.WeightChange:
		return WeightsChanged
	case w.in.Acts() && s.sent != noTime && w.t.state.now-s.sent >= w.t.config.TTL.Microseconds()/2:
		return Renewed
	}
	return ""
}

// shift is the greatest change of a zone's weight, rounded.
func shift(a, b *control.ServersTable) (most float64) {
	for z, v := range b.ZoneWeights {
		most = max(most, rounded(math.Abs(v-a.ZoneWeights[z])))
	}
	for z, v := range a.ZoneWeights {
		if _, ok := b.ZoneWeights[z]; !ok {
			most = max(most, rounded(v))
		}
	}
	return most
}

// tableAt is the table that was in force at a time, nil if none is known.
func (s *site) tableAt(at int64) *control.ServersTable {
	for _, p := range slices.Backward(s.tables) {
		if p.window <= at {
			return p.table
		}
	}
	return nil
}

// known is a table of before with the servers and zones that the configuration has now:
// what it does not name stays off, and without weight. Nil if nothing would be on.
func (t *Policy) known(i int, table *control.ServersTable) *control.ServersTable {
	if table == nil {
		return nil
	}
	out := &control.ServersTable{On: []string{}, Off: []string{}, ZoneWeights: map[string]float64{}}
	for _, name := range t.names[i] {
		if slices.Contains(table.On, name) {
			out.On = append(out.On, name)
		} else {
			out.Off = append(out.Off, name)
		}
	}
	sum := 0.0
	for _, z := range t.config.Sites[i].Zones {
		out.ZoneWeights[z.Name] = table.ZoneWeights[z.Name]
		sum += table.ZoneWeights[z.Name]
	}
	if len(out.On) == 0 || !(sum >= control.ZoneWeightUnit) {
		return nil
	}
	return out
}

// towards is a decision that leads to a table.
func (t *Policy) towards(i int, table *control.ServersTable) switching.Decision {
	d := switching.Decision{Code: RolledBack, Wanted: make([]bool, len(t.names[i]))}
	for j, name := range t.names[i] {
		d.Wanted[j] = slices.Contains(table.On, name)
		switch was := t.state.sites[i].servers[j].wanted; {
		case d.Wanted[j] && !was:
			d.On = append(d.On, j)
		case was && !d.Wanted[j]:
			d.Off = append(d.Off, j)
		}
	}
	return d
}

// note takes a command that will be applied as applied.
func (t *Policy) note(i int, p plan, hash string) {
	s, now := &t.state.sites[i], t.state.now
	s.served.Epoch = max(s.served.Epoch, s.switched.Epoch) + 1
	s.switched.Epoch = s.served.Epoch
	s.sent, s.last, s.advice = now, hash, nil
	t.rules[i].Applied(p.decision)
	if p.decision.Code == Expired {
		s.expired = true
	}
	for j := range s.servers {
		x := &s.servers[j]
		x.wanted = p.decision.Wanted[j]
		switch {
		case x.wanted && x.state != switching.On && x.state != switching.Starting:
			if x.state != switching.Failed || slices.Contains(p.decision.On, j) {
				x.become(switching.Starting, now)
			}
		case !x.wanted && (x.state == switching.On || x.state == switching.Starting):
			x.become(switching.Draining, now)
		}
	}
	if p.code == Renewed {
		return
	}
	s.tables = append(s.tables, newPast(now, p.table))
	if n := len(s.tables); n > maxTables {
		s.tables = slices.Clone(s.tables[n-maxTables:])
	}
}

// figures is what a decision went by.
func figures(d *switching.Decision) map[string]any {
	f := &d.Figures
	e := map[string]any{
		"penalty_per_s": rounded(f.Penalty), "potential": rounded(f.Potential), "load": rounded(f.Offered), "places": f.Capacity,
		"ceiling": rounded(f.Ceiling), "on": f.On, "starting": f.Starting, "failed": f.Failed,
	}
	if f.Forecasts {
		e["expected_load"], e["forecast_error"] = rounded(f.Expected), rounded(f.Error)
	}
	return e
}

// broken says that executors have refused or failed several tables of a site running.
func (w *decision) broken() *control.Reason {
	if !w.in.Acts() {
		return nil
	}
	var first *control.Reason
	for i := range w.t.state.sites {
		s, name := &w.t.state.sites[i], w.t.config.Sites[i].Name
		first = cmp.Or(first, s.served.Broken(name), s.switched.Broken(name))
	}
	return first
}
