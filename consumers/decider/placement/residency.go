package placement

// Residency answers which sites may hold an owner's data. It binds new owners
// too: whoever serves an owner for the first time asks it.
type Residency struct {
	rules []Rule
	// allowed holds a flag a site, by rule + 1; allowed[0] allows all.
	allowed [][]bool
}

// NewResidency reads the rules of a validated configuration.
func NewResidency(sites []Site, rules []Rule) *Residency {
	r := &Residency{rules: rules, allowed: make([][]bool, len(rules)+1)}
	for i := range r.allowed {
		r.allowed[i] = make([]bool, len(sites))
		for j, s := range sites {
			r.allowed[i][j] = i == 0 || contains(rules[i-1].Sites, s.Name)
		}
	}
	return r
}

// Allowed returns a flag for each site in config order. It must not be changed.
func (r *Residency) Allowed(owner string) []bool { return r.allowed[r.rule(owner)] }

// rule returns 1 + the index of the first rule that matches, 0 if none does.
func (r *Residency) rule(owner string) uint16 {
	for i := range r.rules {
		if matches(r.rules[i].Match, owner) {
			return uint16(i + 1)
		}
	}
	return 0
}

// matches reports whether a pattern of *, ? and bytes matches the whole of s.
// It is linear but for the last star, to which it comes back.
func matches(pattern, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p, i = p+1, i+1
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
