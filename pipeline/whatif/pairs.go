package whatif

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"penstock/schemas/window"
)

// owner is a row: what was asked for of one owner's data.
type owner struct {
	id                               int32
	requests, writes, bytes, written int64
	// What sites served of it, by site; nil: no row says.
	served, servedRequests, servedWritten []int64
}

// pair is how often a user asked for an owner's data; the last of a row may be
// what nobody is named for. Pairs of a row begin with the owner itself, then
// those who asked more often come first.
type pair struct {
	row      int32
	place    int32 // of the user, or nowhere
	user     int32 // nobody where none is named
	requests int64
	// bytes is the user's part of the owner's, in proportion to requests; what was
	// written is the owner's own if it is a user, else that of the first.
	bytes, written int64
}

// nobody is the user of requests without one.
const nobody int32 = -1

// interactions fills the pairs and shares each owner's bytes among them.
func (r *Recording) interactions(f *Frame, rows map[int32]int32, t *window.Table) {
	if t != nil {
		from, to := r.translate(t.Key("user")), r.translate(t.Key("owner"))
		users, owners, requests := t.Key("user").Codes, t.Key("owner").Codes, t.Column("requests")
		for i, n := range requests {
			if users[i] < 0 || owners[i] < 0 || n < 0 {
				r.bad++
				continue
			}
			user, id := from[users[i]], to[owners[i]]
			if user != id && n > 0 {
				r.meet(id, user, n)
			}
			if row, ok := rows[id]; ok {
				f.pairs = append(f.pairs, pair{row: row, place: r.place[user], user: user, requests: n})
			}
		}
	}
	named := make([]int64, len(f.owners))
	for _, p := range f.pairs {
		named[p.row] += p.requests
	}
	for row := range f.owners {
		if rest := f.owners[row].requests - named[row]; rest > 0 {
			f.pairs = append(f.pairs, pair{row: int32(row), place: nowhere, user: nobody, requests: rest})
		}
	}
	slices.SortFunc(f.pairs, func(a, b pair) int {
		id := f.owners[a.row].id
		return cmp.Or(cmp.Compare(a.row, b.row), -boolean(a.user == id, b.user == id), boolean(a.user == nobody, b.user == nobody),
			cmp.Compare(b.requests, a.requests), strings.Compare(r.nameOf(a.user), r.nameOf(b.user)))
	})
	r.share(f)
}

// boolean compares two truths, false first.
func boolean(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (r *Recording) nameOf(id int32) string {
	if id == nobody {
		return ""
	}
	return r.names.Values[id]
}

// share gives each pair its part of the owner's bytes; the parts add up.
func (r *Recording) share(f *Frame) {
	for lo := 0; lo < len(f.pairs); {
		o := &f.owners[f.pairs[lo].row]
		f.pairs[lo].written = o.written
		total, hi := int64(0), lo
		for ; hi < len(f.pairs) && f.pairs[hi].row == f.pairs[lo].row; hi++ {
			total += f.pairs[hi].requests
		}
		sofar, done := int64(0), int64(0)
		for ; lo < hi; lo++ {
			p := &f.pairs[lo]
			sofar += p.requests
			p.bytes = proportion(o.bytes, sofar, total) - done
			done += p.bytes
		}
	}
}

// meet adds to the social level of an owner and a user.
func (r *Recording) meet(id, user int32, n int64) {
	l := &r.soc[id]
	// Ids are no order of names, but any fixed order gives the same sums here up
	// to rounding, and ids follow from the windows alone.
	i, ok := slices.BinarySearch(l.users, user)
	if !ok {
		l.users, l.level = slices.Insert(l.users, i, user), slices.Insert(l.level, i, 0)
	}
	l.level[i] += n
}

// proportion is ⌊v·n/of⌋ for n ≤ of, without overflow; 0 of nothing.
func proportion(v, n, of int64) int64 {
	if of == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(v), uint64(min(n, of)))
	q, _ := bits.Div64(hi, lo, uint64(of))
	return int64(q)
}
