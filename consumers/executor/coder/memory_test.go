package coder

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/consumers/executor/coder/object"
)

// inQueue waits until so many wait for memory.
func (m *memory) inQueue(n int) {
	for {
		m.mu.Lock()
		got := m.queue.Len()
		m.mu.Unlock()
		if got == n {
			return
		}
		time.Sleep(time.Millisecond) // nobody tells
	}
}

// TestSmallPass: while large objects hold and wait for all of the memory that is for all,
// small ones go on; and what they hold keeps no large one from its turn.
func TestSmallPass(t *testing.T) {
	t.Parallel()
	code := object.SharedCoding()
	m := newMemory(512<<20, 1000, code, 8<<20)
	take := func(bytes int64) *lease {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		l, err := m.take(ctx, code, bytes, 1)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if l := take(1 << 10); l.held != minWeight {
		t.Errorf("1 KB weighs %d", l.held)
	} else {
		l.give()
	}
	var large []*lease
	for l := m.lease(code, 10<<20, 1); m.try(l); l = m.lease(code, 10<<20, 1) {
		large = append(large, l)
	}
	if len(large) != 28 {
		t.Fatalf("%d large ones", len(large))
	}
	next := make(chan *lease)
	for range 2 {
		go func() {
			l, _ := m.take(t.Context(), code, 10<<20, 1)
			next <- l
		}()
	}
	m.inQueue(2)
	// Small ones that are held for long leave room for tiny ones.
	var small []*lease
	for {
		l := m.lease(code, 3<<20, 1)
		if !m.try(l) {
			break
		}
		small = append(small, l)
	}
	if len(small) != 5 {
		t.Errorf("%d small ones", len(small))
	}
	for range 1000 {
		small = append(small, take(1<<10))
	}
	if small[0].more() {
		t.Error("a small one looks ahead in a lane of small ones")
	}
	select {
	case <-next:
		t.Fatal("there is no memory")
	default:
	}
	large[0].give()
	if l := <-next; l == nil {
		t.Error("the first of the line")
	} else {
		l.give()
	}
	(<-next).give()
	for _, l := range append(large, small...) {
		l.give()
	}
	for i, a := range m.lanes {
		if a.used != 0 || a.waiting != 0 {
			t.Errorf("lane %d: %+v", i, a)
		}
	}
}

// TestLargeGetTheirTurn: small ones that come all the time don't pass one that waits.
func TestLargeGetTheirTurn(t *testing.T) {
	t.Parallel()
	code := object.SharedCoding()
	m := newMemory(64<<20, 1000, code, 1<<20)
	all := m.lease(code, 1<<20, 28)
	if !m.try(all) || all.held != m.most {
		t.Fatalf("%d of %d", all.held, m.most)
	}
	got := make(chan *lease)
	go func() { l, _ := m.take(t.Context(), code, 1<<20, 28); got <- l }()
	m.inQueue(1)
	all.give() // at once the other's
	l := <-got
	if l == nil || l.lane != 0 {
		t.Fatal(l)
	}
	for range 10 {
		if s := m.lease(code, 1<<10, 1); !m.try(s) || s.lane == 0 {
			t.Fatal("a small one")
		}
	}
	l.give()
}

// TestLanesHoldWhatTheyMay: whatever is taken, left and given up, no lane holds more than
// it may, none waits while the lane that is for it is free, and nothing is lost.
func TestLanesHoldWhatTheyMay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		code := object.SharedCoding()
		m := newMemory(64<<20, 1000, code, 1<<20)
		type asked struct {
			l      *lease
			cancel context.CancelFunc
			got    chan *lease
		}
		var held []*lease
		var waits []asked
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			switch rapid.IntRange(0, 3).Draw(r, "what") {
			case 0, 1:
				l := m.lease(code, rapid.Int64Range(1, 1<<20).Draw(r, "bytes"), rapid.Int64Range(1, 20).Draw(r, "segments"))
				if m.try(l) {
					held = append(held, l)
					continue
				}
				ctx, cancel := context.WithCancel(context.Background())
				a := asked{l, cancel, make(chan *lease, 1)}
				m.mu.Lock()
				before := m.queue.Len()
				m.mu.Unlock()
				go func() { got, _ := m.wait(ctx, l); a.got <- got }()
				m.inQueue(before + 1)
				waits = append(waits, a)
			case 2:
				if len(held) > 0 {
					i := rapid.IntRange(0, len(held)-1).Draw(r, "which")
					held[i].give()
					held = append(held[:i], held[i+1:]...)
				}
			case 3:
				if len(waits) > 0 {
					i := rapid.IntRange(0, len(waits)-1).Draw(r, "which")
					waits[i].cancel()
					if l := <-waits[i].got; l != nil {
						held = append(held, l)
					}
					waits = append(waits[:i], waits[i+1:]...)
				}
			}
			m.mu.Lock()
			first := m.queue.Front()
			for i, a := range m.lanes {
				if a.used < 0 || a.used > a.most {
					r.Errorf("lane %d: %+v", i, a)
				}
				if first == nil {
					continue
				}
				if w, ok := first.Value.(*waiter); ok && w.l.held <= a.fits && w.l.held <= a.most-a.used {
					r.Errorf("the first waits for lane %d: %+v", i, a)
				}
			}
			m.mu.Unlock()
		}
		for _, a := range waits {
			a.cancel()
			held = append(held, <-a.got)
		}
		for _, l := range held {
			l.give()
		}
		for i, a := range m.lanes {
			if a.used != 0 || a.waiting != 0 {
				r.Errorf("in the end, lane %d: %+v", i, a)
			}
		}
	})
}
