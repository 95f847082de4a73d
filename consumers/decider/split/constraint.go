package split

import "slices"

// matches reports whether a pattern of * and ? matches a name.
func matches(pattern, name string) bool {
	star, mark := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// resides returns the sites that residency allows a component, nil: all.
func (c *Config) resides(component string) []string {
	for _, r := range c.Residency {
		if matches(r.Match, component) {
			return r.Sites
		}
	}
	return nil
}

// allowedByConfig returns the sites at which a component that the configuration
// names may be called, as far as the configuration says.
func (c *Config) allowedByConfig(k *Component) []string {
	resides := c.resides(k.Name)
	var out []string
	for _, s := range c.Sites {
		if (len(k.Sites) == 0 || slices.Contains(k.Sites, s.Name)) && (len(k.Pin) == 0 || slices.Contains(k.Pin, s.Name)) &&
			(resides == nil || slices.Contains(resides, s.Name)) {
			out = append(out, s.Name)
		}
	}
	return out
}

// allowed says, by site, whether component j may be called there: it runs there,
// as configured or seen, and pin and residency allow it. Evacuated sites are left
// out unless nothing else is left: a row never has no site (P31).
func (t *Policy) allowed(j int) []bool {
	s := t.state
	k := &s.components[j]
	out := make([]bool, 0, len(t.config.Sites))
	some := false
	for n := range t.config.Sites {
		ok := t.permits(j, n) && (k.given != nil && k.given[n] || k.given == nil && s.replicas[j][n].present)
		out = append(out, ok)
		some = some || ok && !t.evacuated[n]
	}
	for n := range out {
		out[n] = out[n] && (!some || !t.evacuated[n])
	}
	return out
}

// permits reports whether pin and residency let component j be called at site n.
func (t *Policy) permits(j, n int) bool {
	k := &t.state.components[j]
	return k.bound == nil || k.bound[n]
}

// bind fills what the configuration says of a new component.
func (t *Policy) bind(k *component) {
	c := &t.config
	set := func(names []string) []bool {
		if len(names) == 0 {
			return nil
		}
		out := make([]bool, len(c.Sites))
		for n, s := range c.Sites {
			out[n] = slices.Contains(names, s.Name)
		}
		return out
	}
	k.bound = set(c.resides(k.name))
	k.group = -1
	for i, g := range c.Colocate {
		if slices.Contains(g, k.name) {
			k.group = i
			break
		}
	}
	for i := range c.Components {
		if d := &c.Components[i]; d.Name == k.name {
			k.told = d
			k.given = set(d.Sites)
			if pin := set(d.Pin); pin != nil {
				for n := range pin {
					pin[n] = pin[n] && (k.bound == nil || k.bound[n])
				}
				k.bound = pin
			}
		}
	}
}
