package coding

import (
	"cmp"
	"slices"

	"penstock/consumers/decider/standing"
	"penstock/schemas/control"
)

// maxTables is how many tables a coder remembers for a rollback.
const maxTables = 64

var texts = map[string]string{
	FirstTable: "the coder has no table yet", PolicyChanged: "another policy or cap", ModelChanged: "its delays or sizes are others",
	Renewed: "the table in force, before its time is over", RolledBack: "by the operator's word",
}

// coder makes the command of a coder and, in mode act, notes it as in force; nil if
// there is nothing to say, or if it may not be said.
func (w *decision) coder(i int) *control.Command {
	t := w.t
	s, name := &t.state.coders[i], t.config.Coders[i].Name
	table, priced := t.plan(i)
	if priced {
		w.reasons.Add(PriceCapped, name, map[string]any{"max_read_price": t.config.MaxReadPrice}, "the price allows at most %d requests a read", len(table.Read.N)+1)
	}
	if !w.in.Publishes() {
		return nil
	}
	var code string
	var share float64
	if w.in.Operator.Rollback != nil {
		if table = s.tableAt(w.in.Operator.Rollback.UnixMicro()); table == nil {
			w.reasons.Add(NoEarlierTable, name, nil, "no table is known from before; the one in force stays")
			return nil
		}
		code = RolledBack
	} else if table, code, share = w.change(i, table); code == Held {
		w.reasons.Add(Held, name, map[string]any{"change": rounded(share), "windows": t.hold(i)}, "the last table is too young for another one")
		return nil
	} else if code == "" {
		w.reasons.Count(NoChange, 1, "coders of which no threshold has changed enough for another table")
		return nil
	}
	hash := standing.HashOf(table)
	if hash == s.standing.Refused {
		w.reasons.Add(Refused, name, nil, "this very table was refused; it is not sent again until it changes")
		return nil
	}
	if code != Renewed && code != RolledBack {
		s.step(&t.config, t.state.now)
	}
	if w.in.Acts() {
		s.note(t.state.now, code, table, hash)
	} else {
		s.advice = []past{{window: t.state.now, table: table}}
	}
	evidence := t.evidence(i, table, share)
	w.reasons.Add(code, name, evidence, "%s", texts[code])
	return &control.Command{Scope: name, Reason: control.Reason{Code: code, Text: texts[code], Evidence: evidence}, Coding: table}
}

// change returns the table to send and why; without a reason there is none to send.
// What was advised already is not advised again before it changes.
func (w *decision) change(i int, table *control.CodingTable) (send *control.CodingTable, code string, share float64) {
	s := &w.t.state.coders[i]
	now := s.inForce()
	if len(s.advice) > 0 && !w.in.Acts() {
		now = s.advice[0].table
	}
	switch {
	case now != nil:
	case w.t.untold(i):
		return w.t.believed(i), FirstTable, 0 // what one window leaves open may be far off
	default:
		return table, FirstTable, 0
	}
	share, shape := apart(now, table)
	switch {
	case shape:
		return table, PolicyChanged, share
	case share > w.t.config.Change && !w.t.held(i):
		return table, ModelChanged, share
	case w.in.Acts() && s.sent != noTime && w.t.state.now-s.sent >= w.t.config.TTL.Microseconds()/2:
		return now, Renewed, 0
	}
	if share > w.t.config.Change {
		return nil, Held, share
	}
	return nil, "", share
}

// tableAt is the table that was in force at a time, nil if none is known.
func (s *coder) tableAt(at int64) *control.CodingTable {
	for _, p := range slices.Backward(s.tables) {
		if p.window <= at {
			return p.table
		}
	}
	return nil
}

// note takes a command that will be applied as applied.
func (s *coder) note(now int64, code string, table *control.CodingTable, hash string) {
	s.standing.Epoch++
	s.sent, s.last, s.advice = now, hash, nil
	if code == Renewed {
		return
	}
	s.tables = append(s.tables, past{window: now, table: table})
	if n := len(s.tables); n > maxTables {
		s.tables = slices.Clone(s.tables[n-maxTables:])
	}
}

// evidence is what a command rests on, and what it may cost.
func (t *Policy) evidence(i int, table *control.CodingTable, share float64) map[string]any {
	s := &t.state.coders[i]
	n := most(&table.Read)
	return map[string]any{
		"change": rounded(share), "read_size_mb": s.sizes[read], "write_size_mb": s.sizes[write], "read_samples": s.samples(read), "write_samples": s.samples(write),
		"most_requests_per_read": n, "most_usd_per_million_reads": rounded(float64(n) * max(0, t.config.Price.Read)),
		"most_usd_per_million_writes": rounded(float64(most(&table.Write)) * max(0, t.config.Price.Write)),
	}
}

// broken says that executors have refused or failed several tables of a coder running.
func (w *decision) broken() *control.Reason {
	if !w.in.Acts() {
		return nil
	}
	var first *control.Reason
	for i := range w.t.state.coders {
		first = cmp.Or(first, w.t.state.coders[i].standing.Broken(w.t.config.Coders[i].Name))
	}
	return first
}

// Apply takes an outcome in. Each executor answers for itself: a table is in force if
// one of them has it. Which is known at the next window.
func (t *Policy) Apply(o *control.Outcome) {
	if i, ok := t.index[o.Scope]; ok && o.Kind == control.Coding {
		t.state.coders[i].standing.Take(o)
	}
}

// judge looks at the outcomes since the last window. A table that every executor that
// answered refused or could not apply is not in force: the one before it is.
func (t *Policy) judge() {
	for i := range t.state.coders {
		s := &t.state.coders[i]
		if n := len(s.tables); s.standing.Judge(s.last) && n > 0 && s.tables[n-1].window == s.sent {
			s.tables = s.tables[:n-1]
		}
	}
}
