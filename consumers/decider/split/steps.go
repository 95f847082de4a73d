package split

import (
	"cmp"
	"slices"

	"penstock/schemas/control"
)

// steps moves rows towards their targets, within the guardrails.
func (w *decision) steps() {
	t, s := w.t, w.t.state
	d := &damping{
		whole: t.config.Resolution, share: t.config.Damping, now: s.now, cooldown: max(0, t.config.Cooldown.Microseconds()),
		up: parts(t.config.MaxStep.Up, t.config.Resolution), down: parts(t.config.MaxStep.Down, t.config.Resolution),
		band: int(max(0, t.config.DeadBand) * float64(t.config.Resolution)),
	}
	if t.config.Policy == Closest || t.config.Policy == LocalityFailover {
		// They know no delays that could be unsure: what they want, they want whole.
		d.share, d.up, d.down = 1, t.config.Resolution, t.config.Resolution
	}
	w.room = t.rooms(w.estimates)
	for i := range s.edges {
		ok := t.allowed(s.edges[i].to)
		for a := range s.edges[i].rows {
			if s.edges[i].rows[a].parts != nil {
				w.step(d, i, a, ok)
			}
		}
	}
}

func parts(share float64, whole int) int { return max(1, int(share*float64(whole))) }

// step moves one row.
func (w *decision) step(d *damping, edge, a int, ok []bool) {
	t := w.t
	row := &t.state.edges[edge].rows[a]
	home := t.home(a, ok)
	if home < 0 {
		return
	}
	if legal := lawful(row, ok, home); legal != nil {
		code := Constrained
		for n := range ok {
			if row.parts[n] > 0 && t.evacuated[n] {
				code = Evacuated
			}
		}
		w.change(edge, a, legal, code)
		return
	}
	if w.thin[[2]int{edge, a}] {
		old := t.state.now-row.enough >= t.config.TTL.Microseconds()
		if !old || row.expired {
			return
		}
		if w.in.Acts() {
			row.expired = true
			row.target = only(home, len(ok), t.config.Resolution)
		}
		if row.parts[home] < t.config.Resolution {
			w.change(edge, a, only(home, len(ok), t.config.Resolution), Expired)
		}
		return
	}
	if !row.settled && t.unsettledFor(row) < maxUnsettled {
		w.reasons.Count(UnderWay, 1, "rows whose last table does not show in the traffic yet")
		return
	}
	if distance(row.parts, row.target) > d.band {
		if d = w.within(d, edge, a); d == nil {
			w.reasons.Count(MaxStep, 1, "rows of which the rest of the way is for the next windows")
			return
		}
	}
	next, why := d.step(row.parts, row.target, row.up, row.down, row.fast)
	w.take(edge, a, next)
	switch why {
	case atTarget:
		w.reasons.Count(NoImprovement, 1, "rows that are as the plan wants them")
		return
	case inBand:
		w.reasons.Count(WithinDeadBand, 1, "rows whose change is not worth a command")
		return
	case cooling:
		w.reasons.Count(Cooldown, 1, "rows with shares that moved the other way not long ago")
	case limited:
		w.reasons.Count(MaxStep, 1, "rows of which the rest of the way is for the next windows")
	}
	if !slices.Equal(next, row.parts) {
		w.change(edge, a, next, w.why(edge, a, next))
	}
}

// maxUnsettled is for how many windows a table that does not show holds its row:
// sticky sessions may keep it from ever showing.
const maxUnsettled = 6

// unsettledFor is how many windows ago the row last changed.
func (t *Policy) unsettledFor(r *row) int64 {
	last := noTime
	for n := range r.up {
		last = max(last, r.up[n], r.down[n])
	}
	return (t.state.now - last) / t.config.Window.Microseconds()
}

// lawful returns the row without shares at sites that are not allowed, nil if it
// has none: they go where the target, or else the nearest site, wants them.
func lawful(row *row, ok []bool, home int) []int {
	out := slices.Clone(row.parts)
	off := 0
	for n, x := range out {
		if x > 0 && !ok[n] {
			off += x
			out[n] = 0
		}
	}
	if off == 0 {
		return nil
	}
	wanted := make([]float64, len(out))
	some := false
	for n, x := range row.target {
		if ok[n] && x > 0 {
			wanted[n], some = float64(x), true
		}
	}
	if !some {
		wanted[home] = 1
	}
	for n, x := range apportion(wanted, off) {
		out[n] += x
	}
	return out
}

