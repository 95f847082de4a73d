package coder

import "penstock/consumers/executor/coder/queue"

// Queue is how the queue stands now. It looks at nothing else, unlike Stats.
func (c *Coder) Queue() queue.State { return c.queue.State() }
