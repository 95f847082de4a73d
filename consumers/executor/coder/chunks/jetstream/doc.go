// Package jetstream keeps blobs in a stream of NATS JetStream: on the bus that Penstock
// runs on, or on another one. The stream CHUNKS_NAME of a store NAME holds
//
//	$CHUNKS.NAME.b.<key>    the entry of a blob; the key's slashes are dots, its dots ~
//	$CHUNKS.NAME.c.<id>     the pieces of a large blob's content
//
// An entry is one message, so that a blob is there with it, and whole. It holds the
// content of a blob that fits one piece, and of larger ones the sequences of the pieces,
// which were stored before: a range reads the pieces that have it and no others. An
// entry takes the place of the one before it (rollup) if that is the one that was
// expected, so that of writers at once each knows whose pieces it has to purge.
//
// A listing reads the headers of all entries below the whole parts of its prefix, since
// a stream has no order of subjects. The pages after its first are served from what that
// one saw, for a minute and 100,000 blobs: what was put since then is not in them.
//
// States: open until Close, which waits for what is being tidied up; the connection is
// the caller's. With several replicas the leader answers, so that what a write was
// acknowledged for is read by everybody.
//
// Failures: those of package chunks, ErrBucket, ErrTooLarge, ErrPieces, and what the
// server says. Pieces of a Put that failed are purged, but not where its entry was sent
// and nobody knows whether it was stored; those, and what the dead leave, stay until
// Tidy (counted as "pieces-left").
package jetstream
