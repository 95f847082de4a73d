// Package catalog is what a coder knows (DESIGN §4.4): buckets, the records of their
// keys, the documents of object versions, uploads and their parts, and the journal of
// what is still to do with blobs. It is one file, a bbolt database, in the coder's state
// folder; nothing here touches a store of blobs. Package catalog/shipping carries the
// changes to the stores, so that a lost machine is not a lost catalog.
//
// # The life of a blob
//
// A blob's place is in the catalog before the blob is in its store, and stays until the
// blob is gone, so that no crash leaves one behind that nobody knows:
//
//	Begin      an intent names the places that will be written
//	  … the coder writes the blobs …
//	Put        the version is visible, the intent is gone, and what the key held
//	           before is queued for deletion: one transaction
//	Settle     a version's document is replaced (settled or repaired); places that the
//	           new one lacks are queued for deletion
//	Abandon    the write failed: the intent's places are queued for deletion
//	Deletes    what is queued and held by no reader; Deleted takes it out
//	Again      … and what may yet come after its deletion, since the end of its writing
//	           isn't known, stays until it was deleted once more: Repeats, Repeated
//
// A place is in one intent, or in one version, or in the queue for deletion, or among those
// to delete once more, and never in two of them: Begin refuses a place that is in one of the
// latter two (ErrPlace). So blobs need fresh
// keys for each attempt. Intents that Open finds are of a process that died; Open queues
// their places for deletion.
//
// Readers call Hold, which gives the record and keeps the blobs of its versions out of
// Deletes until Release, whatever is written meanwhile.
//
// # Transactions
//
// Every method that changes something is one transaction: whole or not at all, synced
// when it returns. Conditions are evaluated inside, against what the transaction itself
// sees, so that of writers who race one wins whole. Writers that wait share a commit,
// so that 64 of them pay for one sync and not for 64. When ctx ends before the
// transaction began, nothing was changed; after that the method waits for the outcome.
// If the disk fails, the outcome of that commit is unknown until Open, as with any disk.
//
// # Changes
//
// A change is a list of rows put and removed, has the next sequence number, and is kept
// in the file until Shipped says that it is elsewhere. Rows are absolute: to apply a
// change twice, or upon rows read later than it, is harmless as long as all later ones
// follow. That is why a snapshot may be read in pieces while writers go on (Scan), and
// why no reader of the catalog is ever long enough to hold a writer up.
//
// States: a Catalog is open until Close; all methods may be called by many goroutines.
// Failures: the sentinels of errors.go, ctx's error, and what the disk says.
package catalog
