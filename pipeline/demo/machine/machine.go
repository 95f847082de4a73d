// Package machine tells whether the machine was what limited a run: what was taken of its
// processors, and by how much sleepers woke up late.
//
// States: a Meter measures from [Start] until its End, which is to be called once. It
// does not fail: where the system does not show processor times, shares are below 0.
package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"penstock/infra/clock"
	"penstock/infra/processor"
)

// Usage is what was measured.
type Usage struct {
	When    string  `json:"when"`
	Seconds float64 `json:"seconds"`
	// Ours and All are the shares of the processors that the run and all processes took;
	// below 0: the system does not say.
	Ours float64 `json:"ours"`
	All  float64 `json:"all"`
	// Late is by how much somebody who slept for 5 ms woke up late, on average, ms.
	Late float64 `json:"late_ms"`
}

// String says it in words.
func (u *Usage) String() string {
	return fmt.Sprintf("%s: who slept for %v woke up %.1f ms late on average; all processes took %s of the processors, this run %s", u.When, nap, u.Late, Share(u.All), Share(u.Ours))
}

// Share is a part of the processors in words.
func Share(v float64) string {
	if v < 0 {
		return "not known"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

// nap is how long the meter sleeps.
const nap = 5 * time.Millisecond

// Meter measures.
type Meter struct {
	clock     clock.Clock
	children  func() (time.Duration, error)
	at        time.Time
	ours, all time.Duration
	known     bool
	cancel    context.CancelFunc
	late      chan time.Duration
}

// Start begins. children, if any, is what processes of the run besides this one have used
// so far.
func Start(ctx context.Context, c clock.Clock, children func() (time.Duration, error)) *Meter {
	m := &Meter{clock: c, children: children, at: c.Now(), late: make(chan time.Duration, 1)}
	m.ours, m.all, m.known = m.used()
	ctx, m.cancel = context.WithCancel(ctx)
	go m.nap(ctx)
	return m
}

// nap sleeps again and again until the context ends.
func (m *Meter) nap(ctx context.Context) {
	var sum, n time.Duration
	for {
		before := m.clock.Now()
		if m.clock.Sleep(ctx, nap) != nil {
			m.late <- sum / max(n, 1)
			return
		}
		sum += m.clock.Now().Sub(before) - nap
		n++
	}
}

func (m *Meter) used() (ours, all time.Duration, known bool) {
	ours, err := processor.Own(os.Getpid())
	if m.children != nil {
		more, err2 := m.children()
		ours, err = ours+more, errors.Join(err, err2)
	}
	all, err2 := processor.Machine()
	return ours, all, errors.Join(err, err2) == nil
}

// End says what was measured.
func (m *Meter) End(when string) Usage {
	m.cancel()
	out := Usage{When: when, Seconds: m.clock.Now().Sub(m.at).Seconds(), Ours: -1, All: -1, Late: float64(<-m.late) / float64(time.Millisecond)}
	ours, all, known := m.used()
	if span := out.Seconds * float64(runtime.NumCPU()); known && m.known && span > 0 {
		out.Ours, out.All = (ours-m.ours).Seconds()/span, (all-m.all).Seconds()/span
	}
	return out
}
