package coder

import (
	"container/list"
	"context"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"penstock/consumers/executor/coder/object"
)

// memory bounds the bytes of segments that requests hold, and keeps the encoders and
// decoders that have them. A request takes what it can't do without in the order of
// arrival, and waits for nothing more while it holds that, so that none waits for
// another that waits too. What makes it faster it takes only if there is plenty.
//
// A client that is slow holds what its request has taken. So that small objects go on
// while large ones wait for such clients, an eighth of the memory is kept for them, in
// lanes: the smaller a lease, the more lanes it may use. They don't pass others in the
// lane that is for all, so that large ones get their turn.
type memory struct {
	most int64 // of the lane that is for all
	// line is the most requests that may wait for memory.
	line    int64
	waiting atomic.Int64
	code    object.Coding
	seg     int64
	parts   [classes]struct{ encoders, decoders, segments sync.Pool }

	mu    sync.Mutex
	lanes [lanes]lane
	queue list.List // of *waiter, in the order of arrival
}

// lane is a part of the memory that leases of at most so many bytes may use.
type lane struct {
	most, fits, used int64
	waiting          int // leases in the queue that may use it
}

// waiter is a lease that waits; ready is closed when it has its memory.
type waiter struct {
	l     *lease
	ready chan struct{}
}

// classes counts the classes of memory, by powers of two: what a small object uses must
// not be as large as a segment.
const classes = 40

// Leases up to these parts of the memory are small, and tiny; each kind has a lane of a
// sixteenth of the memory.
const (
	smallPart = 64
	tinyPart  = 1024
	lanePart  = 16
	lanes     = 3
)

func newMemory(most, line int64, code object.Coding, segment int64) *memory {
	m := &memory{line: line, code: code, seg: segment}
	reserve := most / lanePart
	// Half of what is for all must hold what a single request may ask for.
	m.most = max(most-2*reserve, 2*lease{segment: segment, code: code}.weight(copying))
	m.lanes = [lanes]lane{
		{most: m.most, fits: m.most},
		{most: reserve, fits: most / smallPart},
		{most: reserve, fits: most / tinyPart},
	}
	return m
}

// copying is the segments that a request holds that reads one and writes one.
const copying = 2

// pass is the lease for somebody else to end.
func (l *lease) pass() *lease {
	passed := *l
	l.held = 0
	return &passed
}

// lease is memory that a request holds.
type lease struct {
	m       *memory
	held    int64
	lane    int   // that it is held in
	segment int64 // bytes of a segment
	code    object.Coding
}

// weight is what so many segments weigh: the coded strips, trailers aside.
func (l lease) weight(segments int64) int64 {
	return segments * max(minWeight, l.segment*int64(l.code.N)/int64(l.code.K))
}

// minWeight stands for what a request needs beside its bytes.
const minWeight = 16 << 10

// take waits until memory for so many segments of so many bytes each is free. It returns
// ErrBusy if too many requests wait for that.
func (m *memory) take(ctx context.Context, code object.Coding, bytes, segments int64) (*lease, error) {
	l := m.lease(code, bytes, segments)
	if m.try(l) {
		return l, nil
	}
	if m.waiting.Add(1) > m.line {
		m.waiting.Add(-1)
		return nil, fmt.Errorf("%w: for memory", ErrBusy)
	}
	defer m.waiting.Add(-1)
	return m.wait(ctx, l)
}

func (m *memory) lease(code object.Coding, bytes, segments int64) *lease {
	l := &lease{m: m, segment: min(max(bytes, 1), m.seg), code: code}
	l.held = min(l.weight(segments), m.most)
	return l
}

// await is take for work behind requests, of which there is little at a time: it waits
// however many others do.
func (m *memory) await(ctx context.Context, code object.Coding, bytes, segments int64) (*lease, error) {
	l := m.lease(code, bytes, segments)
	return m.wait(ctx, l)
}

// try gives a lease its memory if there is some that none waits for who came before.
func (m *memory) try(l *lease) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	var passed [lanes]bool
	for i := range m.lanes {
		passed[i] = m.lanes[i].waiting > 0
	}
	return m.place(l, &passed)
}

