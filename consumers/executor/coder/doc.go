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
// With another coding in the configuration, versions of the one before are read as they
// are, count as not in their intended coding, and are coded anew in the background: the
// old blobs go when all the new ones have landed. Blobs in a store that is not configured
// any more lack, and are written into another one; what was to be deleted there is given
// up, counted and logged.
//
// Intents are begun ahead, many in one transaction, so that a write waits for one only.
// Every change of the catalog is shipped to the stores (catalog/shipping), and blobs are
// deleted only when the change that let go of them is there: a catalog that is rebuilt
// from the stores never names what is gone.
//
// A store that is asked over a network may carry out a request to write a blob after one to
// delete it, if the first was broken off: chunks of a write that has enough are, all the
// time. Blobs whose writing has ended so, or may have in a process that died, are deleted
// once more when they can't come any more (chunks.Late); until then the journal has them.
//
// Reads. Each strip is checked before it counts; a chunk that is damaged or fails is
// replaced at once by another. What is handed out has passed its strip's checksum, and a
// version that is read whole also its SHA-256, before its last segment is handed out: an
// object of one segment is proven before its first byte. Stores are ordered by how long
// tasks of their size take; one that fails again and again is asked last, and looked at
// until it answers. A reader keeps the version that it began with.
//
// A store that answers without its owner marker, though the catalog says that blobs are in
// it, is absent: what shows in its place, the folder under a disk that isn't mounted, is
// neither read nor written until the marker is back or TakeIn says that it is a new one.
//
// Memory. A request is one segment (at most 8 MiB). A body is read into the encoder
// before its segment enters the queue, so that a slow client holds no connection, and
// reads and writes look one segment ahead if there is memory for it. Encoders and
// decoders come from pools; no more of them are in use than Options.Memory has room for.
// Tasks reach that memory through windows, which are shut when it is needed elsewhere: a
// task that was cancelled and still runs can neither read nor write it any more.
//
// States: Open, then Run until its context ends, beside calls by any number of
// goroutines; Close after that. Failures: the sentinels in errors.go. A store that fails
// is asked last and probed; damage is read around, counted and repaired.
package coder
