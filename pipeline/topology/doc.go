// Package topology puts the parts together: a configuration and roles become
// running aggregators, deciders and executors on a bus (DESIGN §1, §2).
//
// Every part has one lifecycle: it runs until its context ends or it fails.
// [Parts] starts them in order and stops them in that order, each once the one
// before it has stopped, so that whoever feeds another is silent first: an
// aggregator's last flush is still decided, a decider's last commands are still
// moved. When a part fails, all stop, and the failure is what Wait returns.
package topology
