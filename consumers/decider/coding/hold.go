package coding

// A fit moves with chance, most of all while samples leave some of it open and what is
// believed decides. So that a table doesn't follow every move, one that differs from the one
// before waits, and the longer the more of them have followed each other: 1, 2, 4, 8, …
// windows while all is told, three times that until it first is, at most History. After
// History windows without another one it begins anew. A store that has become another one
// (shifted) waits for nothing: neither does the first table, nor the operator.

// mostSteps is where the count of tables that follow each other ends.
const mostSteps = 16

// untoldFactor is how many times as long a table waits until samples have told all.
const untoldFactor = 3

// hold is for how many windows the last table stays.
func (s *coder) hold(c *Config) int64 {
	if s.steps == 0 {
		return 0
	}
	windows := int64(1) << (s.steps - 1)
	if s.untold() {
		windows *= untoldFactor
	}
	return min(windows, int64(c.History))
}

// untold says whether the fit of some store was never free of what is only believed.
func (s *coder) untold() bool {
	for j := range s.members {
		for op := range ops {
			if o := &s.members[j].ops[op]; o.fitted && !o.told {
				return true
			}
		}
	}
	return false
}

// held says whether the last table is too young for another one.
func (s *coder) held(c *Config, now int64) bool {
	return s.changed != noTime && !s.shifted && now-s.changed < s.hold(c)*c.Window.Microseconds()
}

// step notes that another table, or advice, goes out.
func (s *coder) step(c *Config, now int64) {
	if s.changed != noTime && now-s.changed >= int64(c.History)*c.Window.Microseconds() {
		s.steps = 0
	}
	s.steps, s.changed, s.shifted = min(s.steps+1, mostSteps), now, false
}
