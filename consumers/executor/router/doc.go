// Package router splits a component's calls over the sites of the components it
// calls, by the tables of kind split (DESIGN §3.3, §4.2): in this process, and
// through proxies, which are Targets.
//
//	commands.split.> ─▶ executor ─▶ Keeper ─▶ Target: Router, haproxy, xds
//	                                   │ ready? put, again when it was lost
//	                                   └ ttl over: the configured default
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
// # States
//
// Of a replica: up, down (not chosen while another with a share is up), draining
// (not chosen while any other has a share). If all that have a share are down they
// are chosen all the same: nothing at all is worse (PROBLEMS P31).
//
// Of a table: in force; superseded by one of a greater epoch; expired, when its
// ttl is over and the default took its place. Calls of a link that no table has
// stay at their site.
//
// # Failures
//
// A table that can't be is rejected whole and the last good one stays; the Keeper
// doesn't send it again (P37). A target that can't be reached gets the command
// again. A share is not raised where nothing is ready to take it.
package router
