package coding

// A fit moves with chance, most of all while samples leave some of it open and what is
// believed decides. So that a table doesn't follow every move, one that differs from the one
// before waits, and the longer the more of them have followed each other: 1, 2, 4, 8, …
// windows while all is told, or nothing can tell without another code, three times that
// until all is told once, at most History. After
// History windows without another one it begins anew. A store that has become another one
// (shifted) waits for nothing: neither does the first table, nor the operator.

// mostSteps is where the count of tables that follow each other ends.
const mostSteps = 16

// untoldFactor is how many times as long a table waits until samples have told all.
const untoldFactor = 3

// hold is for how many windows the last table stays.
func (t *Policy) hold(i int) int64 {
	s := &t.state.coders[i]
	if s.steps == 0 {
		return 0
	}
	windows := int64(1) << (s.steps - 1)
	if t.untold(i) {
		windows *= untoldFactor
	}
	return min(windows, int64(t.config.History))
}

// untold says whether the fit of some store was never free of what is only believed, but
// for one in doubt: there another code must be tried, or nothing will ever tell.
func (t *Policy) untold(i int) bool {
	s := &t.state.coders[i]
	for j := range s.members {
		for op := range ops {
			o := &s.members[j].ops[op]
			if o.fitted && !o.told && !t.doubts(&t.config.Coders[i], o, o.last(), s.sizes[op]) {
				return true
			}
		}
	}
	return false
}

// last are the cells of the newest window with tasks.
func (o *operation) last() []cell {
	if n := len(o.history); n > 0 {
		return o.history[n-1].cells
	}
	return nil
}

// held says whether the last table is too young for another one.
func (t *Policy) held(i int) bool {
	s := &t.state.coders[i]
	return s.changed != noTime && !s.shifted && t.state.now-s.changed < t.hold(i)*t.config.Window.Microseconds()
}

// step notes that another table, or advice, goes out.
func (s *coder) step(c *Config, now int64) {
	if s.changed != noTime && now-s.changed >= int64(c.History)*c.Window.Microseconds() {
		s.steps = 0
	}
	s.steps, s.changed, s.shifted = min(s.steps+1, mostSteps), now, false
}
