// Package simservers simulates the system of the paper on request distribution (PAPERS
// §2.1), event by event: a client's request comes to the first-level switch, which chooses
// a zone; the zone's second-level switch places it in the queue of a server; the server
// takes it in while fewer than M are in it, and serves it at its CPU, its disk and its CPU
// again, and, if it is dynamic, at one of the zone's databases; then it goes back.
//
// The second-level switch is the one of the entry point (package pool), told the time of
// the simulation; the rule that turns servers on and off is the decider's (package
// switching). CPU, disk and databases serve one request at a time in the order of their
// coming. What a request takes at each was drawn before, so that all switches meet the same.
//
// A server costs while it is on, starting, or draining; a request costs its class's penalty
// for each second that its response, both hops included, is beyond its limit. A run ends
// when all requests are back, and servers cost until then.
//
// States: none is kept between runs; a run is the work of one goroutine. The same options
// give the same outcome.
//
// # Failures
//
// A switch that refuses a request ([ErrSwitch]): queues of a simulation have no bound. A
// switch that starts a request twice, at a server that is full or not on, or never, is
// found too ([ErrSwitch]). The context's end.
package simservers
