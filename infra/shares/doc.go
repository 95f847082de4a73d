// Package shares holds what is in force of the tables of kind split inside a
// process (DESIGN §3.3, §4.2): who sends a request asks it where to, and who
// brings a table puts it in.
//
//	an executor, a long poll ─▶ Put, Clear ─▶ Router ◀─ Pick, Stay, Enter, Probe ─ requests
//	health checks, operators ─▶ Up, Drain ───┘    └─▶ Changed ─ those who pass it on
//
// It stands below both who serves requests and who executes commands, and knows
// neither.
//
// # The table in force
//
// A Router holds what is in force in an immutable map that is swapped whole, by
// (calling component, its site, called component). A look-up is one map access and
// takes no lock. Without a key, sites take turns in an order in which each is
// never a whole request from its share; it goes on from table to table, so that
// even a few requests a table add up to their shares. With a key, weighted
// rendezvous hashing gives all routers the same answer, and a change of shares
// moves only the keys that must. A session whose site is known stays there while
// it is up and has any share.
//
// Shares are met to the target's resolution by largest remainder (Remainder):
// none above 0 becomes 0.
//
// # Probes
//
// A table can order probes of a link: of its requests a part is to be copied to a
// site of which too little is known. After n requests exactly ⌊n·share⌋ were, or
// one more, whoever asked, and the counting too goes on from table to table.
//
// # States
//
// Of a replica: up, down (not chosen while another with a share is up), draining
// (not chosen while any other has a share, and never probed). If all that have a
// share are down they are chosen all the same: nothing at all is worse (PROBLEMS
// P31).
//
// Of a table: in force; superseded by one of a greater epoch, or by the default's,
// which is 0; cleared. Calls of a link that no table has stay at their site.
//
// # Failures
//
// A table that can't be is rejected whole and what was in force stays.
package shares
