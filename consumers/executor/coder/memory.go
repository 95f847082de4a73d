package coder

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"penstock/consumers/executor/coder/object"
)

// memory bounds the bytes of segments that requests hold, and keeps the encoders and
// decoders that have them. A request takes what it can't do without in the order of
// arrival, and waits for nothing more while it holds that, so that none waits for
// another that waits too. What makes it faster it takes only if there is plenty.
type memory struct {
	most int64
	free *semaphore.Weighted
	// line is the most requests that may wait for memory.
	line    int64
	waiting atomic.Int64
	code    object.Coding
	seg     int64
	parts   [classes]struct{ encoders, decoders, segments sync.Pool }
}

// classes counts the classes of memory, by powers of two: what a small object uses must
// not be as large as a segment.
const classes = 40

func newMemory(most, line int64, code object.Coding, segment int64) *memory {
	// Half of it must hold what a single request may ask for.
	most = max(most, 2*lease{segment: segment, code: code}.weight(copying))
	return &memory{most: most, free: semaphore.NewWeighted(most), line: line, code: code, seg: segment}
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
	if l := m.lease(code, bytes, segments); m.free.TryAcquire(l.held) {
		return l, nil
	}
	if m.waiting.Add(1) > m.line {
		m.waiting.Add(-1)
		return nil, fmt.Errorf("%w: for memory", ErrBusy)
	}
	defer m.waiting.Add(-1)
	return m.await(ctx, code, bytes, segments)
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
	if err := m.free.Acquire(ctx, l.held); err != nil {
		return nil, err
	}
	return l, nil
}

// more takes memory for another segment if there is plenty; it doesn't wait.
func (l *lease) more() bool {
	w := l.weight(1)
	if !l.m.free.TryAcquire(w) {
		return false
	}
	l.held += w
	return true
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
	if l != nil && l.held > 0 {
		l.m.free.Release(l.held)
		l.held = 0
	}
}

// spare tells whether at least half of the memory is free: then the background may go
// on with what stands in it.
func (m *memory) spare() bool {
	if !m.free.TryAcquire(m.most / 2) {
		return false
	}
	m.free.Release(m.most / 2)
	return true
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
