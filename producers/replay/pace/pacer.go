package pace

import (
	"fmt"
	"math"
	"time"

	"penstock/schemas/window"
)

// Pacer keeps the schedule of one run. The zero value, with a Speed, is ready.
type Pacer struct {
	Speed Speed

	started bool
	first   int64 // µs
	counts  []int64
	n       int64
	max     time.Duration
}

// Lag is how late rows were sent, measured from their scheduled instants.
type Lag struct {
	Rows int64 // that were scheduled
	Max  time.Duration
	P99  time.Duration
}

// Due returns when after the start a row of event time t (µs) is due. The
// first call fixes the event time of the start.
func (p *Pacer) Due(t int64) time.Duration {
	if !p.started {
		p.started, p.first = true, t
	}
	if p.Speed == Max {
		return 0
	}
	// Float64 holds the µs of 285 years; a schedule beyond what a Duration holds
	// is never reached.
	return time.Duration(min(float64(t-p.first)/float64(p.Speed)*1000, math.MaxInt64/2))
}

// Pace returns how long to wait, at a time after the start, until a row that is
// due may be sent: 0 if it may be at once.
func (p *Pacer) Pace(elapsed, due time.Duration) time.Duration {
	if p.Speed == Max {
		return 0
	}
	return max(due-elapsed, 0)
}

// Sent notes that a row that was due is sent at a time after the start.
func (p *Pacer) Sent(elapsed, due time.Duration) {
	if p.Speed == Max {
		return
	}
	if p.counts == nil {
		p.counts = make([]int64, window.NumBins)
	}
	lag := max(elapsed-due, 0)
	p.max = max(p.max, lag)
	p.counts[window.Bin(lag.Microseconds())]++
	p.n++
}

// Lag returns what Sent has noted. The 99th percentile is the upper bound of a
// bin, less than 0.8 % above the true one.
func (p *Pacer) Lag() Lag {
	l := Lag{Rows: p.n, Max: p.max}
	rank := p.n - p.n/100 // the least rank that is not below 99 %
	for bin, c := range p.counts {
		if rank -= c; rank <= 0 && p.n > 0 {
			_, most := window.BinBounds(uint16(bin))
			l.P99 = min(time.Duration(most)*time.Microsecond, p.max)
			break
		}
	}
	return l
}

// Check returns an error that wraps ErrLag if a row was sent more than limit
// after its scheduled instant. Without a limit (0) there is none.
func (p *Pacer) Check(limit time.Duration) error {
	if limit <= 0 || p.max <= limit {
		return nil
	}
	l := p.Lag()
	return fmt.Errorf("%w: at %s rows were sent up to %v after their instant (99 %% within %v), the limit is %v",
		ErrLag, p.Speed, l.Max, l.P99, limit)
}
