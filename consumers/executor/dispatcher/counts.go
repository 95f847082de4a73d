package dispatcher

import (
	"errors"
	"time"
)

// Counts are numbers of requests since the start.
type Counts struct {
	// Arrived asked for a place. Each of them was Started, refused (Full, NoServer), has
	// Left while it waited, or waits.
	Arrived, Started, Full, NoServer, Left uint64
	// Moved counts how often one that waited was placed anew.
	Moved uint64
	// Of those started: Answered by the server, Failed, or Gone: broken off on this side.
	Answered, Failed, Gone uint64
	// Late were answered, or failed, after their limit; Penalty is what that cost.
	Late    uint64
	Penalty float64
	// Waited is what those that were started waited, all together.
	Waited time.Duration
}

// comparison is what was estimated of the requests that a server answered, and what they
// took there.
type comparison struct {
	answers         uint64
	estimated, took time.Duration
}

// compare notes what a request took beside what was estimated. The caller holds mu.
func (s *Site) compare(t *Ticket, r Result) {
	if !r.OK || r.Service <= 0 {
		return
	}
	c := s.compared[t.server]
	if c == nil {
		c = new(comparison)
		s.compared[t.server] = c
	}
	c.answers++
	c.estimated += seconds(t.estimate)
	c.took += r.Service
}

// refuse counts a request that got no place.
func (c *Counts) refuse(err error) {
	if errors.Is(err, ErrFull) {
		c.Full++
		return
	}
	c.NoServer++
}

// end counts a request that its server has answered, or failed to. It was there when the
// server was done, not when its client had taken all.
func (c *Counts) end(class *Class, t *Ticket, r Result, now int64) {
	if r.OK {
		c.Answered++
	} else {
		c.Failed++
	}
	if r.Service > 0 {
		now = min(now, t.started+int64(r.Service))
	}
	if late := time.Duration(now-t.entered) - class.Limit; class.Limit > 0 && late > 0 {
		c.Late++
		c.Penalty += class.Penalty * late.Seconds()
	}
}
