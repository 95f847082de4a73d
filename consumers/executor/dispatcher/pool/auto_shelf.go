package pool

import (
	"math"
	"math/bits"
)

// levels of worth p/work: eight an octave.
const levels = 192

// levelOf is the level of a worth, in units per s².
func levelOf(penalty, work float64) int {
	l := int(math.Floor(8*math.Log2(max(penalty, leastPenalty)/work))) + levels/2
	return min(max(l, 0), levels-1)
}

// shelf holds the waiting requests of one level of worth: a heap, the earliest due first.
type shelf struct {
	jobs []*job
	work float64
}

func earlier(a, b *job) bool { return a.due < b.due || a.due == b.due && a.id < b.id }

func (h *shelf) swap(i, k int) {
	h.jobs[i], h.jobs[k] = h.jobs[k], h.jobs[i]
	h.jobs[i].place, h.jobs[k].place = i, k
}

func (h *shelf) push(j *job) {
	j.place = len(h.jobs)
	h.jobs = append(h.jobs, j)
	h.work += j.work
	h.up(j.place)
}

func (h *shelf) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !earlier(h.jobs[i], h.jobs[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *shelf) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h.jobs) {
			return
		}
		if c+1 < len(h.jobs) && earlier(h.jobs[c+1], h.jobs[c]) {
			c++
		}
		if !earlier(h.jobs[c], h.jobs[i]) {
			return
		}
		h.swap(i, c)
		i = c
	}
}

func (h *shelf) remove(i int) {
	last := len(h.jobs) - 1
	h.work -= h.jobs[i].work
	h.swap(i, last)
	h.jobs[last] = nil
	h.jobs = h.jobs[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
	if last == 0 {
		h.work = 0 // no rounding is left
	}
}

// first is the earliest due that a server may take, nil if there is none.
func (h *shelf) first(s *server) *job {
	if j := h.jobs[0]; j.takenBy(s) {
		return j
	}
	var best *job
	for _, j := range h.jobs {
		if j.takenBy(s) && (best == nil || earlier(j, best)) {
			best = j
		}
	}
	return best
}

// takenBy reports whether a server may take a waiting job: one of its own line, or one that
// does not avoid it, unless the server is new and has had its share.
func (j *job) takenBy(s *server) bool {
	return j.server == s || !j.avoids(s) && !(s.ramping && s.credit < 1)
}

// marks are a set of levels.
type marks [levels / 64]uint64

func (m *marks) set(l int, to bool) {
	m[l/64] &^= 1 << (l % 64)
	if to {
		m[l/64] |= 1 << (l % 64)
	}
}

// each yields the levels of the set, ascending.
func (m *marks) each(yield func(l int) bool) {
	for i, b := range m {
		for ; b != 0; b &= b - 1 {
			if !yield(64*i + bits.TrailingZeros64(b)) {
				return
			}
		}
	}
}
