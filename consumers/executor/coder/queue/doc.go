// Package queue is the coder's queue (DESIGN §4.4, PAPERS §3.4): requests in, chunk tasks
// out, over L connections.
//
//	           head of line, when a connection is idle
//	           and no task is queued: (n,k) is chosen
//	requests ──────────────▶ n tasks ──────────▶ L connections ──▶ stores
//	  FIFO, bounded           FIFO                  │
//	                            ▲                   ├─ k-th success: done; queued ones are dropped,
//	                            └── another task ◀──┤  running ones end, see Rest
//	                                                └─ failure: More
//
// [Core] is the rule, without time, goroutines and locks, so that a simulation drives
// the very same one; [Queue] is a core with connections.
//
// # A request
//
// It waits; when it is admitted the [Chooser] gives it a [Code] and its Plan makes tasks
// of it, of which Need must succeed. Then it is finished: the others are told to end, or
// go on where Rest is Finish. It has ended when no task of it is queued or running; a
// connection is idle again only when the function of its task has returned, told to end
// or not. With a Hedge the Need are begun first; its time counts from when all of them have
// a connection, for it is a quantile of what tasks take, and more tasks help nobody who
// waits for a connection. The others are queued when it is over.
// A task that fails is replaced at once, by one held back for a hedge, or by one that
// More gives: it goes before all tasks that wait, since its request is older.
//
// Requests of class background (repairs, writes into the intended coding) are begun only
// when a connection is idle, nothing else waits, and fewer than Options.Background of
// their tasks run. They are not in the backlog, and take no code from the chooser. Under a
// backlog that never ends they have one task at a time, after every Options.Patience of
// the clients': they go on slowly, and what they are to do comes to an end.
//
// # States and failures
//
// A queue accepts requests from New on, works while Run runs, drains for Options.Grace
// when Run's context ends, and is closed then. A full line refuses with ErrFull, a closed
// one with ErrClosed; a request of which too few tasks are left ends with ErrTooFew.
// Whoever's context ends leaves the line, or takes its tasks out. Functions of tasks that
// ignore their context hold their connection, and Run, until they return.
//
// What is dropped, refused or cancelled is counted, see Counts.
package queue
