package publisher

import (
	"time"

	"penstock/infra/bus"
	"penstock/schemas/event"
)

// entry is a batch or mark on its way. Its number orders all of them as they
// were cut.
type entry struct {
	number uint64

	// A batch has these; they are 0 for a mark.
	partition int
	seq       uint64
	rows      int
	from, to  int64 // least and greatest time of its rows, µs
	raw       *event.Requests
	gauges    *event.Gauges // in raw's place
	header    *event.Header // nil once it is in the spool and announces nothing

	// A mark has this. Its message is made when it is sent.
	mark *event.Mark

	msg   bus.Msg // of a batch; Data is nil while the body is on disk only
	size  int     // of the body
	place *place  // in the spool, nil if it isn't there
	// old is the end mark of the earlier run that a spooled batch belongs to.
	old *event.Mark

	// fence entries are sent when everything before them is done, and nothing
	// after them is sent until they are.
	fence bool
	// loose entries hold nothing up and are not sent again.
	loose bool
	// first entries are sent before all others. There is one at a time, its number
	// is 0.
	first bool
	// alone entries let nothing be sent until they are answered.
	alone bool

	done       bool
	inFlight   bool
	sent       time.Time
	generation uint64 // of the connection that it was sent on
	err        error
	finished   chan struct{} // closed when done, for those who wait; may be nil
	onDone     func(error)   // called without locks held; may be nil
}

// cost is what the batch takes in memory before it is encoded, estimated.
func (e *entry) cost() int64 {
	switch {
	case e.raw != nil:
		return batchCost + int64(e.raw.Size())
	case e.gauges != nil:
		return batchCost + int64(e.gauges.Len())*gaugeCost
	}
	return batchCost
}

// gaugeCost is what a gauge takes in its batch's columns.
const gaugeCost = 7*8 + 2*4

// readyHeap holds entries that can be sent, the oldest first.
type readyHeap []*entry

func (h readyHeap) Len() int           { return len(h) }
func (h readyHeap) Less(i, j int) bool { return h[i].number < h[j].number }
func (h readyHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *readyHeap) Push(x any)        { *h = append(*h, x.(*entry)) }
func (h *readyHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
