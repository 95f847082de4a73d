// Package jetstream keeps people's data in NATS JetStream: on the bus that
// Penstock runs on, or on another one.
//
// A store is two buckets of one name. The key-value bucket NAME holds a document
// an owner (package manifest), under the owner's id encoded as everywhere on the
// bus; it changes by compare-and-set on the key's last sequence. The object
// bucket NAME holds the contents:
//
//	$KV.NAME.<owner>            the document: mark, objects, lease
//	$O.NAME.C.<owner>.<blob>    the chunks of a blob, the last one says so
//	$O.NAME.M.<name>            an object that somebody put there without Penstock
//
// Blobs are chunks of the bucket without an entry among its names: they never
// change and are found by their subject, owner by owner, which the bucket's own
// listing can't do; and the races of its two-step writes (chunks, then the entry)
// don't touch them. Objects that were put into the bucket by its own means and
// are called <owner>/<name>, with the owner encoded, are adopted when their owner
// is first written to. All else in the bucket is foreign and left alone.
//
// # Reads
//
// With several replicas the buckets allow no direct reads: the leader answers, so
// that what a write was acknowledged for is read by everybody. Writes would be
// safe all the same, by their compare-and-set.
//
// # Failures
//
// A lost connection ends an operation in an error after which nobody knows
// whether it happened; package manifest asks. A document is one message, so an
// owner has at most as many objects as its server's max_payload has room for:
// about 15,000 with names of 20 bytes and 1 MiB (manifest.ErrTooLarge).
package jetstream
