// Package workload makes up the day of the placement paper (PAPERS §1.4): users
// with places and friends in the United States, who write data of their own
// and whose friends read it.
//
// A [Generator] is pure and seeded: the same [Params] give the same rows, one
// after the other in time order, with memory for the reads that are under way
// and no more. [New] scales the number of writes so that the busiest hour of
// one site, were each request served by the nearest site, is as busy as the
// paper says; [Generator.Plan] tells what came of it.
//
// What is behind a row: a user is in a metropolitan area, drawn by population.
// It writes by its own activity, which is heavy-tailed, and by its local time
// of day. Each write causes reads of the writer's data, seconds to minutes
// after it, by the writer and its friends in proportion to the social level,
// each from the reader's own place.
//
// Failures: [Decode] and [New] return an error that wraps [ErrParams] and lists
// every fault with its line and field. A generator does not fail.
package workload
