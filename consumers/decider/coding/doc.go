// Package coding decides which erasure code a store's requests get at which backlog
// (DESIGN §4.4, PAPERS §3). It is pure: the decider of kind coding feeds it windows of
// the rollup storage, and coders look their codes up in its tables.
//
// # What it knows
//
// Of each configured store, reads and writes apart: the tasks of the last History
// windows by code and size, the delay model that package fit finds in them, and the
// mean size of a request. A task that was cancelled lasted at least until its cancel;
// one that failed says nothing of the delay and is counted. Until there are enough
// samples, and wherever the samples can't tell a parameter, the last fit stands; the
// first is the configuration's.
//
// Samples of one size tell no parameter apart, and a belief by which chunks do not pay
// keeps tofec at one size. Until a fit has left nothing open, and while tasks are of more
// than half a request, what does not grow with the size is therefore held for half of
// a request's delay at most, and for less with each window that tells nothing: chunks
// are tried at a greater and greater backlog, and two sizes tell.
//
// # What it decides
//
// One table a store, which is the command's scope:
//
//   - tofec: thresholds on the backlog by package threshold, for the store's
//     connections, its requests' size and the cap on requests.
//   - static and replicate: one code whatever the backlog.
//   - hedge: one code; its spare chunks are asked for only when a request takes longer
//     than a share Hedge.Quantile of requests would, by the model.
//   - greedy: what connections are idle; the table holds the caps.
//
// The first table is sent at the first window in which the store is seen. Another
// follows when a threshold or the hedge's delay has changed by more than Change, when
// the policy or the caps have, and the same again at half of TTL.
//
// # Price
//
// A read under (n,k) is n requests to the store. MaxRequests caps n, and so does
// MaxReadPrice with the price of a request; the lower binds. Records and commands say
// what a million reads cost: as they were, by the n of the window's tasks, and at most.
//
// # States of a store
//
//	unseen ──a task──▶ default model ──enough samples──▶ fitted ──thin windows──▶ held
//	                                                       ▲                        │
//	                                                       └────enough samples──────┘
//
// Nothing expires: a fit that is old is better than none, and what a store is asked
// decides only speed and price, never whether data are whole.
//
// # When a store becomes another one
//
// The tasks of the newest window are compared with the fit, of sizes that were there before
// (fit.Against). When the time beyond the fixed part is one and a half times as long as the
// fit has it, or as short, by eight standard deviations of chance, the fit stands until the
// next window (Suspect). If that is off in the same direction all windows before the two are
// forgotten (Shifted), so that the fit is of the new store alone, and its table waits for
// nothing; else the one window was a pause, and is left out.
//
// # What keeps it from flapping
//
// A fit rests on History windows, and changes below Change are no command. While the first
// window leaves some of the delays open, the first table is that of the configuration's
// models. Another one waits: 1, 2, 4, 8, … windows after the one before, three times that
// until samples have told all once, at most History (Held). Doubt, which is there to have
// other codes tried, waits like what is told. A table
// that everyone who answered refused or could not apply is not sent again until it
// changes (P37); the one before it is in force. After three of them in a row the
// outcomes contradict the policy, which then only advises.
//
// # Failures
//
// New and Parse return every fault of a configuration ([ErrConfig]); Restore refuses
// what is not a whole snapshot ([ErrSnapshot]). Nothing else fails: rows that can't be
// used and stores that nobody knows are counted in reasons.
package coding
