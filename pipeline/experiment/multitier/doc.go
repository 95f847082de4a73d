// Package multitier simulates an application of several components behind entry
// points at several sites, with the loop of kind split around it: the real rollup
// adds its calls up to windows, the real policy decides them, and calls follow the
// tables that the real table in force (infra/shares) holds.
//
//	arrivals ─▶ entry point ─▶ component at a site ─▶ its calls, one after another
//	                │ each call's end is a row
//	                ▼
//	    rollup ─▶ window ── Feedback ──▶ policy ─▶ shares ─▶ where the next calls go
//
// # What is simulated
//
// A replica is one queue before c servers, with log-normal service times. A server
// is free again while the calls that its component makes are under way; a call's
// service is what the replica did itself, as spans tell it. A call's way is half the
// round trip, a jitter, and bytes by the link's rate, once there and once back.
// Arrivals come whether or not anything answers. A queue that is full answers 503
// at once, a call whose request is beyond its deadline is answered 504 when its turn
// comes, and whoever called one that failed has failed (502). Probes are copies of
// real calls to where tables order them, never of heavy transactions, which write;
// their answers are thrown away, their rows and their load are real.
//
// # What is not
//
// Nobody tries again. Jobs that run on a server that goes down are finished. Tables
// come into force everywhere at once, and none expires: runs are shorter than the
// time after which policies send a table again.
//
// The simulation is one goroutine's, reads no clock, and draws from generators that
// the seed alone sets: arrivals, services and faults from one each, so that
// arrivals and faults are the same whatever the policy does.
//
// Failures: [ErrApp] for an application that is none, and what the policy or a
// table returns.
package multitier
