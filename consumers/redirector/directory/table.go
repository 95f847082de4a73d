package directory

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// table holds a record per owner. Lookups take no lock, wait for nobody and
// allocate nothing; writers take turns.
//
// It is divided into shards by the owner's hash, whose seed is the process's own,
// so that nobody can choose owners that collide. A shard is an arena of records
// and an index of 4 bytes a slot: 8 bits of the hash and a position in the arena.
// A change appends a record and then points the slot at it, in one atomic store;
// what is garbage then is left behind when the shard is copied, which happens
// when it has to grow and when half of it is garbage. One copy takes some tens
// of microseconds: there are enough shards. Readers who still hold a shard's old
// state read from it what held when they began.
type table struct {
	seed   maphash.Seed
	shift  uint8
	shards []shard

	mu      sync.Mutex // writers
	marking bool
	buf     []byte

	owners atomic.Int64
	bytes  atomic.Int64 // of arenas and indexes
}

// shard is one part of the table.
type shard struct {
	now atomic.Pointer[state]
	// What follows is the writers'.
	live    uint32 // records that a slot points to
	garbage uint32 // bytes of the arena that none points to
	filled  uint32 // slots that are not empty: records and graves
	end     uint32 // of what is written in the arena
	marks   []uint64
}

// state is what readers of a shard use. Bytes of the arena are written before the
// first slot points to them, and not after.
type state struct {
	slots []atomic.Uint32
	arena []byte
}

const (
	// positionBits are a slot's for the position in the arena, 0 for none; the
	// rest is the tag.
	positionBits = 24
	positionMask = 1<<positionBits - 1
	// maxArena bounds a shard.
	maxArena = 1 << positionBits
	// grave is a slot whose owner was removed: probing goes on past it.
	grave = 1 << positionBits
	// manyShards for the table of the bus, of 2.5 thousand owners each at ten
	// million; together they hold up to 64 GB.
	manyShards = 12
	// page is what the runtime rounds larger allocations up to.
	page = 8 << 10
)

// newTable returns an empty table of 2^bits shards.
func newTable(bits uint8) *table {
	t := &table{seed: maphash.MakeSeed(), shift: 64 - bits, shards: make([]shard, 1<<bits)}
	empty := &state{slots: make([]atomic.Uint32, 1)}
	for i := range t.shards {
		t.shards[i].now.Store(empty)
	}
	t.bytes.Store(int64(len(t.shards) * empty.size()))
	return t
}

// start is the slot at which the probing for a hash begins.
func start(hash uint64, slots int) int { return int(uint64(uint32(hash)) * uint64(slots) >> 32) }

// tag is what a slot shows of a hash.
func tag(hash uint64) uint32 { return uint32(hash>>32) << positionBits }

// find returns an owner's record from its place on, nil if there is none.
func (t *table) find(owner string) []byte {
	h := maphash.String(t.seed, owner)
	s := t.shards[h>>t.shift].now.Load()
	_, b := s.probe(h, owner)
	if b == nil {
		return nil
	}
	_, n := ownerOf(b)
	return b[n:]
}

