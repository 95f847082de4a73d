// Package split is the demonstration of request splitting (DESIGN §4.2) under live
// traffic, which checks what it promises while it runs.
//
// Two sites each run the six services of package services as processes, with an
// entry point in front that also carries the calls between them. What goes from
// one site to the other takes as long as the distance does (package links). People
// at both sites ask for quotes, search, look at their portfolio and buy: an open
// loop, so that a slow service is not asked less.
//
//	   people at us-east                        people at us-central
//	          │                                        │
//	     entry point ◀──────── link, 45 ms ──────▶ entry point
//	public │   ▲ internal                      public │   ▲ internal
//	       ▼   │                                      ▼   │
//	web quotes search orders …                 web quotes search orders …
//
// Then one replica, a component at a site, gets slower for a time. There is a world
// for each policy that is compared, all at the same time with the same requests:
// each has processes, a bus, and a decider of its own. So what the machine does
// besides is done to all of them alike.
//
//	preparing ──▶ warm ──▶ fault ──▶ recovery ─┬─▶ ended ──▶ judged
//	                         ▲                 │
//	                         └─────────────────┘
//
// # What is judged
//
// The share of the slowed replica in the calls that its own site makes is read in
// three places: in the commands, from when the site's entry point had applied
// them; in the answers, which say who took part; and in the windows, which the
// entry points' rows add up to, probes included. n windows after a fault began is
// the end of the nth window that ends after it; what is in force by these windows
// must be so before the next one ends, and counts from then on for one window.
//
// The run is void ([ErrVoid]) if it took more than 30 % of the machine's
// processors, or if requests were not sent when they were due: it shows nothing
// then. It fails ([ErrPromise]) unless everything that is promised was kept. Each
// figure is printed either way.
package split
