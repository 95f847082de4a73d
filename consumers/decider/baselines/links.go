package baselines

// link is how many requests two ids made for each other's data in the open
// window.
type link struct {
	key      uint64 // the lesser number, then the greater
	requests int64  // 0 is a free slot
}

func (l link) ends() (lesser, greater int32) { return int32(l.key >> 32), int32(l.key & 0xffffffff) }

// links counts by pairs of ids: open addressing, for it is asked a row.
type links struct {
	table []link
	used  int
}

const leastLinks = 1 << 10

func (t *links) add(user, owner int32, requests int64) {
	if requests <= 0 {
		return
	}
	if 2*t.used >= len(t.table) {
		t.grow()
	}
	key := uint64(min(user, owner))<<32 | uint64(max(user, owner))
	for i := mix(key, len(t.table)); ; i = (i + 1) & (len(t.table) - 1) {
		switch s := &t.table[i]; {
		case s.requests == 0:
			*s = link{key, requests}
			t.used++
			return
		case s.key == key:
			s.requests += requests
			return
		}
	}
}

func (t *links) grow() {
	old := t.table
	t.table = make([]link, max(2*len(old), leastLinks))
	for _, l := range old {
		if l.requests == 0 {
			continue
		}
		i := mix(l.key, len(t.table))
		for t.table[i].requests > 0 {
			i = (i + 1) & (len(t.table) - 1)
		}
		t.table[i] = l
	}
}

// reset forgets all. A table that is far larger than what it held shrinks, so
// that thin windows after a busy one do not pay for it.
func (t *links) reset() {
	if len(t.table) > leastLinks && 16*t.used < len(t.table) {
		t.table = make([]link, len(t.table)/4)
	} else {
		clear(t.table)
	}
	t.used = 0
}
