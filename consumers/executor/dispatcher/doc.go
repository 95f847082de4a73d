// Package dispatcher is the switch inside an entry point (DESIGN §4.3, PAPERS §2): it says
// which server gets a request, and when, so that requests wait in an order that costs the
// least penalty instead of in a server's own queue.
//
//	Admit ─▶ first level: which zone ─▶ second level (package pool): which server, now or
//	         by weights in force,       after a wait in the queue in front of it
//	         penalty or load                       │
//	Done ◀── the server has answered ◀── a place ◀─┘  at most M requests are in service
//
// A [Site] is the first level and the shell around the second: it has the lock, the
// clock, those that wait, and what is in force. Everything that decides is in package
// pool, which is pure.
//
// # First level
//
// A zone that is nothing by the weights in force gets a request only if no other can take
// it. The others share requests by their weights to within a second's number of them (at
// least 8): within that the one with the lowest potential penalty per request in it is
// chosen, or the one with the fewest requests for its places ([ByPenalty], [ByLoad]). Ties
// end at load, then at who is furthest behind its weight, then at config order. Nothing is
// drawn. Without a table no weights are in force.
//
// What dispatchers of other entry points have there is counted in while it is not older
// than 3 s; if it is, least load decides, by what is known here.
//
// # Places
//
// A server takes M requests at once, of all entry points together. [Shares] says how many
// of them are this one's; one whose share shrinks starts nothing at that server until
// enough have ended. A request that fits nowhere waits; one that nobody lets wait any more
// is refused ([FullError]), with the time after which a place is expected.
//
// # States of a server
//
//	off ──table──▶ ramping ──Options.Ramp──▶ used ──health──▶ unusable ──health──▶ ramping
//	 ▲                                        │                  │
//	 └──────────────── table ─────────────────┴──────────────────┘
//
// A server that goes off, or is unusable, gets no new request. What waits for it is placed
// anew, with the rank of its first arrival, in its zone or, if that has no server left, in
// another; if there is none at all it goes on waiting until one comes back or its client
// leaves. What runs there runs to its end (PROBLEMS P38). A new server starts from what the
// others have in common and ramps (P30).
//
// # Tables
//
// [Target] is the executor's target of kind servers: a table of the site says which
// servers are on and what its zones weigh, until its ttl is over; then the default is in
// force: all are on, without weights. Servers that it names in neither list are on.
// Options.Switched is told who is on, so that connections and health follow.
//
// # Failures
//
// Sentinels are in errors.go. A table that can't be is rejected and the last good one
// stays. A ticket that is never given back holds its place for ever: whoever asks for one
// calls Done, whatever happens.
package dispatcher
