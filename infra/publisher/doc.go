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
// A batch may be sent more than once, never under another sequence: aggregators
// count the repeats as duplicates.
package publisher
