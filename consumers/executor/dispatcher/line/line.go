package line

// Line is a queue in front of one server. It is a state machine without locks:
// even its questions change what it remembers, so that one goroutine at a time
// may call any method. Nothing but a line that grows allocates.
//
// With n waiting, in blocks of about √n: Increase, Potential, Insert, Pop, Place
// and Peek take O(√n) as a rule (see [Line.Insert] for Cheapest, where the walk
// passes blocks, but may walk through all of them), Remove O(√n) at the most, and
// Spread O(log n) in disciplines in order of deadlines. New weights of the
// perceptron cost each block that has late and timely requests alike at most two
// orders of it, when it is asked.
type Line struct {
	blocks     []block
	discipline Discipline
	stale      bool // some block is, or blocks came or went
	decay      float64
	abreast    int64

	where map[uint64]int32 // the slot of each request's block
	slots []int32          // of each slot, the block's index; spare slots keep any
	spare []block          // emptied ones, for their room
	limit int              // the most items of a block

	service int64 // ns, of all
	slacks  slacks
}

// New returns an empty line. A discipline that there is none of is FIFO.
func New(d Discipline) *Line {
	if d > Cost {
		d = FIFO
	}
	return &Line{discipline: d, decay: 1, abreast: 1, where: map[uint64]int32{}, limit: leastBlock}
}

// SetDecay sets a of the discipline Cost, in 1/s: how fast the prospect of a
// penalty fades with the time until the deadline. It is 1 unless set, and if set
// to what is not positive. The sensible one is about 1 over the mean wait.
func (l *Line) SetDecay(perSecond float64) {
	decay := decayOf(perSecond)
	if decay == l.decay {
		return
	}
	l.decay = decay
	l.stale = true
	for i := range l.blocks {
		l.blocks[i].stale = true
	}
}

// SetAbreast says how many requests the server works at side by side; at least
// 1, which is the default and the paper's. A2's walk divides its sums of service
// times by it. The other disciplines have their waits from the perceptron.
func (l *Line) SetAbreast(n int) { l.abreast = int64(max(1, n)) }

// Insert puts the item in at the discipline's place and returns that. A request
// that is in the line already is taken out before.
//
// In Cheapest the place k by deadline is before the first request whose deadline
// is later. From the tail, j = n, n−1, …, k (PAPERS §2.4):
//
//	behind = p_i·max(0, now + Σ_{l≤j} t̂_l − d_i)         x_i behind x_j
//	front  = p_j·max(0, now + Σ_{l<j} t̂_l + t̂_i − d_j)   x_j if x_i passes it
//
// The first x_j with front > behind is not passed; if there is none it is put in
// at k.
func (l *Line) Insert(now int64, it Item) Place {
	l.Remove(it.ID)
	it = it.clean()
	e := entry{Item: it, service: it.serviceNs()}
	if l.discipline == Cost {
		e.worth = it.worth()
	}
	s := l.spot(instant(now), &it)
	l.put(s, e)
	l.service += e.service
	l.slacks.came(it.Deadline)
	return s.Place
}

// Place returns where Insert would put the item, one that is not in the line.
func (l *Line) Place(now int64, it Item) Place {
	it = it.clean()
	return l.spot(instant(now), &it).Place
}

// Pop takes out whom the discipline serves next. It reports whether there is one.
func (l *Line) Pop(now int64) (Item, bool) {
	if len(l.blocks) == 0 {
		return Item{}, false
	}
	return l.take(l.next(instant(now))), true
}

// Peek returns whom Pop would take out, and leaves it in.
func (l *Line) Peek(now int64) (Item, bool) {
	if len(l.blocks) == 0 {
		return Item{}, false
	}
	i, at := l.next(instant(now))
	return l.blocks[i].items()[at].Item, true
}

// Remove takes out the request of that ID and reports whether it was there.
func (l *Line) Remove(id uint64) (Item, bool) {
	slot, ok := l.where[id]
	if !ok {
		return Item{}, false
	}
	i := int(l.slots[slot])
	items := l.blocks[i].items()
	for at := range items {
		if items[at].ID == id {
			return l.take(i, at), true
		}
	}
	return Item{}, false
}

// Len returns how many wait.
func (l *Line) Len() int { return len(l.where) }

// Sums returns the bytes and the service times in s of all that wait, and how
// many of them are static and dynamic. A request without bytes is static.
func (l *Line) Sums() (static, dynamic, service float64, nStatic, nDynamic int) {
	l.fresh()
	for i := range l.blocks {
		b := &l.blocks[i]
		static += b.sums.static
		dynamic += b.sums.dynamic
		nStatic += b.nStatic
		nDynamic += b.nDynamic
	}
	return static, dynamic, seconds(l.service), nStatic, nDynamic
}

// Each calls fn with the items in the line's order until it returns false. The
// line must not be changed meanwhile.
func (l *Line) Each(fn func(Item) bool) {
	for i := range l.blocks {
		for _, e := range l.blocks[i].items() {
			if !fn(e.Item) {
				return
			}
		}
	}
}

// Increase is A1's question (PAPERS §2.4): the sum of the penalties
// p·max(0, σ − d) of the item and everyone behind its place, with the item in
// the line, and that of those behind without it, in units of cost. Neither is
// negative; their difference may be if a weight of w is.
//
// Everyone behind has the item's bytes more ahead, so that their waits all grow
// by the same δ = PerStatic·static + PerDynamic·dynamic, up to the kink at 0.
func (l *Line) Increase(now int64, it Item, w Wait) (after, before float64) {
	now, it, w = instant(now), it.clean(), w.clean()
	i, at, wait := l.start(now, &it, &w)
	after = it.penalty(now, wait)
	for ; i < len(l.blocks); i, at = i+1, 0 {
		sum1, sum2 := l.blocks[i].late(at, now, &w, &it)
		before += sum1
		after += sum2
	}
	return after, before
}

// Potential returns the sum of p·max(0, σ − d) of all that wait, in units of cost.
func (l *Line) Potential(now int64, w Wait) float64 {
	now, w = instant(now), w.clean()
	l.fresh()
	var sum float64
	var none Item
	for i := range l.blocks {
		late, _ := l.blocks[i].late(0, now, &w, &none)
		sum += late
	}
	return sum
}

// Spread is A3's score (PAPERS §2.4) of the line with the item in it: the
// standard deviation, over all, of the times s = d − now in s, without those
// that are negative, divided by the number of all requests in the line.
func (l *Line) Spread(now int64, it Item) float64 {
	now = instant(now)
	l.move(now)
	m := l.slacks.moments
	if d := instant(it.Deadline); d >= now {
		m.add(d)
	}
	return m.deviation() / perSecond / float64(l.Len()+1)
}
