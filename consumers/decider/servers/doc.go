// Package servers decides which servers of each site run, and how its zones share the
// requests (DESIGN §4.3, PAPERS §2.5). It is pure: the decider of kind servers feeds it
// windows of the rollup service; dispatchers follow its tables request by request, and the
// server switch turns machines on and off by them.
//
// # What it knows
//
// Of each configured site, by package switching: the penalty that requests accrued (by how
// much they were late, times the penalty of their class), what waits and is in service and
// what penalty it would have, by the dispatchers' gauges, the load in places, how long
// requests take, and, with forecast, the load of days and weeks before.
//
// A gauge that is older than three seconds is not used. Several dispatchers in front of a
// server each send one a second; how many they are is told by how many come.
//
// A request that no server got, because every queue was full, is late by its class's limit:
// else a site that turns everyone away would look idle.
//
// # What it decides
//
// One table a site, which is the command's scope: the whole state of it, servers on and off
// and the weights of zones. It is sent at the first window with rows of the site, when
// servers are to be turned on or off (package switching has the rule), when the share of a
// zone has changed by more than WeightChange, and again after half of TTL. Policy none never
// changes how many servers run: it weighs zones, and replaces what failed.
//
// # States of a server
//
//	          table has it on                outcome done, or 3 × StartDelay
//	off, failed ────────────────▶ starting ──────────────────────────────────▶ on
//	     ▲                          │   ▲                                       │
//	     │ outcome done,            │   └──────────── table has it on ──────┐   │ table has it off
//	     │ or 3 × StartDelay        ▼ outcome failed, with its name         │   ▼
//	     └──────────────────────  failed                                   draining
//	                                              off ◀── outcome done ───────┘
//
// At first servers are what the configuration says. A server that fails is not on: another
// is turned on in its place at once, and it is tried again after Retry. Only outcomes of
// the server switch tell what a server is (control.SwitchTarget); those of dispatchers tell
// whether the table is in force.
//
// # Thin data
//
// Without gauges and with hardly a request nothing changes (InsufficientSamples, P34). After
// TTL of that the servers of the configuration are turned on again (Expired), and none is
// turned off.
//
// # Failures
//
// New and Parse return every fault of a configuration ([ErrConfig]); Restore refuses what
// is not a whole snapshot ([ErrSnapshot]). Nothing else fails: rows that cannot be used, and
// sites and servers that nobody knows, are counted in reasons. After three tables in a row
// that all dispatchers, or the server switch, refused or could not apply at all, outcomes
// contradict the policy, which then only advises.
package servers
