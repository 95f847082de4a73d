// Package manifest makes an object store out of any place that has blobs and one
// small document an owner that can be changed by compare-and-set: a bucket with
// conditional writes, a key-value store.
//
// The document is all that is known of an owner's copy: its mark, the objects with
// the blobs that they are, a counter of changes, and who holds it. A [Store]
// changes it by reading it, and writing it on the condition that nobody wrote
// since; who loses pauses and begins again. So all that objectstore.Store asks for
// follows from one comparison, for every process that comes through this package:
//
//	Put      the blob first, under a fresh id; then the document names it
//	Mark     the document, if it bears the mark from
//	Hold     a lease in the document; who wants to change it waits
//	fence    Held.Mark: only if the lease still stands
//	Delete   the document says absent and condemns the blobs; then they go
//
// A document is never removed. That of a deleted copy stays and says so: what was
// on its way to the copy is refused, and objects that lie there without a document
// are not taken for the owner's again.
//
// # Holds
//
// A holder counts the lease's beat up four times in Options.Lease. Who waits
// breaks a lease when it has seen the same beat for that long by its own clock, so
// clocks need not agree. A holder that was only slow finds its lease gone at its
// next comparison: objectstore.ErrHoldLost, and nothing was done.
//
// # Blobs
//
//	stored ──▶ named ──▶ replaced ──▶ deleted, Options.Grace later
//	   │                                 ▲
//	   └──▶ left by a crash ──▶ condemned┘
//
// A blob that was replaced stays for a while, for those who read it; the process
// that replaced it deletes it. A blob that no document names, because a writer died
// or was given up, or because the process died that should have deleted it, is
// found by listing: when the copy is deleted, when one arrives, and now and then
// while it is written to, if it is older than Options.Orphan. It is condemned in
// the document before it is deleted, and a writer looks there before it lets the
// document name its blob: so no document ever names a blob that was deleted, and a
// slow writer gets ErrCollected at worst. Neither depends on clocks.
//
// # Objects of before
//
// Objects that were there before Penstock (Backend.Plain) are the owner's as long
// as it has no document, and the first change writes one that names them as they
// lie. Nothing is copied. From then on the document alone counts.
//
// # Unknown outcomes
//
// A backend may fail without telling whether a document was written, or may write
// it late. Each change has a name that the document remembers, with the 15 before
// it: the Store reads again and knows, or writes again on the same condition,
// which lets one of the two through. If it has to give up, its error says so and
// the operation may be done or not; all of them can be repeated.
//
// # Limits
//
// A document is written as a whole: a change of an owner with n objects costs n
// times about 65 bytes of traffic. Owners with more objects than
// Options.MaxDocument holds get ErrTooLarge. Appending to objects
// (objectstore.Records) is not offered: an object is one blob.
package manifest
