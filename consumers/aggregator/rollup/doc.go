// Package rollup adds decoded requests up to the tables of one group of rollups
// (DESIGN §3.2). It is pure, and one goroutine's.
//
// A [State] holds sums per (window, key) since the last [State.Tables], which
// hands them out as sorted tables and forgets them. Merging these tables gives
// the same sums wherever the cuts fell.
//
// What a request adds to:
//
//	traffic       counted, with an owner
//	interactions  counted, with an owner and a user
//	places        counted, with a user and a position
//	late          those that came late, whatever they lack, so that panes and account agree
//	delay         counted, with a component at either end or a delay
//	service       counted, with a server or a limit that it met or missed
//	storage       counted, a chunk task
//
// A row with the outcome of a task is a chunk task (DESIGN §3.1): a part of some request
// that has a row of its own. Counted, it adds to storage alone, else its bytes and delay
// would stand twice in the others; a row with another outcome is a request like all
// others. Of gauges, those that know a backlog add to storage, in a row of their server
// that has no other key, and those that know of a queue in front of a server to service,
// in a row without a class. A batch in which no row names a server or knows a limit costs
// service nothing.
//
// A delay is wait + service at the callee, where service is known (a callee
// that doesn't tell its wait apart has it in its service), and network at the
// link, where that is known. The delay of a task is service + network: all that its
// coder waited for it; its wait is the request's. Values below 0 or beyond a day are
// left out of sums and histograms, not clamped, and counted (P18). All windows go by
// a request's time, which is when it ended: one that took 30 s is in the window of
// its end.
//
// Texts are translated once per distinct value and batch; per row there are
// slices and open-addressing tables, and nothing is allocated but growth.
package rollup
