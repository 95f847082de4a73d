// Package chunks says what the coder asks of a store of blobs (DESIGN §4.4) and holds
// the store that keeps them in memory. Others are packages below it; all pass the suite
// of chunks/chunkstest.
//
// A blob is bytes under a key. The coder gives each blob a key of its own and never
// writes it twice with other bytes, so that nothing here needs versions or locks: what
// a store must do is to never show a part of a blob, and to keep one that it has
// acknowledged.
//
// States: a store is open until its Close, where it has one. Failures: the sentinels of
// this package, the context's error when ctx ended, and what the medium says.
package chunks
