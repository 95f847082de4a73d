package live

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"penstock/infra/clock"
	"penstock/infra/processor"
)

// Machine is what the machine did at a load.
type Machine struct {
	Percent int `json:"percent"` // the load
	// Ours and All are the shares of the processors that this process and all took; below
	// 0: the system does not say.
	Ours float64 `json:"ours"`
	All  float64 `json:"all"`
	// Late is by how much somebody who slept for 5 ms woke up late, on average, ms.
	Late float64 `json:"late_ms"`
}

// nap is how long the meter sleeps.
const nap = 5 * time.Millisecond

// meter measures a load.
type meter struct {
	clock     clock.Clock
	at        time.Time
	ours, all time.Duration
	known     bool
	cancel    context.CancelFunc
	late      chan time.Duration
}

// measure begins.
func measure(ctx context.Context, c clock.Clock) *meter {
	m := &meter{clock: c, at: c.Now(), late: make(chan time.Duration, 1)}
	m.ours, m.all, m.known = used()
	ctx, m.cancel = context.WithCancel(ctx)
	go func() {
		var sum, n time.Duration
		for {
			before := c.Now()
			if c.Sleep(ctx, nap) != nil {
				m.late <- sum / max(n, 1)
				return
			}
			sum += c.Now().Sub(before) - nap
			n++
		}
	}()
	return m
}

func used() (ours, all time.Duration, known bool) {
	ours, err := processor.Own(os.Getpid())
	all, err2 := processor.Machine()
	return ours, all, errors.Join(err, err2) == nil
}

// end says what was measured.
func (m *meter) end(percent int) Machine {
	m.cancel()
	out := Machine{Percent: percent, Ours: -1, All: -1, Late: ms(<-m.late)}
	ours, all, known := used()
	if span := m.clock.Now().Sub(m.at).Seconds() * float64(runtime.NumCPU()); known && m.known && span > 0 {
		out.Ours, out.All = (ours-m.ours).Seconds()/span, (all-m.all).Seconds()/span
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
