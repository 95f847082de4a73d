package queue

// Counts is how often something happened since the start.
type Counts struct {
	Arrived  uint64 // requests that entered a line
	Refused  uint64 // requests that found it full
	Admitted uint64 // requests
	Finished uint64 // requests with enough tasks
	Broken   uint64 // requests that failed or were abandoned
	Hedged   uint64 // requests whose hedge was over before they were finished
	Replaced uint64 // tasks that More gave

	Done      uint64 // tasks that succeeded
	Failed    uint64 // tasks that failed of themselves
	Cancelled uint64 // tasks that ended because they were told to
	Dropped   uint64 // tasks that were never started
}

// State is how a queue stands.
type State struct {
	Counts
	Backlog           int // requests that wait, without background
	Queued            int // tasks that wait for a connection, without background
	InUse             int // connections, with background
	BackgroundBacklog int // requests of class background that wait
	BackgroundQueued  int // their tasks that wait
	BackgroundInUse   int // connections that they use
	Alive             int // requests admitted of which something is queued or running
}

// State is how the queue stands now.
func (c *Core) State() State {
	return State{
		Counts: c.counts, Backlog: c.waiting[front].n, Queued: c.queued[front].n,
		InUse:             c.inUse[front] + c.inUse[behind],
		BackgroundBacklog: c.waiting[behind].n, BackgroundQueued: c.queued[behind].n, BackgroundInUse: c.inUse[behind],
		Alive: c.alive.n,
	}
}
