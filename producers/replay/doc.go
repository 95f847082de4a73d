// Package replay sends recordings through the loop: it puts their rows in order,
// serves each from the site that holds its owner's data, paces them, sends them,
// and keeps step with the decisions (DESIGN §3, §4.1, §5).
//
// # A deterministic function
//
// What a replay sends is a function of its input, its options and the answers on
// the bus, never of the time it takes. A replay that is run again reads its
// input from the beginning and goes through the very same states; nothing is
// sought. What an earlier attempt has got acknowledged (cursor.json) is counted
// and not sent again, windows whose writes are in the stores (written.json) are
// not written again, and windows that were answered get their answers from the
// bus at once. So routes, batches, figures and digests come out as if there had
// been one attempt.
//
// # A window's step
//
// Rows of a placement window are sent as they come. Before the first row of a
// later one, for each window in which a row was sent:
//
//  1. the window's writes go to the stores of the sites that serve them, then
//     written.json names the window (package writes);
//  2. a barrier with the window's end: all before it is acknowledged;
//  3. in lockstep, the window's decision record, all its commands and, where
//     they are to be applied, one outcome for each of their moves are awaited;
//  4. moves that are done change the routes, the observer is told, and
//     cursor.json names the window (it is written a few times a second at most;
//     an older one is as good, and costs duplicates).
//
// A window in which no row with an owner, and none with a user's place, was in
// time has no panes, so that nothing is decided for it and nothing is awaited.
// Without lockstep step 3 only takes what answers there are; then the routes
// depend on the time, and so do to_site and what follows from it.
//
// # Failures
//
// Sentinels are in errors.go. After any of them, and after a kill, the same
// command goes on. A replay never drops a row: what is late or in the future is
// sent with its mark, what is malformed is counted, told to the publisher, and
// sampled on REJECTS.
package replay
