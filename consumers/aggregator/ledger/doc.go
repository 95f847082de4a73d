// Package ledger keeps the books of one group of rollups on one partition: which
// batches of which runs have been seen, how far the watermark is, and in which
// account every row ended (DESIGN §3, §3.2). It is pure: what it does follows
// from the messages it is given, in their order, and from nothing else.
//
// A run (one life of a publisher) numbers its batches 1, 2, 3 … per partition.
// A sequence is in one of these states:
//
//	unknown ──batch──▶ received
//	   │                  ▲ (its rows are classed one by one)
//	   └─a later batch, a mark─▶ missing ──batch───────────────┘
//	                               │
//	                               └─dropped, timed out, trimmed, bounds─▶ lost ──batch──▶ found
//	                                                                               (all rows late)
//
// A batch that is received, or was found, is a duplicate when it comes again.
// The watermark of a run is the header of its highest contiguous sequence (lost
// ones count as there), or a mark's once all sequences it names are there; that
// of the partition is the least over live runs. A run that was silent for the
// idle timeout of stream time holds nothing open; where no run holds anything
// open, the greatest watermark of any run holds.
//
// Time passes with the messages: stream time advances with the server's
// timestamps by at most one second from one message to the next and never goes
// back. What a message brings is judged by the watermark as it stood before it;
// gaps and idle runs are looked at after it, so that the message that fills a
// gap at the last moment fills it.
//
// Batches above a gap are taken when they arrive and stand in the commit as
// ranges above the contiguous sequence, so that a successor that starts from a
// commit neither misses nor repeats one. All state that the future depends on
// is in the commit ([Ledger.Commit], [Restore]).
//
// Bounds: at most 1,024 sequences, 64 ranges and 64 gaps above the contiguous
// sequence of a run. Beyond them the oldest gap is given up as lost: waiting
// would not help, since only reading on can bring what is missing.
package ledger