// probe returns the slot of an owner and the arena from its record on, −1 and nil
// if it has none. It loads each slot once: what a writer does meanwhile is seen
// wholly or not at all.
func (s *state) probe(h uint64, owner string) (int, []byte) {
	slots, want := s.slots, tag(h)
	for i := start(h, len(slots)); ; {
		v := slots[i].Load()
		if v == 0 {
			return -1, nil
		}
		if v&^positionMask == want && v&positionMask != 0 {
			b := s.arena[v&positionMask:]
			if o, _ := ownerOf(b); string(o) == owner {
				return i, b
			}
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}

// put sets an owner's place. It reports what that was: whether there was none
// before, whether anything changed, and whether there was room.
func (t *table) put(owner string, p place) (added, changed, fits bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = appendRecord(t.buf[:0], owner, p)
	h := maphash.String(t.seed, owner)
	return t.putRecord(&t.shards[h>>t.shift], h, owner, t.buf)
}

func (t *table) putRecord(sh *shard, h uint64, owner string, rec []byte) (added, changed, fits bool) {
	s := sh.now.Load()
	at, old := s.probe(h, owner)
	if at >= 0 {
		if string(old[:recordLen(old)]) == string(rec) {
			t.mark(sh, at)
			return false, false, true
		}
	}
	if s, fits = t.makeRoom(sh, len(rec), at < 0); !fits {
		return false, false, false
	}
	if at >= 0 {
		at, old = s.probe(h, owner) // the shard may have been copied
		sh.garbage += uint32(recordLen(old))
	} else {
		added = true
		at = s.vacant(h)
		if s.slots[at].Load() == 0 {
			sh.filled++
		}
		sh.live++
		t.owners.Add(1)
	}
	copy(s.arena[sh.end:], rec)
	s.slots[at].Store(tag(h) | sh.end)
	sh.end += uint32(len(rec))
	t.mark(sh, at)
	return added, true, true
}

// touch marks an owner as put, and reports whether it is there.
func (t *table) touch(owner string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := maphash.String(t.seed, owner)
	sh := &t.shards[h>>t.shift]
	at, _ := sh.now.Load().probe(h, owner)
	if at >= 0 {
		t.mark(sh, at)
	}
	return at >= 0
}

// vacant is the first slot for a hash that points to nothing.
func (s *state) vacant(h uint64) int {
	for i := start(h, len(s.slots)); ; {
		if s.slots[i].Load()&positionMask == 0 {
			return i
		}
		if i++; i == len(s.slots) {
			i = 0
		}
	}
}

// remove takes an owner out and reports whether it was there.
func (t *table) remove(owner string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := maphash.String(t.seed, owner)
	sh := &t.shards[h>>t.shift]
	at, _ := sh.now.Load().probe(h, owner)
	if at < 0 {
		return false
	}
	t.bury(sh, at)
	t.shrink(sh)
	return true
}

// bury empties a slot.
func (t *table) bury(sh *shard, at int) {
	s := sh.now.Load()
	sh.garbage += uint32(recordLen(s.arena[s.slots[at].Load()&positionMask:]))
	s.slots[at].Store(grave)
	sh.live--
	t.owners.Add(-1)
}

// makeRoom returns the shard's state with room for a record, and for one owner
// more if asked. One slot at least stays empty, where probing ends.
func (t *table) makeRoom(sh *shard, n int, slot bool) (*state, bool) {
	s := sh.now.Load()
	slots := len(s.slots)
	if int(sh.end)+n <= len(s.arena) && (!slot || int(sh.filled)+1 <= slots-1-slots/8) {
		return s, true
	}
	live := sh.liveBytes()
	room := min(live+n+live/5+32, maxArena-1)
	if live+n > room {
		return nil, false
	}
	t.copyShard(sh, room, int(sh.live)+1)
	return sh.now.Load(), true
}

func (sh *shard) liveBytes() int {
	if sh.end == 0 {
		return 0
	}
	return int(sh.end - sh.garbage - 1) // position 0 stands for none
}

// shrink copies a shard that is more than half garbage or graves.
func (t *table) shrink(sh *shard) {
	s := sh.now.Load()
	live := sh.liveBytes()
	if int(sh.garbage) > live+1024 || len(s.slots) > 64 && int(sh.live)*4 < len(s.slots) {
		t.copyShard(sh, live+live/10, int(sh.live))
	}
}

// copyShard copies the records of a shard to a new arena with room for some bytes
// of records in all, and to an index with room for some owners.
func (t *table) copyShard(sh *shard, room, owners int) {
	old := sh.now.Load()
	size := room + 1
	if size > page {
		size = min((size+page-1)/page*page, maxArena)
	}
	s := &state{slots: make([]atomic.Uint32, owners+owners/2+4), arena: make([]byte, size)}
	var marks []uint64
	if t.marking {
		marks = make([]uint64, (len(s.slots)+63)/64)
	}
	end := uint32(1)
	for i := range old.slots {
		v := old.slots[i].Load()
		if v&positionMask == 0 {
			continue
		}
		b := old.arena[v&positionMask:]
		n := recordLen(b)
		owner, _ := ownerOf(b)
		h := maphash.Bytes(t.seed, owner)
		at := s.vacant(h)
		copy(s.arena[end:], b[:n])
		s.slots[at].Store(tag(h) | end)
		end += uint32(n)
		if t.marking && sh.marked(i) {
			marks[at/64] |= 1 << (at % 64)
		}
	}
	t.bytes.Add(int64(s.size() - old.size()))
	sh.end, sh.garbage, sh.filled, sh.marks = end, 0, sh.live, marks
	sh.now.Store(s)
}

func (s *state) size() int { return 4*len(s.slots) + len(s.arena) }

// each calls fn with every record, until it returns false. What changes meanwhile
// is there as it was or as it is.
func (t *table) each(fn func(rec []byte) bool) {
	for i := range t.shards {
		s := t.shards[i].now.Load()
		for j := range s.slots {
			at := s.slots[j].Load() & positionMask
			if at == 0 {
				continue
			}
			b := s.arena[at:]
			if !fn(b[:recordLen(b)]) {
				return
			}
		}
	}
}

// beginMarking starts to note which owners are put.
func (t *table) beginMarking() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marking = true
	for i := range t.shards {
		t.shards[i].marks = nil
	}
}

// sweep removes the owners that were not put since beginMarking, which it ends,
// and returns how many they were. Writers wait for one shard at a time.
func (t *table) sweep() (removed int) {
	for i := range t.shards {
		removed += t.sweepShard(&t.shards[i])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marking = false
	for i := range t.shards {
		t.shards[i].marks = nil
	}
	return removed
}

func (t *table) sweepShard(sh *shard) (removed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := sh.now.Load()
	for j := range s.slots {
		if s.slots[j].Load()&positionMask != 0 && !sh.marked(j) {
			t.bury(sh, j)
			removed++
		}
	}
	if removed > 0 {
		t.shrink(sh)
	}
	return removed
}

func (t *table) mark(sh *shard, at int) {
	if !t.marking {
		return
	}
	if sh.marks == nil {
		sh.marks = make([]uint64, (len(sh.now.Load().slots)+63)/64)
	}
	sh.marks[at/64] |= 1 << (at % 64)
}

func (sh *shard) marked(at int) bool {
	return sh.marks != nil && sh.marks[at/64]&(1<<(at%64)) != 0
}
