// Package join makes calls of spans (DESIGN §3.1, §4.2; P18). It is pure: no
// clock, no input, and what comes out follows from the spans of a trace as a set,
// whatever their order.
//
//	Add ──▶ trace open ──quiet for Window, or no room──▶ resolved ──▶ calls, fates
//	              ▲                                          │
//	        more spans of it                     what calls were made is remembered:
//	                                             a half that comes now is late
//
// A file's traces are resolved whole. A receiver's ([Options.Live]) may go on for
// long: its calls are made one by one, each a Window after both halves ended, and
// the trace is kept so that what comes later finds its parents. A client that still
// waits a Window after its server is done comes too late: its half has a fate, and the
// call none.
//
// A call is where a trace goes from one process to another:
//
//	client half   │ server half
//	kind CLIENT   │ kind SERVER, child of the client, or under its id (Zipkin)
//	the only span under an inner span │ child in another process, kinds unknown
//
// Spans whose component and server are the same are of one process, and no call is
// between them. A client without a server's half is a call if it says whom it
// called; a server without a client's half is one if it is the root (from outside)
// or says who called. Two clients in one process, one around the other, are one
// call. Producers and consumers of messages are never calls.
//
// Delays come from one clock each: network = duration at the client − duration at
// the server; no time of one host is compared with one of another to get a delay.
// Where the server's interval does not lie in the client's the clocks differ: the
// call is flagged ([Call.Skewed]) and nothing is corrected. Where the server took
// longer than its client waited, network is negative: flagged ([Call.Negative]),
// kept as it is, and left to the aggregator to exclude.
//
// What a server itself needed ([Call.Own]) is its duration less the union of the
// calls that it waited for. Asynchronous ones are not taken off: messages, what
// only follows, and whatever ends after the span that it hangs below.
//
// Each span has one [Fate] in the [Account], which adds up to the spans that came.
//
// Memory is bounded by MaxSpans and Memory; traces that have to make room before
// their time are counted (Stats.Forced). There are no failures.
package join
