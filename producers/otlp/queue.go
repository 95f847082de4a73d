package otlp

import (
	"sync"

	"penstock/producers/otlp/span"
)

// batch are the spans of one request, and how many were none.
type batch struct {
	spans     []span.Span
	malformed int64
}

// queue holds batches until they are joined, up to a number of spans. One that alone has
// more is taken if nothing else waits: it could never be taken otherwise.
type queue struct {
	mu      sync.Mutex
	waiting []batch
	spans   int
	most    int
	closed  bool
	some    chan struct{} // has one element if anything waits
	spare   [][]span.Span
}

func newQueue(most int) *queue { return &queue{most: most, some: make(chan struct{}, 1)} }

// put takes a batch whole or not at all; the error is errBusy or errClosing.
func (q *queue) put(b batch) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return errClosing
	case q.spans > 0 && q.spans+len(b.spans) > q.most:
		return errBusy
	}
	q.waiting = append(q.waiting, b)
	q.spans += len(b.spans)
	select {
	case q.some <- struct{}{}:
	default:
	}
	return nil
}

// take returns all that waits; it is the caller's until done.
func (q *queue) take() []batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.waiting
	q.waiting = nil
	return b
}

const (
	maxSpare      = 32
	maxSpareSpans = 4096
)

// done makes room for as many spans as batches that were taken have.
func (q *queue) done(batches []batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range batches {
		q.spans -= len(b.spans)
		if len(q.spare) < maxSpare && cap(b.spans) <= maxSpareSpans {
			clear(b.spans)
			q.spare = append(q.spare, b.spans[:0])
		}
	}
}

// room returns a slice for the spans of a batch.
func (q *queue) room() []span.Span {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.spare)
	if n == 0 {
		return nil
	}
	s := q.spare[n-1]
	q.spare = q.spare[:n-1]
	return s
}

// full reports whether a request need not be decoded: it would not be taken.
func (q *queue) full() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return errClosing
	case q.spans >= q.most:
		return errBusy
	}
	return nil
}

// close refuses what comes from now on.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// held is the number of spans that wait.
func (q *queue) held() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.spans
}
