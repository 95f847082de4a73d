// Package publisher turns requests into batches on EVENTS: it partitions them,
// cuts batches, numbers them per run and partition, encodes and sends them, and
// answers for every row (DESIGN §3, batches and marks).
//
//	Publish ┐  per partition          packer            pump
//	Send    ┴▶ open batch ──cut──▶ [raw] ──encode──▶ [ready] ──send──▶ [in flight] ──ack──▶ done
//	                                        │  live: append to the spool     │ error, timeout, cut
//	                                        ▼                                └──▶ [ready] again
//	                                     dropped: counted by reason, announced with Penstock-Dropped
//
// A replay calls Send, which waits while the bus is behind and never drops. Its
// batches are cut by rows, size, event time and barriers alone, so that the
// same input gives the same batch under the same sequence each time; what an
// earlier attempt has had acknowledged (Options.Acked) is cut and counted, but
// neither encoded nor sent.
//
// A live entry point calls Publish, which never waits. A cut batch is appended
// to the spool before it is first sent and forgotten once it is acknowledged.
// While the bus is away the spool grows to its bound; beyond it batches are
// dropped. The next start sends what the spool still holds, byte for byte, ends
// that run and opens a new one. What isn't cut yet (MaxAge) is lost by a kill.
//
// An input that can be read again from a position (the lines of a log) calls Send
// and Commit (Options.Positions). What is sent between two calls of Commit is a
// group: its batches of all partitions and the position behind them are in the
// spool as a whole or not at all, and only then the batches are sent.
//
//	Send ──▶ batches ──encode──▶ group ──Commit──▶ spool, synced ──▶ [ready] ──▶ …
//	                               │ killed before it is there as a whole
//	                               ▼
//	                    never sent; read again from Position, under the new run
//
// Whole groups of a killed run are sent under their old run and sequences. So a
// row is in one batch of one run, whatever the point of a kill, and no row is
// missing. The same holds after a power cut on a disk that keeps what it has
// synced; with NoSync, or should the spool's folder be lost or damaged, the
// position goes back, and rows are published again under another run. Nothing is
// dropped for want of room: Commit waits. Watermarks are what Horizon was told
// before the Commit, heartbeats repeat them.
//
// The watermark of a live run is the clock less Disorder, and never further than
// the bus is known to have answered. While the bus is away (no connection, or no
// answer for 2 s) and until it has answered for 8 s, it stands still, at a time
// before the outage: an aggregator waits for the rows of runs that it knows and has
// heard in the last 3 s, and others may take longer to come back, or have begun
// meanwhile. Where the 8 s are cut short, what they lasted counts by half the next
// time, so that on a bus that comes and goes windows close late, but close. A bus
// that was silent and then answers over the same connection is slow: for a minute it
// may be silent for twice as long, up to 12 s. A run that begins while the bus is away claims nothing about
// time until then. With positions the watermark stands still in the same way. A run
// that waits behind an earlier one of its spool says that it is there, so that the
// end of that one doesn't let windows pass.
//
// The state of queues goes out beside the requests of a live run ([Publisher.Gauge]),
// in batches of their own under the same numbering.
//
// A batch may be sent more than once, never under another sequence: aggregators
// count the repeats as duplicates.
package publisher
