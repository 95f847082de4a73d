// Package servers is the demonstration of request distribution (DESIGN §4.3) under live
// traffic, which checks what it promises while it runs.
//
// Six servers of unequal speed, each a process (package backend), stand behind two entry
// points. Penstock holds requests back in front of them, chooses server and place by
// deadline and penalty, and turns servers on and off. Beside it the same servers stand
// behind two entry points without any of that: all on, a request at once to the server
// with the fewest. Both get the same requests at the same time, an open loop, so that a
// server that is slow is not asked less.
//
//	            ┌─▶ 2 × entry penstock ─▶ servers 1–6 ◀── on, off ── [room] ◀─ hook ─ serverswitch
//	clients ────┤        │ events, gauges  ▲                                            ▲
//	            │        ▼                 └─────────── tables ── serve: bus, ──────────┘
//	            │                                       aggregator, decider
//	            └─▶ 2 × entry plain ────▶ servers 1–6, all on
//
// The hook is a command that asks the room, where this process starts and stops the
// machines' processes as a cloud's API or a service manager would.
//
//	preparing ──▶ night ──▶ rising ──▶ day ──▶ flash crowd ──▶ falling ──▶ night ──▶ judged
//	                                    │              │
//	              one server 10 times slower for a while   another killed (kill -9)
//
// A slow server gets well by itself, or by being turned off and on. The one that was killed
// is started again by the server switch, which sees that it is off; the plain site's after
// some seconds, as a service manager would.
//
// # What is shown
//
// The view has what anybody could know: the entry points' metrics, what the server switch
// says and the tables on the bus. Only the day's script is this package's own.
//
// # What is judged
//
// Which requests failed; how many each server had at once, by its own count, and what it
// had when it was told to end; that servers went on and off; estimates of service times
// against what came, but for the time in which a server is slow; servers' seconds and
// penalties, by the clients' clocks, against the other site's; the account of all events.
//
// The run is void ([ErrVoid]) if the machine was its limit: if sleepers woke up late, or
// requests were not sent when they were due. It fails ([ErrPromise]) unless everything
// that is promised was kept. Each figure is printed either way.
package servers
