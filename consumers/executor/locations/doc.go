// Package locations is where each owner's data is: the KV bucket locations, its
// import and export as CSV, and the comparison with what the stores really hold
// (DESIGN §3, §4.1).
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
// Since is the end of the window whose decision moved the owner, so that a replay
// writes the same entries each time; an imported entry bears the time it was
// given, or that of the import.
package locations
