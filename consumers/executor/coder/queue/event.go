package queue

// EventKind is what happened in a core.
type EventKind uint8

// The kinds.
const (
	// Admitted: the request was given a code and taken apart.
	Admitted EventKind = iota + 1
	// Hedging: some of the request's tasks are held back, and all others have been
	// started now. Core.Extend is to be called after its code's Hedge.
	Hedging
	// Finished: the request's end is decided, see Request.Err.
	Finished
	// Cancelled: the running task is to end; Core.Done is due once it has.
	Cancelled
	// Ended: nothing of the request is queued or running any more.
	Ended
)

// String names it.
func (k EventKind) String() string {
	return [...]string{"", "admitted", "hedging", "finished", "cancelled", "ended"}[k]
}

// Event is what came of a call of the core.
type Event struct {
	Kind    EventKind
	Request *Request
	Task    *Task // of Cancelled
}

// Event takes the next event of the calls before, in the order in which they came about;
// false if there is none. Calls of the core may be made between two of them.
func (c *Core) Event() (Event, bool) {
	if c.seen == len(c.events) {
		return Event{}, false
	}
	e := c.events[c.seen]
	c.events[c.seen] = Event{}
	if c.seen++; c.seen == len(c.events) {
		c.events, c.seen = c.events[:0], 0
	}
	return e, true
}

func (c *Core) tell(k EventKind, r *Request, t *Task) {
	c.events = append(c.events, Event{k, r, t})
}
