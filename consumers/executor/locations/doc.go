// Package locations is where each owner's data is: the KV bucket locations, its
// import and export as CSV or Parquet or from what the stores list, and the
// comparison with what they really hold (DESIGN §3, §4.1).
//
// The bucket holds only owners that were moved, imported or pinned. An owner
// without an entry is where the first to ask believes it to be. Exactly one copy
// of an owner's data is live: the one at the site that stands here. An entry
// changes only by compare-and-set, and always to a greater version.
//
// Movers write the state live only. That a move is under way is known from its
// command without an outcome and from the mark of the copy that is being made
// (objectstore.Mark): writing it here too would cost a second write per move and
// a second way to be wrong after a crash. Readers accept all three states.
//
// An import may come at any time. It writes an entry first, by compare-and-set
// and under a greater version if the site changes, and then tells the decider by
// an outcome of status imported, which it takes in between two windows like any
// other ([Teller]). An owner with a move under way is refused. A move that was
// decided meanwhile does no harm: the mover compares with the entry and refuses,
// or, if the import has confirmed the site that the move starts from, carries it
// out; its outcome tells. What was cut off is done again in full: entries that
// stand as they should are told of once more, under the same message ids.
//
// Since is the end of the window whose decision moved the owner, so that a replay
// writes the same entries each time; an imported entry bears the time it was
// given, or that of the import.
package locations
