package rollup

import (
	"slices"

	"penstock/schemas/window"
)

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

// ranked returns both ids' ranks as one number that sorts as the keys do.
func ranked(a, b *names, key uint64) uint64 {
	x, y := unpair(key)
	return uint64(a.ranks[x])<<32 | uint64(b.ranks[y])
}

func (s *owners) sums(r *window.Rollup, all []frame[ownersWindow], rows func(*ownersWindow) []sum) *window.Table {
	t := window.NewTable(r)
	n := 0
	for _, f := range all {
		n += len(rows(f.w))
	}
	owner, site := make([]int32, 0, n), make([]int32, 0, n)
	t.Start = make([]int64, 0, n)
	for v := range t.Ints {
		t.Ints[v] = make([]int64, 0, n)
	}
	var order []place
	for _, f := range all {
		held := rows(f.w)
		order = order[:0]
		for i := range held {
			order = append(order, place{ranked(&s.people, &s.sites, held[i].key), int32(i)})
		}
		slices.SortFunc(order, byRank)
		for _, o := range order {
			h := &held[o.row]
			t.Start = append(t.Start, f.start)
			owner, site = append(owner, int32(o.rank>>32)), append(site, int32(uint32(o.rank)))
			for v, x := range [...]int64{h.requests, h.requests - h.writes, h.writes, h.bytes, h.stored} {
				t.Ints[v] = append(t.Ints[v], x)
			}
		}
	}
	t.Keys[0], t.Keys[1] = s.people.column(owner), s.sites.column(site)
	return t
}

func (s *owners) interactions(all []frame[ownersWindow]) *window.Table {
	t := window.NewTable(window.Interactions)
	n := 0
	for _, f := range all {
		n += f.w.interactions.used
	}
	user, owner := make([]int32, 0, n), make([]int32, 0, n)
	t.Start, t.Ints[0] = make([]int64, 0, n), make([]int64, 0, n)
	var order []slot
	for _, f := range all {
		order = order[:0]
		for _, x := range f.w.interactions.slots {
			if x.key != 0 {
				order = append(order, slot{ranked(&s.people, &s.people, x.key), x.value})
			}
		}
		slices.SortFunc(order, func(a, b slot) int {
			if a.key < b.key {
				return -1
			}
			return 1
		})
		for _, o := range order {
			t.Start = append(t.Start, f.start)
			user, owner = append(user, int32(o.key>>32)), append(owner, int32(uint32(o.key)))
			t.Ints[0] = append(t.Ints[0], o.value)
		}
	}
	t.Keys[0], t.Keys[1] = s.people.column(user), s.people.column(owner)
	return t
}

func (s *owners) places(all []frame[ownersWindow]) *window.Table {
	t := window.NewTable(window.Places)
	var user []int32
	var order []place
	for _, f := range all {
		order = order[:0]
		for i := range f.w.seen {
			order = append(order, place{uint64(s.people.ranks[f.w.seen[i].user]), int32(i)})
		}
		slices.SortFunc(order, byRank)
		for _, o := range order {
			p := &f.w.seen[o.row]
			t.Start = append(t.Start, f.start)
			user = append(user, int32(o.rank))
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
