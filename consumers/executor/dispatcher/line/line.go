package line

// Line is a queue in front of one server. It is a state machine without locks:
// even its questions change what it remembers, so that one goroutine at a time
// may call any method.
type Line struct{ plain *Plain }

// New returns an empty line. A discipline that there is none of is FIFO.
func New(d Discipline) *Line {
	if d > Cost {
		d = FIFO
	}
	return &Line{plain: NewPlain(d)}
}

// SetDecay sets a of the discipline Cost, in 1/s: how fast the prospect of a
// penalty fades with the time until the deadline. It is 1 unless set, and if set
// to what is not positive. The sensible one is about 1 over the mean wait.
func (l *Line) SetDecay(perSecond float64) { l.plain.SetDecay(perSecond) }

// SetAbreast says how many requests the server works at side by side; at least
// 1, which is the default and the paper's. A2's walk divides its sums of service
// times by it. The other disciplines have their waits from the perceptron.
func (l *Line) SetAbreast(n int) { l.plain.SetAbreast(n) }

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
func (l *Line) Insert(now int64, it Item) Place { return l.plain.Insert(now, it) }

// Place returns where Insert would put the item, one that is not in the line.
func (l *Line) Place(now int64, it Item) Place { return l.plain.Place(now, it) }

// Pop takes out whom the discipline serves next. It reports whether there is one.
func (l *Line) Pop(now int64) (Item, bool) { return l.plain.Pop(now) }

// Peek returns whom Pop would take out, and leaves it in.
func (l *Line) Peek(now int64) (Item, bool) { return l.plain.Peek(now) }

// Remove takes out the request of that ID and reports whether it was there.
func (l *Line) Remove(id uint64) (Item, bool) { return l.plain.Remove(id) }

// Len returns how many wait.
func (l *Line) Len() int { return l.plain.Len() }

// Sums returns the bytes and the service times in s of all that wait, and how
// many of them are static and dynamic. A request without bytes is static.
func (l *Line) Sums() (static, dynamic, service float64, nStatic, nDynamic int) {
	return l.plain.Sums()
}

// Increase is A1's question (PAPERS §2.4): the sum of the penalties
// p·max(0, σ − d) of the item and everyone behind its place, with the item in
// the line, and that of those behind without it. Neither is negative; their
// difference may be if a weight of w is.
func (l *Line) Increase(now int64, it Item, w Wait) (after, before float64) {
	return l.plain.Increase(now, it, w)
}

// Potential returns the sum of p·max(0, σ − d) of all that wait, in units of cost.
func (l *Line) Potential(now int64, w Wait) float64 { return l.plain.Potential(now, w) }

// Spread is A3's score (PAPERS §2.4) of the line with the item in it: the
// standard deviation, over all, of the times s = d − now in s, without those
// that are negative, divided by the number of all requests in the line.
func (l *Line) Spread(now int64, it Item) float64 { return l.plain.Spread(now, it) }

// Each calls fn with the items in the line's order until it returns false.
func (l *Line) Each(fn func(Item) bool) { l.plain.Each(fn) }
