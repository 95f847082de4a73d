// Package objectstore says what Penstock asks of a place that holds people's
// data, so that the data can be moved between places without losing a write.
//
// A [Store] is one site's place. It holds *owners*; an owner's data is a set of
// named *objects*, and all of it moves together. What a store calls an owner is
// up to its backend (a folder, a key prefix, the rows of a tenant): the contract
// stands on [Store].
//
// # Copies and marks
//
// At any time several sites may hold a copy of one owner's data, and exactly one
// is live: the one that KV locations names. A copy says of itself what it is by
// its [Mark]:
//
//	absent ──▶ incoming(v) ──▶ live(v) ──▶ retired(w) ──▶ deleted
//	                ▲                          │
//	                └──────── a return ────────┘
//
// A copy that nobody ever moved is unmarked and counts as live. Writers write to
// unmarked and live copies only; at any other they get a [MarkedError], which
// says where the data went. So a writer whose knowledge is a moment too old can't
// have a write acknowledged by a copy that is about to be thrown away. Marks only
// change by compare-and-set, which is also what keeps two movers of the same
// owner apart.
//
// # Failures
//
// Sentinels are in errors.go. Whatever fails or crashes, an object is either the
// old one or the new one, never a mixture; what is left behind (a temporary file,
// a half-deleted retired copy) is removed by the next operation of its kind.
package objectstore
