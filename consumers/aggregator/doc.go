// Package aggregator turns the events of a partition into panes: the shell
// around the pure packages ledger (what has been seen) and rollup (what it adds
// up to). DESIGN §3.2.
//
// One goroutine per (group, partition):
//
//	wait ──advice says mine──▶ claim ──committed──▶ read, add up, flush … ──▶ wait
//	                             │                       │
//	                             └──── conflict ─────────┴─ fenced: state dropped
//
// The subject windows.<group>.<partition> is both output and checkpoint: a flush
// is a set of panes and the commit behind them, stored all or none under the
// sequence of the last commit: one message if it is small, else an atomic batch. A claim is a commit without panes. Whoever starts
// reads the last commit from the leader and goes on from the message after the
// covered one; there is no other state. So a crash loses nothing and repeats
// nothing, and of two who claim one partition only one can write: the other is
// fenced, drops what it has, waits for the advice and starts from the last
// commit. The advice (who should claim what) only saves work.
//
// A flush whose answer is lost is sent again as it is. A refusal (10071) is then
// looked into: if the last commit is this very flush, it was stored after all.
//
// Aggregation goes on while a flush is in flight; one is in flight at a time. Of live
// traffic one begins as soon as the watermark has passed the end of a window, however
// short the windows are, but not within a quarter of a second of the last; of a replay
// at a barrier.
// What cannot be used goes to REJECTS and into the account as malformed (a
// retired run's as quarantined); the number of rows is what the header says, or
// one for a message without a readable number. Of the groups only the first one
// of window.Groups sends to REJECTS.
//
// Failures: Run returns nil when its context ends, and an error only where going
// on would be wrong: ErrBeyond of the bus (EVENTS is not the stream that was
// read before), a commit that cannot be read, a flush too large to be sent.
package aggregator
