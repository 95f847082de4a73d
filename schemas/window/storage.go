package window

import "time"

// Storage holds the chunk tasks of coders (DESIGN §3.2, §4.4): how long each took, by
// store and kind of task; and the queues of coders.
//
//	store             to_server of the tasks; of a queue, the coder's name
//	op                read or write
//	n, k              chunks asked for and needed, decimal
//	bits              bit length of the task's bytes, decimal
//	outcome           done, cancelled or failed
//	tasks             how many
//	bytes             sum of the bytes that were asked for, also of cancelled tasks
//	bytes_least       the least of them
//	delay_us          sum of the delays that are known
//	delay_least_us    the least of them; that of a cancelled task ends at its cancel
//	delay             their histogram
//	gauges            how often a queue was looked at
//	backlog           sum of the waiting requests that were seen
//	backlog_most      the greatest of them
//
// The sum of bytes gives the mean size of a key's tasks, and the least the size that
// goes with the least delay: without them a size would be known to a factor of two
// only, and no delay could be told from one that grows with the size.
//
// A row of a queue has a store and no other key, and no task: a row of tasks always
// has an op. Keys that a task does not tell are absent.
var Storage = &Rollup{
	Name: "storage", Group: Fast, Width: 10 * time.Second,
	Keys: []string{"store", "op", "n", "k", "bits", "outcome"},
	Values: []Value{
		{"tasks", Sum, Int64},
		{"bytes", Sum, Int64},
		{"bytes_least", Min, Int64},
		{"delay_us", Sum, Int64},
		{"delay_least_us", Min, Int64},
		{"delay", Hist, Histogram},
		{"gauges", Sum, Int64},
		{"backlog", Sum, Int64},
		{"backlog_most", Max, Int64},
	},
}
