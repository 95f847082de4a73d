// Package mover moves an owner's data from one site to another, for good, and
// never loses a write on the way (DESIGN §4.1).
//
//	plan ─▶ copy ─▶ verify ─▶ hold ─▶ fence ─▶ flip ─▶ settle ─▶ answer ─▶ … ─▶ delete
//
// plan: the move is judged by the version rules against KV locations and
// journalled. copy: the destination's copy is marked incoming, so that nobody
// writes to it, and made equal to the source, object by object; what is there
// already and equal is not copied. verify: every object is read back and its
// digest compared. hold: the source's writers wait, if nothing changed since it
// was listed; else the difference is copied, and after Rounds rounds it is copied
// while they wait, for at most HoldMax. fence: the source's copy is marked
// retired, so that a writer who has not heard gets an error that names the new
// site. flip: locations is changed by compare-and-set. settle: the destination's
// copy becomes live. answer: one outcome. delete: DeleteAfter later, under the
// barrier, and only if locations still names another site at that version or a
// later one.
//
// # What it is authoritative for
//
// Nothing. KV locations says which copy is live, the marks in the stores say
// what each copy is, and a move can be taken up from these two alone, by any
// mover. The journal is what a mover owes: moves that it began and has not
// answered, copies that it retired and has not deleted, and what it answered
// lately. After a crash, Resume takes the open moves up at once.
//
// # Two movers
//
// Several movers share the commands. The same move may be at two of them (a late
// acknowledgement, an operator's repeat): whoever takes the incoming mark over
// copies on, the other sees its writes refused and looks again; one flips, and
// the other finds the move done. Both answer with the same message id.
//
// # Failures
//
// A move that can't be is answered failed or refused with a reason (rules.go);
// what was copied of it is removed and the source is opened again. A store that
// errs is tried Attempts times; one that can't take the data (objectstore.ErrUnfit)
// once, and the move has failed as destination-unfit. Trouble with the bus is the caller's to repeat:
// the journal keeps the move open. If the bus is lost between fence and flip, the
// source stays closed to writers until the mover has learned which it was.
package mover
