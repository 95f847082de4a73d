// Package window holds what aggregators publish: panes, the commit that ends a
// flush, and the account (DESIGN §3.2).
//
// A window of a rollup is the merge of its panes. A pane is a [Table]: rows
// sorted by (window start, key), integer sums, log-linear histograms with
// integer counts. [Merge] is associative, commutative and exact, wherever the
// cuts fall. What a rollup is (its key, its values, how each merges, its width
// and its group) stands in one place, a [Rollup]; tables, codec, merge and the
// Parquet matrices all follow from it. How wide the windows of the group owners are
// is the bus's to say ([Widths]); a pane says so where it isn't the rollup's own.
//
// Failures: decoders return errors that wrap [ErrUndecodable] and never panic.
package window
