// Package topology puts the parts together: a configuration and roles become
// running aggregators, deciders and executors on a bus (DESIGN §1, §2).
//
// Every part has one lifecycle: it runs until its context ends or it fails.
// [Parts] starts them in order and stops them in that order, each once the one
// before it has stopped, so that whoever feeds another is silent first: an
// aggregator's last flush is still decided, a decider's last commands are still
// moved. When a part fails, all stop, and the failure is what the process ends
// with. Two things are no failure: an aggregator that another has fenced claims
// again when the advice says so, and a decider that another has fenced starts
// again from scratch, a second later, with what the other has written. Two who
// both decide are safe, only slow.
package topology
