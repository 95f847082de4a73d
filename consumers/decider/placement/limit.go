package placement

// limiter takes moves one by one as far as the limits of a window go.
type limiter struct {
	o             *optimiser
	moves, volume int64
	loads         []int64 // of sites, with what was taken
	row           []int64
	exact         *weights
	blocked       []entry
}

// limit takes what is worth most of a plan that is beyond the limits: first what
// relieves sites, then what gains, each move only if it alone makes the total
// less on top of those taken before. Moves into room that another one was to
// leave are tried once more at the end.
func (o *optimiser) limit(relief, rest []entry, moves, volume int64) {
	p, t := o.p, o.p.t
	l := &limiter{
		o: o, moves: moves, volume: volume, loads: append([]int64(nil), o.stay...),
		row: make([]int64, len(t.config.Sites)), exact: newWeights(len(t.config.Sites)),
	}
	for _, list := range [][]entry{relief, rest} {
		q := queue{entries: list}
		for l.moves > 0 {
			e, ok := q.next()
			if !ok {
				break
			}
			l.take(e)
		}
		l.holdAll(q.entries[q.at:])
	}
	again := l.blocked
	l.blocked = nil
	for i, e := range again {
		if l.moves == 0 {
			l.holdAll(again[i:])
			break
		}
		l.take(e)
	}
	l.holdAll(l.blocked)
	copy(p.expected, l.loads)
}

// take takes a move, or holds it, or puts it off.
func (l *limiter) take(e entry) {
	o := l.o
	t, s := o.p.t, o.p.t.state
	id, stored := e.id, o.p.t.state.stored[e.id]
	if stored > l.volume {
		l.hold(id, ByteLimit)
		return
	}
	from, to, volume := s.site[id], t.want[id], s.traffic[id]
	t.weigh(id, l.exact)
	copy(l.row, l.exact.sum)
	o.charge(id, l.row)
	forced := o.forced(id)
	more := o.above(to, l.loads[to]+volume) - o.above(to, l.loads[to])
	less := o.above(from, l.loads[from]) - o.above(from, l.loads[from]-volume)
	switch {
	case forced && o.p.evac[from-1] && more > 0:
	case !forced && float64(l.row[from-1]-l.row[to-1]) <= o.perByte*float64(more-less):
	default:
		l.moves, l.volume = l.moves-1, l.volume-stored
		l.loads[from] -= volume
		l.loads[to] += volume
		return
	}
	l.blocked = append(l.blocked, e)
}

func (l *limiter) hold(id int32, why Code) {
	l.o.p.t.state.why[id] = why
	l.o.p.t.want[id] = l.o.p.t.state.site[id]
}

// holdAll holds what is left: beyond the moves if these are used up, else beyond
// the bytes.
func (l *limiter) holdAll(rest []entry) {
	why := ByteLimit
	if l.moves == 0 || l.o.p.t.config.Limits.Bytes == 0 {
		why = MoveLimit
	}
	inParts(l.o.p.t.workers, len(rest), func(_, lo, hi int) {
		for _, e := range rest[lo:hi] {
			l.hold(e.id, why)
		}
	})
}