// change notes that a row gets another table.
func (w *decision) change(edge, a int, next []int, code string) {
	t, m := w.t, len(w.t.config.Sites)
	e := &t.state.edges[edge]
	row := &e.rows[a]
	from, to := mostMoved(row.parts, next)
	evidence := map[string]any{"from_site": t.config.Sites[a].Name, "to": t.scopeName(e.to)}
	if from >= 0 && to >= 0 {
		whole := float64(t.config.Resolution)
		r, q := e.to*m+from, e.to*m+to
		evidence["from"], evidence["from_share"] = t.config.Sites[from].Name, []float64{float64(row.parts[from]) / whole, float64(next[from]) / whole}
		evidence["into"], evidence["into_share"] = t.config.Sites[to].Name, []float64{float64(row.parts[to]) / whole, float64(next[to]) / whole}
		evidence["from_us"], evidence["into_us"] = int64(t.network(w.estimates, edge, a, from)+w.estimates.service[r]), int64(t.network(w.estimates, edge, a, to)+w.estimates.service[q])
		if row.last != nil {
			// With the calls further on.
			evidence["from_path_us"], evidence["into_path_us"] = int64(row.last[from]), int64(row.last[to])
		}
		evidence["from_samples"], evidence["into_samples"] = w.estimates.samples[r], w.estimates.samples[q]
	}
	w.next = append(w.next, changedRow{edge: edge, site: a, parts: next, code: code, from: from, to: to, evidence: evidence})
}

// why names what the move is for, by the replica that loses most.
func (w *decision) why(edge, a int, next []int) string {
	t, m := w.t, len(w.t.config.Sites)
	e := &t.state.edges[edge]
	from, to := mostMoved(e.rows[a].parts, next)
	if from < 0 || to < 0 {
		return LowerDelay
	}
	r, q := e.to*m+from, e.to*m+to
	est := w.estimates
	failed := est.service[r] - est.plain[r]
	byPlace := t.config.Policy == Closest || t.config.Policy == LocalityFailover
	switch {
	case byPlace && est.errors[r] >= t.config.Failing:
		return Failing
	case est.errors[r] > est.errors[q] && failed > est.plain[r]-est.plain[q]:
		return HigherErrors
	case est.load[r] > est.limit[r] && t.network(est, edge, a, from)+est.service[r] <= t.network(est, edge, a, to)+est.service[q]:
		return Overloaded
	case byPlace:
		return Nearest
	}
	return LowerDelay
}

// rollback puts back what was in force at a time, by the operator's word.
func (w *decision) rollback(to int64) {
	t, s := w.t, w.t.state
	for i := range s.scopes {
		old := map[[2]int][]int{}
		for k := len(s.scopes[i].changes) - 1; k >= 0 && s.scopes[i].changes[k].window > to; k-- {
			for _, r := range s.scopes[i].changes[k].rows {
				old[[2]int{r.edge, r.site}] = r.parts
			}
		}
		for e := range s.edges {
			for a := range s.edges[e].rows {
				row := &s.edges[e].rows[a]
				if p := old[[2]int{e, a}]; p != nil && row.parts != nil && !slices.Equal(p, row.parts) && s.edges[e].from == i {
					w.change(e, a, p, RolledBack)
					if w.in.Acts() {
						row.target = slices.Clone(p)
						t.state.planned = signature{}
					}
				}
			}
		}
	}
}

// broken says that executors do not apply what is decided.
func (w *decision) broken() *control.Reason {
	if !w.in.Acts() {
		return nil
	}
	var first *control.Reason
	for i := range w.t.state.scopes {
		first = cmp.Or(first, w.t.state.scopes[i].standing.Broken(w.t.scopeName(i)))
	}
	return first
}

// Apply takes an outcome in. Each executor answers for itself: a table is in force if
// one of them has it. Which is known at the next window.
func (t *Policy) Apply(o *control.Outcome) {
	s := t.state
	i := entryComponent
	if o.Scope != t.config.EntryScope {
		var ok bool
		if i, ok = s.index[o.Scope]; !ok || i == entryComponent {
			return
		}
	}
	if o.Kind == control.Split {
		s.scopes[i].standing.Take(o)
	}
}

// judge looks at the outcomes since the last window. A table that every executor that
// answered refused or could not apply is not in force: the one before it is. The
// same table is not sent again (P37).
func (t *Policy) judge() {
	for i := range t.state.scopes {
		if sc := &t.state.scopes[i]; sc.standing.Judge(sc.table) {
			t.takeBack(sc)
		}
	}
}

// takeBack restores the rows of before a scope's last table, if it changed any.
func (t *Policy) takeBack(sc *scope) {
	k := len(sc.changes) - 1
	if k < 0 || sc.changes[k].window != sc.sent {
		return
	}
	for _, r := range sc.changes[k].rows {
		if row := &t.state.edges[r.edge].rows[r.site]; row.parts != nil {
			row.parts = slices.Clone(r.parts)
		}
	}
	sc.changes = sc.changes[:k]
}
