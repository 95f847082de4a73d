// Package codes chooses (n,k) for the coder's requests (DESIGN §4.4, PAPERS §3.4) by the
// table in force, and brings tables of kind coding into force.
//
//	commands.coding.<coder> ─▶ executor ─▶ Target ─▶ Chooser ◀─ queue: a request arrived,
//	                                         │                   one is admitted: which code?
//	                                         └ ttl over: the configured default
//
// A [Chooser] keeps the backlog, smoothed. The paper smooths it at each arrival,
// q̄ = a·q + (1−a)·q̄. With Options.Over it is averaged over time instead, which is what
// the thresholds are about: a request that waits counts for as long as it waits, and
// the average forgets as fast when hardly anything arrives as under load. At the same
// share of requests on two neighbouring k it is at its new point in a third of the
// time after a load has fallen (penstock experiment coding).
//
// With thresholds a request gets k = 1 + #{K[j] > q̄}, n alike of N, and then
// n = max(k, min(n, ⌊r_max·k⌋)): fewer chunks the more requests wait. These thresholds
// are for requests of one size, which the table says: the best k goes with the square
// root of the size, and so does what a request gets (Sized), so that a small object isn't
// cut. Greedy takes as
// many chunks as connections are idle. A hedge takes the code of its thresholds and a
// delay for the chunks beyond k. Static codes and copies are thresholds that are always
// above the backlog. To choose takes no lock, and nothing is allocated per request.
//
// # States
//
// Of a table at a Chooser: in force; superseded; expired, when its ttl is over and the
// default took its place. The smoothed backlog outlives tables: it is the queue's.
// They are kept over restarts, see package inforce.
//
// # Failures
//
// A table that can't be is rejected and the last good one stays.
package codes
