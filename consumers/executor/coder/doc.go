// Package coder is the engine of `penstock coder` (DESIGN §4.4): objects in buckets,
// cut into segments, coded (object), put into stores as chunks (chunks) by tasks over a
// bounded number of connections (queue), with the code that the backlog asks for
// (codes), under a catalog that one transaction changes (catalog). An S3 front stands
// above it (s3front).
//
// Layouts. shared: one store, any (n,k) by ranges of two blobs, data and parity. A
// write of one segment with k > 1 is staged in n chunk blobs first, and settled into
// the two in the background. spread: n blobs in n stores, of which any k rebuild.
//
// Order of a write: an intent in the journal, on disk → blobs → when as many have
// landed as durability asks for, one transaction makes the version visible, queues the
// blobs of the one it replaces for deletion, and turns the intent into what is left to
// do → the answer. Background work then lands the rest, repairs what failed, settles
// what is staged, and deletes. A crash leaves an intent without a version, whose blobs
// are deleted, or a version with work left, which goes on.
//
// Memory. A request is one segment (at most 8 MiB). A body is read into the encoder
// before its segment enters the queue, so that a slow client holds no connection, and
// reads look one segment ahead. Encoders and decoders come from pools; no more of them
// are in use than Options.Memory has room for.
//
// States: Open, then Run until its context ends, beside calls by any number of
// goroutines; Close after that. Failures: the sentinels in errors.go. A store that fails
// is asked last and probed; damage is read around, counted and repaired.
package coder
