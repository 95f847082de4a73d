// Package whatif plays closed windows through strategies of placing data and
// says what each would have brought: traffic by site, latency delay, execution
// delay, sites over capacity, bytes and money moved, and the objective of
// placement (DESIGN §4.1, PAPERS §1.2). It is pure: no bus, no clock, nothing
// that is drawn.
//
// A [Recording] turns the merged tables of a window (traffic, interactions,
// places) into a [Frame] that any number of strategies can share; a [Player]
// takes one [Strategy] through frames, one after the other. What a strategy
// decides at the end of a frame holds from the next one on, as if each move were
// done at once. The experiment keeps the frames and plays them again and again;
// a shadow of a running Penstock makes a frame a window, plays it and drops it.
//
// # What is taken
//
//   - A window says how often a user asked for an owner's data, not with how
//     many bytes: an owner's bytes are shared among its users by requests.
//   - A user is where it was last seen, this window included. Requests by users
//     of whom no place is known enter no delay and no replica's traffic; both are
//     counted.
//   - New owners stand at the allowed site nearest to the first place seen, as in
//     a replay: the owner's own place if there is one, else that of the user who
//     asked most often (the order of requests inside a window is gone), else the
//     first allowed site. Or they stand where they were served, if the windows
//     are of a service that runs.
//   - Traffic of an owner is served by the site where its data stands at the
//     beginning of a window.
//   - The execution delay of a site in a window is W = max(0, T − Ca)/T
//     (Little's law, PAPERS §1.2, 7); its mean is over sites and windows with
//     traffic. Windows are of the recording's width whatever the width by which a
//     policy decides.
//
// Failures: there are none; rows that cannot be used are counted.
package whatif
