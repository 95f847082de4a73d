package split

import (
	"cmp"
	"slices"

	"penstock/consumers/decider/standing"
	"penstock/schemas/control"
)

// maxChanges is how many tables a scope remembers for a rollback.
const maxChanges = 64

// probesAfter is how many windows after a table other probes alone are worth
// another one.
const probesAfter = 3

// commands makes the commands of the window and, in mode act, notes them as in
// force.
func (w *decision) commands() []control.Command {
	if !w.in.Publishes() {
		return nil
	}
	var out []control.Command
	for i := range w.t.state.scopes {
		if c := w.command(i); c != nil {
			out = append(out, *c)
		}
	}
	slices.SortStableFunc(out, func(a, b control.Command) int { return cmp.Compare(a.Scope, b.Scope) })
	return out
}

// command makes the command of a calling component, nil if there is nothing to
// say.
func (w *decision) command(i int) *control.Command {
	t := w.t
	sc := &t.state.scopes[i]
	var mine []changedRow
	for _, c := range w.next {
		if t.state.edges[c.edge].from == i {
			mine = append(mine, c)
		}
	}
	table, alive := w.table(i, mine)
	if len(table.Table) == 0 {
		return nil
	}
	probesChanged := w.probes(i, table) && t.state.now-sc.sent >= probesAfter*t.config.Window.Microseconds()
	due := sc.sent != noTime && alive && t.state.now-sc.sent >= t.config.TTL.Microseconds()/2
	reason, ok := w.reason(i, mine, probesChanged, due)
	if !ok {
		return nil
	}
	hash := standing.HashOf(table)
	if hash == sc.standing.Refused {
		w.reasons.Add(Refused, t.scopeName(i), nil, "this very table was refused; it is not sent again until it changes")
		return nil
	}
	if !w.in.Acts() {
		if hash == sc.advised {
			return nil
		}
		sc.advised = hash
	}
	w.note(i, mine, table, hash)
	for _, c := range mine {
		w.reasons.Add(c.code, t.scopeName(i), c.evidence, "from %s to %s: %s", t.config.Sites[c.site].Name, t.scopeName(t.state.edges[c.edge].to), texts[c.code])
	}
	return &control.Command{Scope: t.scopeName(i), Reason: reason, Split: table}
}

var texts = map[string]string{
	LowerDelay: "another share is faster", Overloaded: "a replica gets more than it takes", HigherErrors: "a replica fails more often",
	Nearest: "the nearest site with room that does not fail", Failing: "a replica fails too often", Constrained: "calls went where they may not", Evacuated: "a site is being emptied",
	Expired: "too few samples for too long; back to the default", RolledBack: "by the operator's word",
	Renewed: "the table in force, before its time is over", ProbesChanged: "other probes",
}

// reason is that of a command: of the change that moves most.
func (w *decision) reason(i int, mine []changedRow, probes, due bool) (control.Reason, bool) {
	t := w.t
	if len(mine) == 0 {
		var code string
		switch {
		case probes:
			code = ProbesChanged
		case due:
			code = Renewed
		default:
			return control.Reason{}, false
		}
		w.reasons.Add(code, t.scopeName(i), nil, "%s", texts[code])
		return control.Reason{Code: code, Text: texts[code]}, true
	}
	best := mine[0]
	moved := func(c changedRow) int { return distance(t.state.edges[c.edge].rows[c.site].parts, c.parts) }
	for _, c := range mine[1:] {
		if moved(c) > moved(best) {
			best = c
		}
	}
	return control.Reason{Code: best.code, Count: int64(len(mine)), Text: texts[best.code], Evidence: best.evidence}, true
}

// table is the whole table of a component, with the rows that change; alive is
// whether any of its rows rests on samples.
func (w *decision) table(i int, mine []changedRow) (table *control.SplitTable, alive bool) {
	t := w.t
	table = &control.SplitTable{Table: []control.SplitRow{}}
	for a, site := range t.config.Sites {
		var rows []control.SplitRow
		for e := range t.state.edges {
			x := &t.state.edges[e]
			if x.from != i || x.rows[a].parts == nil {
				continue
			}
			alive = alive || !x.rows[a].expired
			parts := x.rows[a].parts
			for _, c := range mine {
				if c.edge == e && c.site == a {
					parts = c.parts
				}
			}
			rows = append(rows, t.row(site.Name, x.to, parts))
		}
		slices.SortFunc(rows, func(a, b control.SplitRow) int { return cmp.Compare(a.To, b.To) })
		table.Table = append(table.Table, rows...)
	}
	if len(table.Table) > control.MaxSplitRows {
		w.reasons.Add(TooManyRows, t.scopeName(i), nil, "%d rows, a table holds %d", len(table.Table), control.MaxSplitRows)
		table.Table = table.Table[:control.MaxSplitRows]
	}
	return table, alive
}

// row is a row of a table: the sites at which the callee may be called, with their
// shares.
func (t *Policy) row(from string, to int, parts []int) control.SplitRow {
	out := control.SplitRow{FromSite: from, To: t.state.components[to].name}
	ok := t.allowed(to)
	for n, x := range parts {
		if ok[n] || x > 0 {
			out.Ratios = append(out.Ratios, control.SplitRatio{Site: t.config.Sites[n].Name, Share: float64(x) / float64(t.config.Resolution)})
		}
	}
	if told := t.state.components[to].told; told != nil {
		out.WritesAt = told.WritesAt
	}
	return out
}

// note takes a command that will be applied as applied: rows, cooldowns, history.
// A table that is only sent again starts no cooldown (P35).
func (w *decision) note(i int, mine []changedRow, table *control.SplitTable, hash string) {
	s := w.t.state
	sc := &s.scopes[i]
	sc.standing.Epoch++
	if !w.in.Acts() {
		return
	}
	sc.sent, sc.table, sc.advised = s.now, hash, ""
	w.noteProbes(i, table)
	if len(mine) == 0 {
		return
	}
	old := change{window: s.now}
	for _, c := range mine {
		row := &s.edges[c.edge].rows[c.site]
		old.rows = append(old.rows, oldRow{edge: c.edge, site: c.site, parts: row.parts})
		for n := range c.parts {
			switch {
			case c.parts[n] > row.parts[n]:
				row.up[n] = s.now
			case c.parts[n] < row.parts[n]:
				row.down[n] = s.now
			}
		}
		row.parts = slices.Clone(c.parts)
		row.cost = slices.Clone(row.last)
	}
	sc.changes = append(sc.changes, old)
	if n := len(sc.changes); n > maxChanges {
		sc.changes = slices.Clone(sc.changes[n-maxChanges:])
	}
}
