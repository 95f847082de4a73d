// Package router brings the tables of kind split into force (DESIGN §3.3, §4.2):
// in this process, and in proxies, which are Targets.
//
//	commands.split.> ─▶ executor ─▶ Keeper ─▶ Target: Local, haproxy, xds, gatewayapi
//	                                   │ ready? put, again when it was lost
//	                                   └ ttl over: the configured default
//
// What a table means to a request, and how shares are met, is said in
// infra/shares, whose Router is the target in this process (Local). A table's
// probes go to the targets with it; those that can't probe ignore them.
//
// # States
//
// Of a table at a Keeper: in force; superseded by one of a greater epoch; expired,
// when its ttl is over and the default took its place; lost, when the target no
// longer has it and would not take it again. Calls of a link that no table has stay
// at their site. Tables that are held over a restart (Held, Restore) are in force
// before the bus is there.
//
// # Failures
//
// A table without a row that a Carrier carries is put nowhere and answered advised,
// with control.NotConcerned for a reason; that nothing is known of replicas of rows
// of others is no reason to reject one.
//
// A table that can't be is rejected whole and the last good one stays; the Keeper
// doesn't send it again (P37). A target that can't be reached gets the command
// again. A share is not raised where nothing is ready to take it.
package router
