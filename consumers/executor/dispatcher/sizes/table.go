package sizes

import "sync"

// table holds the means of the paths that were asked for last: a map into a list in the
// order of use, in one array.
type table struct {
	mu      sync.Mutex
	at      map[uint64]int32
	entries []entry // 0 is the list's anchor: its next is the newest, its last the oldest
	most    int
	evicted int64
}

type entry struct {
	id         uint64
	v          float64
	n          int32 // answers, up to when the mean no more depends on it
	last, next int32 // towards the newer, towards the older
}

func (t *table) init(most int) {
	t.most = most
	t.at = map[uint64]int32{}
	t.entries = make([]entry, 1, min(most+1, 64))
}

// get returns the mean of a path, which is then the newest.
func (t *table) get(id uint64) (float64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, ok := t.at[id]
	if !ok {
		return 0, false
	}
	t.unlink(i)
	t.link(i)
	return t.entries[i].v, true
}

// put adds an answer to a path's mean.
func (t *table) put(id uint64, v float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, ok := t.at[id]
	switch {
	case ok:
		t.unlink(i)
	case len(t.entries) <= t.most:
		i = int32(len(t.entries))
		t.entries = append(t.entries, entry{id: id})
		t.at[id] = i
	default:
		i = t.entries[0].last
		t.unlink(i)
		delete(t.at, t.entries[i].id)
		t.evicted++
		t.entries[i] = entry{id: id}
		t.at[id] = i
	}
	t.link(i)
	e := &t.entries[i]
	if e.n < 1/pathFollow {
		e.n++
	}
	e.v += (v - e.v) / float64(e.n)
}

func (t *table) unlink(i int32) {
	e := &t.entries[i]
	t.entries[e.last].next, t.entries[e.next].last = e.next, e.last
}

// link puts an entry at the newest place.
func (t *table) link(i int32) {
	next := t.entries[0].next
	t.entries[i].last, t.entries[i].next = 0, next
	t.entries[next].last, t.entries[0].next = i, i
}

func (t *table) state() (entries int, evicted int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.at), t.evicted
}
