package line

import (
	"math"
	"math/bits"
	"sort"
)

// slacks is what A3 asks of a line: the moments of the deadlines that are not
// over. The deviation of s = d − now is that of d. As time goes on requests leave
// the moments, each once; sums are exact, so that leaving takes away what coming
// added, and nothing is to be centred anew.
type slacks struct {
	moments
	edge  int64 // ns; deadlines from here on are in
	asked bool  // before, nothing is in
}

func (s *slacks) came(deadline int64) {
	if s.asked && deadline >= s.edge {
		s.add(deadline)
	}
}

func (s *slacks) went(deadline int64) {
	if s.asked && deadline >= s.edge {
		s.sub(deadline)
	}
}

// move moves the edge of the slacks to now.
func (l *Line) move(now int64) {
	s := &l.slacks
	if s.asked && now == s.edge {
		return
	}
	l.fresh()
	switch {
	case !l.discipline.sorted():
		// Deadlines are over here and there. A3's lines are sorted.
		s.moments = moments{}
		for i := range l.blocks {
			for _, x := range l.blocks[i].shifts {
				if x.deadline >= now {
					s.add(x.deadline)
				}
			}
		}
		return
	case !s.asked:
		s.asked = true
		s.moments, s.edge = moments{}, math.MaxInt64
	}
	from, to := min(now, s.edge), max(now, s.edge)
	i := sort.Search(len(l.blocks), func(i int) bool { return l.blocks[i].last() >= from })
	for ; i < len(l.blocks) && l.blocks[i].first() < to; i++ {
		shifts := l.blocks[i].shifts
		at := sort.Search(len(shifts), func(k int) bool { return shifts[k].deadline >= from })
		for ; at < len(shifts) && shifts[at].deadline < to; at++ {
			if now < s.edge {
				s.add(shifts[at].deadline)
			} else {
				s.sub(shifts[at].deadline)
			}
		}
	}
	s.edge = now
}

// moments are the sums of instants and of their squares, both from the base, in
// whole numbers of ns. Instants are below 2^62, their differences below 2^63,
// their squares below 2^126: 2^33 of them fit.
type moments struct {
	n       int64
	base    int64
	sum     [2]uint64 // least first, in two's complement
	squares [3]uint64
}

func (m *moments) add(instant int64) {
	if m.n == 0 {
		*m = moments{base: instant}
	}
	m.n++
	x, square := m.of(instant)
	var c uint64
	m.sum[0], c = bits.Add64(m.sum[0], uint64(x), 0)
	m.sum[1], _ = bits.Add64(m.sum[1], uint64(x>>63), c)
	m.squares[0], c = bits.Add64(m.squares[0], square[0], 0)
	m.squares[1], c = bits.Add64(m.squares[1], square[1], c)
	m.squares[2] += c
}

func (m *moments) sub(instant int64) {
	m.n--
	x, square := m.of(instant)
	var c uint64
	m.sum[0], c = bits.Sub64(m.sum[0], uint64(x), 0)
	m.sum[1], _ = bits.Sub64(m.sum[1], uint64(x>>63), c)
	m.squares[0], c = bits.Sub64(m.squares[0], square[0], 0)
	m.squares[1], c = bits.Sub64(m.squares[1], square[1], c)
	m.squares[2] -= c
}

// of returns the instant from the base and its square.
func (m *moments) of(instant int64) (x int64, square [2]uint64) {
	x = instant - m.base
	size := uint64(max(x, -x))
	square[1], square[0] = bits.Mul64(size, size)
	return x, square
}

// deviation returns √(n·Σx² − (Σx)²)/n in ns, 0 of nothing.
func (m *moments) deviation() float64 {
	if m.n < 2 {
		return 0
	}
	// n·Σx², by words.
	n := uint64(m.n)
	var a [3]uint64
	var hi, c uint64
	hi, a[0] = bits.Mul64(m.squares[0], n)
	a[2], a[1] = bits.Mul64(m.squares[1], n)
	a[1], c = bits.Add64(a[1], hi, 0)
	a[2] += c + m.squares[2]*n
	// (Σx)² = s0² + 2·s0·s1·2^64 + s1²·2^128.
	s := m.sum
	if int64(s[1]) < 0 {
		s[0], c = bits.Sub64(0, s[0], 0)
		s[1], _ = bits.Sub64(0, s[1], c)
	}
	var q [3]uint64
	q[1], q[0] = bits.Mul64(s[0], s[0])
	hi, lo := bits.Mul64(s[0], 2*s[1])
	q[1], c = bits.Add64(q[1], lo, 0)
	q[2] = hi + c + s[1]*s[1]
	var d [3]uint64
	d[0], c = bits.Sub64(a[0], q[0], 0)
	d[1], c = bits.Sub64(a[1], q[1], c)
	d[2], _ = bits.Sub64(a[2], q[2], c)
	const word = 1 << 64
	return math.Sqrt((float64(d[2])*word+float64(d[1]))*word+float64(d[0])) / float64(m.n)
}
