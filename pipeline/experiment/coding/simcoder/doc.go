// Package simcoder runs one coder in front of one store on simulated time, event by
// event. The queue is the live coder's own state machine, queue.Core, and codes are
// picked by whatever chooser a live coder could have; only time, arrivals and the
// store's delays are made up here (package delays).
//
// # What happens
//
// Requests arrive by a Poisson process of a rate that may change, or, saturated, so
// that a number of them always wait. Each is taken apart into n tasks by its code; a
// task runs on one of the connections for as long as the law of delays says. At the
// k-th success the core drops what is queued and tells what runs to end: its
// connection is idle Options.Cancel later, at once by default.
//
// With a [Loop] the policy of kind coding decides windows of chunk tasks as the
// decider would, and its tables are in force Loop.Feedback after a window's end.
//
// # What counts
//
// The first requests of a run are left out, then a number of them count, in order of
// their arrival; arrivals go on until all of them have their answer.
//
// A run is pure: the same options give the same outcome to the last bit. It is for one
// goroutine; no memory is allocated per event once as many requests as ever are under
// way at a time have been. [Run] fails with [ErrOptions] for options that make no run,
// and with the context's error when that ends.
package simcoder
