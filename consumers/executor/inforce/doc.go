// Package inforce is the executor's target of tables that this process goes by itself: an
// entry point's tables of servers (package dispatcher), a coder's tables of codes (package
// codes). What a router is told over a network is another matter, see package router.
//
//	commands.<kind>.<scope> ─▶ executor ─▶ Target ─▶ Holder: what goes by the table
//	            file ── Restore ──▲  │ ▲── Resume ── bus
//	                   Run keeps it ─┘
//
// A [Kind] says what is of one kind alone: its table in a command, and the form of its
// file.
//
// # States
//
// Of a table at a holder: in force; superseded; expired, when its ttl, which counts from
// the server's time, is over and the default took its place. Tables are kept in a file
// over restarts, so that they are in force before the bus is there, or without it. What
// Resume finds on the bus takes their place, and is answered when it is delivered.
//
// # Failures
//
// A table that can't be is rejected and the last good one stays. One of a scope that
// nobody holds in this process is answered advised, with control.NotConcerned for a
// reason. A file that can't be read or written holds nothing up: it is said and counted.
package inforce
