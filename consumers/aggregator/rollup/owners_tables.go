package rollup

import "penstock/schemas/window"

func (s *owners) Tables() []*window.Table {
	s.people.rank()
	s.sites.rank()
	all := s.frames.sorted()
	var out []*window.Table
	for _, t := range []*window.Table{
		s.sums(window.Traffic, all, func(w *ownersWindow) []sum { return w.traffic.rows }),
		s.interactions(all),
		s.places(all),
		s.sums(window.Late, all, func(w *ownersWindow) []sum { return w.late.rows }),
	} {
		if t.Len() > 0 {
			out = append(out, t)
		}
	}
	s.frames.reset((*ownersWindow).reset)
	s.people.reset()
	s.sites.reset()
	s.size = 0
	return out
}

// sort sorts what is in s.order by key.
func (s *owners) sort(greatest uint64) []slot {
	s.order, s.spare = sortSlots(s.order, s.spare, greatest)
	return s.order
}

func (s *owners) sums(r *window.Rollup, all []frame[ownersWindow], rows func(*ownersWindow) []sum) *window.Table {
	n := 0
	for _, f := range all {
		n += len(rows(f.w))
	}
	t := s.sized(r, n)
	by := rankerOf(&s.people, &s.sites)
	owner, site := make([]int32, 0, n), make([]int32, 0, n)
	for _, f := range all {
		held := rows(f.w)
		s.order = s.order[:0]
		for i := range held {
			s.order = append(s.order, slot{by.rank(held[i].key), int64(i)})
		}
		for _, o := range s.sort(by.greatest()) {
			h := &held[o.value]
			a, b := by.split(o.key)
			t.Start = append(t.Start, f.start)
			owner, site = append(owner, a), append(site, b)
			for v, x := range [...]int64{h.requests, h.requests - h.writes, h.writes, h.bytes, h.stored} {
				t.Ints[v] = append(t.Ints[v], x)
			}
		}
	}
	t.Keys[0], t.Keys[1] = s.people.column(owner), s.sites.column(site)
	return t
}

// sized returns an empty table with room for rows.
func (s *owners) sized(r *window.Rollup, rows int) *window.Table {
	t := s.widths.Table(r)
	t.Start = make([]int64, 0, rows)
	for v := range t.Ints {
		if r.Values[v].Merging != window.Hist {
			t.Ints[v] = make([]int64, 0, rows)
		}
	}
	return t
}

func (s *owners) interactions(all []frame[ownersWindow]) *window.Table {
	n := 0
	for _, f := range all {
		n += f.w.interactions.used
	}
	t := s.sized(window.Interactions, n)
	by := rankerOf(&s.people, &s.people)
	user, owner := make([]int32, 0, n), make([]int32, 0, n)
	for _, f := range all {
		s.order = s.order[:0]
		for _, x := range f.w.interactions.slots {
			if x.key != 0 {
				s.order = append(s.order, slot{by.rank(x.key), x.value})
			}
		}
		for _, o := range s.sort(by.greatest()) {
			a, b := by.split(o.key)
			t.Start = append(t.Start, f.start)
			user, owner = append(user, a), append(owner, b)
			t.Ints[0] = append(t.Ints[0], o.value)
		}
	}
	t.Keys[0], t.Keys[1] = s.people.column(user), s.people.column(owner)
	return t
}

func (s *owners) places(all []frame[ownersWindow]) *window.Table {
	n := 0
	for _, f := range all {
		n += len(f.w.seen)
	}
	t := s.sized(window.Places, n)
	user := make([]int32, 0, n)
	for _, f := range all {
		s.order = s.order[:0]
		for i := range f.w.seen {
			s.order = append(s.order, slot{uint64(s.people.ranks[f.w.seen[i].user]), int64(i)})
		}
		for _, o := range s.sort(uint64(s.people.len())) {
			p := &f.w.seen[o.value]
			t.Start = append(t.Start, f.start)
			user = append(user, int32(o.key))
			for v, x := range [...]int64{
				p.time, window.FromFloat32(p.lat), window.FromFloat32(p.lon), p.requests, p.x, p.y, p.z,
			} {
				t.Ints[v] = append(t.Ints[v], x)
			}
		}
	}
	t.Keys[0] = s.people.column(user)
	return t
}
