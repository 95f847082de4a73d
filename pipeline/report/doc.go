// Package report says what a replay showed: the account, the decisions, traffic
// against capacity, delays, moves and money, against what would have been
// without (DESIGN §5: report.json, report.html, matrices).
//
// A [Collector] watches the rows as they are sent and the windows as they are
// answered; it holds sums and histograms, never rows. What it says follows from
// the recording and the decisions alone. Distances give the latency delay by
// the configured formula; rows without a place are counted as unlocated and
// enter no mean.
//
// Beside the run stand two baselines over the same rows. In nearest, the
// paper's, every site holds a full copy and each request goes to the site
// nearest to the requester. In distance-only there is one copy, which follows
// the owner to the site nearest to it, whatever the load.
package report
