package window

import "time"

// Storage holds the chunk tasks of coders (DESIGN §3.2, §4.4): how long each took, by
// store and kind of task. It isn't among Rollups while no aggregator adds it up.
//
// The keys n, k and bits are decimal texts; bits is the bit length of the task's
// bytes. The sum of bytes beside it gives the mean size of a key's tasks, and the least
// the size that goes with the least delay: without them a size would be known to a
// factor of two only, and no delay could be told from one that grows with the size.
// Bytes are those that were asked for, also of a task that was cancelled. Outcome is done, cancelled or failed; the delay of a
// cancelled task ends at its cancel.
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
		{"backlog", Sum, Int64},
		{"backlog_most", Max, Int64},
	},
}
