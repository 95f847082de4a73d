package executor

import (
	"context"

	"penstock/schemas/control"
)

// Target carries commands of one kind out. Apply and Decline are called from
// several goroutines at once, for different commands or for the same one.
type Target interface {
	// Kind is the kind of its commands.
	Kind() control.Kind
	// Resume finishes, and answers, what a process before this one had begun. It
	// is called once, before anything else.
	Resume(ctx context.Context, answer Answer) error
	// Apply carries a command out and answers every part of it, once: each move,
	// or the table. It returns after the last answer. What it has answered before
	// it answers AlreadyApplied. On an error the command will be delivered again.
	Apply(ctx context.Context, c *control.Command, answer Answer) error
	// Decline answers every part of a command that is not to be carried out, with
	// the status Advised or Expired, except those parts that are begun or
	// answered already.
	Decline(ctx context.Context, c *control.Command, status control.Status, answer Answer) error
}

// Answer publishes an outcome and returns once the bus has acknowledged it. It
// waits troubles of the bus out and fails only when ctx ends. The executor fills
// in version, kind, by and at. AlreadyApplied for a move is only counted.
type Answer func(ctx context.Context, o control.Outcome) error

// Counter is what an executor counts, each with a reason.
type Counter string

// The counters.
const (
	Outcomes       Counter = "outcomes"        // published, by status
	AlreadyApplied Counter = "already_applied" // asked for again, by who knew: journal, bus
	Redelivered    Counter = "redelivered"     // commands that came again
	Rejected       Counter = "rejected"        // commands that can't be used, by reason
	Retried        Counter = "retried"         // what was tried again, by reason
	Returned       Counter = "returned"        // commands given back with a delay, by reason
	Stalled        Counter = "stalled"         // pending and not delivered, by what was done
	Bytes          Counter = "bytes"           // copied between stores
	Deletes        Counter = "deletes"         // of retired copies: deleted, kept by reason
)

// Metrics gets the counts. It is called from several goroutines.
type Metrics interface {
	Count(c Counter, reason string, n int64)
}

// NoMetrics counts nothing.
type NoMetrics struct{}

// Count does nothing.
func (NoMetrics) Count(Counter, string, int64) {}
