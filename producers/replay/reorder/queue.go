package reorder

// item stands for a row in a slot.
type item struct {
	time     int64
	position uint64
	slot     int32
}

func (a item) before(o item) bool {
	return a.time < o.time || a.time == o.time && a.position < o.position
}

// queue is a ring that grows by doubling.
type queue struct {
	ring  []item
	first int
	n     int
}

func (q *queue) len() int      { return q.n }
func (q *queue) at(i int) item { return q.ring[(q.first+i)&(len(q.ring)-1)] }
func (q *queue) front() item   { return q.at(0) }
func (q *queue) back() item    { return q.at(q.n - 1) }

func (q *queue) push(it item) {
	if q.n == len(q.ring) {
		ring := make([]item, max(2*len(q.ring), 16))
		for i := range q.n {
			ring[i] = q.at(i)
		}
		q.ring, q.first = ring, 0
	}
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = it
	q.n++
}

func (q *queue) pop() item {
	it := q.ring[q.first]
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.n--
	return it
}

// heap is a binary heap by (time, position).
type heap []item

func (h *heap) push(it item) {
	*h = append(*h, it)
	s := *h
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !it.before(s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = it
}

func (h *heap) pop() item {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	i := 0
	for {
		c := 2*i + 1
		if c >= len(s) {
			break
		}
		if c+1 < len(s) && s[c+1].before(s[c]) {
			c++
		}
		if !s[c].before(last) {
			break
		}
		s[i] = s[c]
		i = c
	}
	if len(s) > 0 {
		s[i] = last
	}
	return top
}
