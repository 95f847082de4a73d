// Package bench measures the rows of the design's speed table that are about the
// loop as a whole (DESIGN §7). It holds benchmarks and, for each of them, a test
// with a few rows that keeps it working; there is nothing in it to import.
//
// `make bench` runs the benchmarks and prints a table at the end: what was
// measured, the figure, what the design asks for at least and aims at, and
// whether that is met. Nothing fails on a slow machine. Ratios are of one run,
// one side after the other, so that a busy machine slows both.
//
// Where rows are counted, the processor time of the whole process stands beside
// the wall time (getrusage: bus, publisher and consumers are all in it), and
// with it what two cores would do if nobody else used them and none of them
// ever waited for the disk. Rows are made beforehand, so that making them is not
// measured, but for their strings' headers, which are set row by row as a reader
// of recordings does.
//
// What is measured:
//
//   - publish → stored → added up by both groups → committed: of the paper's day
//     and of a million owners by Zipf's law. The end mark closes all windows, and
//     the clock stops when its commit is stored for every group and partition.
//   - the same messages raw: as many, of the same sizes on the same subjects, sent
//     with as many in flight, synced in the same way, read by as many plain
//     consumers of nats.go that only count them.
//   - one JSON message an event, published without waiting for each
//     acknowledgement, decoded by encoding/json and added up in one map: what one
//     would write in an afternoon.
//   - the memory that an aggregator's state takes, against its own estimate, by
//     which it decides when to flush.
//   - a whole replay of thin windows in lockstep: what deciding a window costs
//     beside its rows.
//   - the entry point, with its events and without, beside NGINX, HAProxy, Go's
//     ReverseProxy and our pool of servers alone, as processes of their own that take
//     turns: the processor time of 100,000 requests of 1 KB, requests a second,
//     delays by wrk.
//   - the entry point with against without events: 15 pairs of turns, and the 95 %
//     interval of their ratio.
//   - the entry point with its dispatcher, by policy, beside the entry point that sends
//     each request on at once, HAProxy by leastconn and NGINX by least_conn, in front of
//     the same four servers, one of them ten times slower: delays, the slow one's share.
//   - the redirector as a process with 10 million owners: lookups a second and delays
//     by wrk, memory; and the same lookups in one process, without HTTP.
//   - log lines to columns: the combined format beside a plain regular expression,
//     and the other formats.
package bench
