// Package report says what a replay showed, or what closed windows show of a
// policy that only advises: the account, the decisions, traffic against capacity,
// delays, moves and money, and beside them what others would have brought
// (DESIGN §5: report.json, report.html, matrices).
//
// A [Collector] watches the rows of a replay as they are sent and the windows as
// they are answered; it holds sums and histograms, never rows. What it says
// follows from the recording and the decisions alone. [Played] has the same
// figures by strategy and window, from whoever plays windows; both end in one
// [Report].
//
// Beside the replay stand, over the same rows: as-it-was, each request where the
// recording says that it was served, and the baselines of
// consumers/decider/baselines, whose single copies begin where the replay first
// serves them. What is not known of one is unknown, never 0: null in JSON, a dash
// for people, with the reason.
//
// Latency delays follow from distance by a formula that is assumed, not measured,
// or from a measured table ([LoadLatency]); pairs that this lacks fall back to the
// formula and are counted and named. Which site is nearest is always told by the
// great circle. Requests without a place, or without a known owner and site,
// are counted and enter no delay.
//
// Money is what leaves sites, at their prices of egress: moved data and copies
// from the site that sends them (egress_usd), and the bytes of reads from the site
// that serves them (serving_usd; a write's bytes come in). The prices of serving
// are of bytes both ways of reads, so that they are an upper bound.
//
// A replay that decides split too has a section of it, from [Splits]: its tables as
// they were ordered, and the calls as they were recorded; so has one that decides coding,
// from [Codings], and one that decides servers, from [Servers]: how many servers the
// tables had on and what they cost, beside the penalties as they were recorded. Nothing is
// said of penalties that other servers would have brought. [Status] tells, beside the
// last decision of each kind, the last table of each scope, for how long it is in
// force, and what each router has answered.
//
// Failures: [ErrAudit] if events are not accounted for, [ErrLatency] for a table
// that cannot be used.
package report
