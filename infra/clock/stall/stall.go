// Package stall measures for how long the machine stands still, for tests and
// demonstrations that hold something to a limit in wall time: what a machine that is
// busy, or frozen, takes beyond that is not of what is tested.
//
// A [Meter] sleeps a few milliseconds at a time and notes by how much it oversleeps. It
// ends with its context.
package stall

import (
	"context"
	"sync"
	"time"

	"penstock/infra/clock"
)

// nap is how long a meter sleeps at a time; it oversleeps by less than slack on a machine
// with a processor to spare.
const (
	nap   = 5 * time.Millisecond
	slack = 2 * time.Millisecond
)

// Meter measures from its start on. It is safe for concurrent use.
type Meter struct {
	mu      sync.Mutex
	last    time.Time // when it woke up
	total   time.Duration
	longest time.Duration
	done    chan struct{}
}

// Start returns a meter that measures until ctx ends.
func Start(ctx context.Context) *Meter {
	m := &Meter{last: clock.System().Now(), done: make(chan struct{})}
	go m.run(ctx)
	return m
}

func (m *Meter) run(ctx context.Context) {
	defer close(m.done)
	for clock.System().Sleep(ctx, nap) == nil {
		m.note(true)
	}
}

// note takes in what has passed since the meter last woke up.
func (m *Meter) note(woke bool) (total, longest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := clock.System().Now()
	over := max(0, now.Sub(m.last)-nap-slack)
	total, longest = m.total+over, max(m.longest, over)
	if woke {
		m.last, m.total, m.longest = now, total, longest
	}
	return total, longest
}

// Total is for how long the machine has stood still so far, all stalls together.
func (m *Meter) Total() time.Duration {
	total, _ := m.note(false)
	return total
}

// Longest is the longest stall so far.
func (m *Meter) Longest() time.Duration {
	_, longest := m.note(false)
	return longest
}

// Wait returns when the meter has ended, which it does with its context.
func (m *Meter) Wait() { <-m.done }
