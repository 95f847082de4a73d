// Package writes keeps what a replay writes: the writes of a window are buffered
// as numbers, and at its end each becomes a record of its size in the store of
// the site that serves its owner (DESIGN §5; objectstore.Records).
//
// # Numbers
//
// An owner's records are numbered 1, 2, 3 … as its writes pass; a write of more
// than [MaxRecord] bytes is several records. The bytes of a record follow from
// owner, number and size ([Fill]), so that what was written can be told from
// two integers an owner: how many records, and a chain over their sizes. That is
// what [Ledger.Verify] compares the stores with at the end.
//
// # Again after a crash
//
// The same replay numbers the same writes alike. A window up to the marker
// (written.json in the state folder) is only counted, for its data may have
// moved on. The window after it may be there in part: records that are there
// are skipped by the store, by their numbers.
//
// # Failures
//
// Errors of the stores end the window; nothing is lost, since the same command
// takes it up again. [ErrUnreachable] says that a copy has gone where no store
// is. What Verify finds is in its report, not an error.
package writes
