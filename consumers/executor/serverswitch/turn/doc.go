// Package turn has one process of a role act at a time: those who are started beside it
// wait, and the next takes over when it ends, or is not heard of for 5 s. A key in KV
// members says whose turn it is.
//
// # States
//
// Of a process: waiting; having the turn, as long as it renews the key, which holds for
// 5 s of the server's time from then on; having lost it, when another has written the key,
// or it could not be renewed for Keep, measured from before the last renewal was sent:
// there are 2 s then for what it had begun to be ended, before another can have the turn.
//
// # Failures
//
// A bus that can't be reached ends the turn: nothing is switched then, and what is on and
// off stays. A process that stands still for longer than those 2 s may have a hook in
// flight beside the next one's; hooks get the epoch of the table that they are for.
package turn
