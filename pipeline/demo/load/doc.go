// Package load sends requests at the instants of a plan, whatever becomes of those
// before (an open loop).
//
// A [Pace] says when, counted from the start: the plan is absolute, so that being
// late with one request delays no other. Each is sent in a goroutine of its own
// and knows the instant at which it was due; who measures from there sees a stall
// of a second as latencies of up to a second (PROBLEMS P29). A latency taken from
// the moment of sending would hide it.
//
// What the generator itself did is in its [Report]: how many requests were due and
// sent, and how late the latest was sent. A run that could not keep to its plan
// proves nothing: it ends with [ErrLate] or [ErrCrowded].
//
// [Samples] keeps what was measured, to be asked for quantiles by any property
// afterwards.
package load