// place gives a lease its memory in the first lane that has it. Lanes are left out that
// others wait for who came before, and the lease counts among these if it gets nothing.
func (m *memory) place(l *lease, awaited *[lanes]bool) bool {
	for i := range m.lanes {
		if a := &m.lanes[i]; l.held <= a.fits && !awaited[i] && l.held <= a.most-a.used {
			a.used += l.held
			l.lane = i
			return true
		}
	}
	for i := range m.lanes {
		awaited[i] = awaited[i] || l.held <= m.lanes[i].fits
	}
	return false
}

// wait gives a lease its memory in its turn, or returns the error of ctx.
func (m *memory) wait(ctx context.Context, l *lease) (*lease, error) {
	w := &waiter{l, make(chan struct{})}
	m.mu.Lock()
	at := m.queue.PushBack(w)
	m.enlist(l, 1)
	m.serve()
	m.mu.Unlock()
	select {
	case <-w.ready:
		return l, nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-w.ready: // at the same time: what follows sees that ctx has ended
		return l, nil
	default:
	}
	m.queue.Remove(at)
	m.enlist(l, -1)
	m.serve() // others may have waited behind it
	return nil, ctx.Err()
}

// enlist notes that a lease waits for the lanes that it may use, or no longer.
func (m *memory) enlist(l *lease, by int) {
	for i := range m.lanes {
		if l.held <= m.lanes[i].fits {
			m.lanes[i].waiting += by
		}
	}
}

// serve gives memory to those who wait, in each lane in the order of arrival.
func (m *memory) serve() {
	var awaited, all [lanes]bool
	for i := range all {
		all[i] = true
	}
	for at := m.queue.Front(); at != nil && awaited != all; {
		next := at.Next()
		if w, ok := at.Value.(*waiter); ok && m.place(w.l, &awaited) {
			m.queue.Remove(at)
			m.enlist(w.l, -1)
			close(w.ready)
		}
		at = next
	}
}

// more takes memory for another segment if there is plenty; it doesn't wait. There isn't
// for one that is held in a lane of small ones.
func (l *lease) more() bool {
	w := l.weight(1)
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.lane != 0 || !l.m.has(w) {
		return false
	}
	l.m.lanes[0].used += w
	l.held += w
	return true
}

// has tells whether so much of what is for all is free, and nobody waits for it.
func (m *memory) has(bytes int64) bool {
	a := &m.lanes[0]
	return a.waiting == 0 && bytes <= a.most-a.used
}

// half divides what was taken for copying: who reads and writes takes the memory at once,
// so that it doesn't wait for the one while it holds the other.
func (l *lease) half() *lease {
	half := *l
	half.held = l.weight(copying / 2)
	l.held -= half.held
	return &half
}

// give ends the lease. It may be called twice, and of none.
func (l *lease) give() {
	if l == nil || l.held == 0 {
		return
	}
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	l.m.lanes[l.lane].used -= l.held
	l.held = 0
	l.m.serve()
}

// spare tells whether at least half of the memory is free: then the background may go
// on with what stands in it.
func (m *memory) spare() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.has(m.most / 2)
}

func class(bytes int64) int { return min(bits.Len64(uint64(max(bytes, 1)))/2*2, classes-1) } //nolint:gosec // positive

// encoder takes an encoder for segments of so many bytes. It is given back by keep.
func (l *lease) encoder() (*object.Encoder, error) {
	if e, ok := l.m.parts[class(l.segment)].encoders.Get().(*object.Encoder); ok {
		return e, nil
	}
	return object.NewEncoder(l.m.code, l.m.seg)
}

func (l *lease) keepEncoder(e *object.Encoder) { l.m.parts[class(l.segment)].encoders.Put(e) }

// decoder takes a decoder of a version.
func (l *lease) decoder(v *object.Version) (*object.Decoder, error) {
	if d, ok := l.m.parts[class(l.segment)].decoders.Get().(*object.Decoder); ok {
		return d, d.Reset(v)
	}
	return object.NewDecoder(v)
}

func (l *lease) keepDecoder(d *object.Decoder) { l.m.parts[class(l.segment)].decoders.Put(d) }

func (l *lease) slab() *object.Segment {
	if s, ok := l.m.parts[class(l.segment)].segments.Get().(*object.Segment); ok {
		return s
	}
	return &object.Segment{}
}

func (l *lease) keepSlab(s *object.Segment) { l.m.parts[class(l.segment)].segments.Put(s) }
