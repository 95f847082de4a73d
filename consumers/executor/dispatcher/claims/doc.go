// Package claims shares the places of each server out among the dispatchers that live: of
// the M requests that a server may have in service, each entry point on the pool has its
// part (DESIGN §4.3).
//
// All dispatchers of a site write one key, pool.<site>, of the KV bucket members, and only by
// compare and set. It holds a row for each: what it claims of each server, what it has in
// service and queued there, the potential penalty, and the epoch of its table. A row is
// written anew once a second.
//
// # Why M is not exceeded
//
// A dispatcher has two numbers for a server. Its claim is in its row; its limit is how many
// requests it may have in service, and is never above the claim that it last wrote. A limit
// is raised after the write that claims more, which succeeds only on the revision that it was
// reckoned from: M less the claims of the others. It is lowered before the write that claims
// less, and that claim is still what is in service by then. So a dispatcher that has more in
// service than is fair starts no more, and gives places back as its requests end.
//
// A fair share is M over the number of rows, and what is left over is dealt out server by
// server in the order of names, so that each has places somewhere. If there are fewer places
// at all than dispatchers, the order moves on every 5 s.
//
// # Failures
//
// A row that was not written for 5 s, by the server's clock, is dropped by whoever writes
// next: its dispatcher is taken for dead. One that stops takes its row out. While the bus is
// away limits stay as they are. One that starts and has never reached the bus takes all
// places after Options.Patience, for it can't know of others and is to serve; with several
// such, M is not kept until the bus is back.
//
// A bus that was restarted has lost the key, for the bucket is in memory; the bucket is made
// anew too if need be. Nobody knows then what the others hold. So in a key that is younger
// than Options.Grace, or was not written for 2.5 s before, nobody raises a limit, and
// everybody who held something before writes it down again. That is also so when the first
// dispatcher starts. A process that stood still for longer than 5 s, or was cut off alone,
// comes back to a key without its row, and lowers its limits in its first round to what the
// others have left; M is not kept until then. Nor is it, for a round, if such a one comes back
// to a bus that was restarted meanwhile and on which the others have not written yet.
package claims
