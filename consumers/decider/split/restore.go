package split

import (
	"io"
	"slices"

	"penstock/consumers/decider/statecode"
)

// Restore replaces the state by one that was written, of this configuration or of
// an earlier one: sites are found by name, those that are gone are left out, and
// after a change of the window's width or of the resolution histories or tables
// begin anew. The error wraps ErrSnapshot.
func (t *Policy) Restore(r io.Reader) error {
	c, err := format.Read(r)
	if err != nil {
		return err
	}
	var width, resolution int64
	var sites []string
	c.Int(&width)
	c.Int(&resolution)
	statecode.List(c, &sites, c.Text)
	s := newState()
	codeState(c, s)
	if c.Err() == nil && c.Left() > 0 {
		c.Fail("bytes are left")
	}
	if c.Err() == nil {
		s.check(c, len(sites))
	}
	if c.Err() != nil {
		return c.Err()
	}
	t.adopt(s, sites, width == t.config.Window.Microseconds(), resolution == int64(t.config.Resolution))
	return nil
}

// check refuses a state whose parts do not fit each other.
func (s *state) check(c *statecode.Coder, sites int) {
	k := len(s.components)
	if k == 0 || s.components[0].name != "" || len(s.replicas) != k || len(s.scopes) != k {
		c.Fail("components do not fit")
		return
	}
	for _, r := range s.replicas {
		if len(r) != sites {
			c.Fail("replicas do not fit")
		}
	}
	for i := range s.edges {
		e := &s.edges[i]
		if e.from < 0 || e.from >= k || e.to <= 0 || e.to >= k || len(e.links) != sites || len(e.rows) != sites {
			c.Fail("an edge does not fit")
			return
		}
		for a := range e.links {
			r := &e.rows[a]
			if len(e.links[a]) != sites || r.parts != nil && (len(r.parts) != sites || len(r.target) != sites || len(r.up) != sites || len(r.down) != sites) ||
				r.probes != nil && len(r.probes) != sites || r.cost != nil && (len(r.cost) != sites || len(r.last) != sites) {
				c.Fail("a row does not fit")
			}
		}
	}
	for i := range s.scopes {
		for _, x := range s.scopes[i].changes {
			for _, r := range x.rows {
				if r.edge < 0 || r.edge >= len(s.edges) || r.site < 0 || r.site >= sites || len(r.parts) != sites {
					c.Fail("a change does not fit")
				}
			}
		}
	}
}

// adopt takes over a state, made to fit this configuration.
func (t *Policy) adopt(s *state, sites []string, sameWidth, sameResolution bool) {
	var names []string
	for _, x := range t.config.Sites {
		names = append(names, x.Name)
	}
	if !slices.Equal(names, sites) {
		s.move(sites, t.siteIndex, len(names))
	}
	for j := range s.components {
		s.index[s.components[j].name] = j
		t.bind(&s.components[j])
		for n := range s.replicas[j] {
			r := &s.replicas[j][n]
			if g := s.components[j].given; g != nil {
				r.present = r.present || g[n]
			}
			if !sameWidth {
				r.history, r.capacity = nil, newCapacity()
			}
		}
	}
	for i := range s.edges {
		e := &s.edges[i]
		s.edgeIndex[[2]int{e.from, e.to}] = i
		for a := range e.rows {
			if !sameResolution {
				e.rows[a].parts, e.rows[a].target, e.rows[a].probes = nil, nil, nil
			}
			if !sameWidth {
				for b := range e.links[a] {
					e.links[a][b] = nil
				}
			}
		}
	}
	if !sameWidth {
		s.windows = nil
	}
	if !sameResolution {
		for i := range s.scopes {
			s.scopes[i].changes = nil
		}
	}
	t.state = s
	for _, k := range t.config.Components {
		t.component(k.Name)
	}
}

// move brings a state of other sites to these. A row with a share at a site that
// is gone begins anew, and so do plans and histories of tables.
func (s *state) move(old []string, index map[string]int, sites int) {
	to := make([]int, len(old))
	for n, name := range old {
		to[n] = -1
		if k, ok := index[name]; ok {
			to[n] = k
		}
	}
	for j := range s.replicas {
		reps := make([]replica, sites)
		for n := range reps {
			reps[n].lastAt, reps[n].capacity = noTime, newCapacity()
		}
		for n, r := range s.replicas[j] {
			if to[n] >= 0 {
				reps[to[n]] = r
			}
		}
		s.replicas[j] = reps
	}
	for i := range s.edges {
		e := &s.edges[i]
		links, rows := make([][]series, sites), make([]row, sites)
		for a := range links {
			links[a] = make([]series, sites)
		}
		for a := range e.links {
			if to[a] < 0 {
				continue
			}
			for b := range e.links[a] {
				if to[b] >= 0 {
					links[to[a]][to[b]] = e.links[a][b]
				}
			}
			rows[to[a]] = e.rows[a].moved(to, sites)
		}
		e.links, e.rows = links, rows
	}
	for i := range s.scopes {
		s.scopes[i].changes = nil
	}
	s.planned = signature{}
}

func (r row) moved(to []int, sites int) row {
	old := r
	r.cost, r.last, r.probes = nil, nil, nil
	if old.parts == nil {
		r.up, r.down, r.target = nil, nil, nil
		return r
	}
	r.parts, r.target = make([]int, sites), nil
	r.up, r.down = make([]int64, sites), make([]int64, sites)
	for n := range sites {
		r.up[n], r.down[n] = noTime, noTime
	}
	for n, k := range to {
		switch {
		case k >= 0:
			r.parts[k], r.up[k], r.down[k] = old.parts[n], old.up[n], old.down[n]
		case old.parts[n] > 0:
			r.parts, r.up, r.down = nil, nil, nil
			return r
		}
	}
	r.target = slices.Clone(r.parts)
	return r
}
