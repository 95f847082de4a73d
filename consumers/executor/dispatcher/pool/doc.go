// Package pool is the second-level switch of one zone (DESIGN §4.3, PAPERS §2.4): it
// places each request at a server, keeps a line in front of each, and starts what is
// next where fewer than M are in service.
//
//	          choose           line               Start           Done
//	Arrive ──▶ server ──▶ queued, in its order ──▶ in service ──▶ learned
//	             │    a free slot: at once  ────────▲   │
//	             ▼                                      ▼
//	    ErrFull, ErrNoServer                 Cancel: not learned
//
// It is a pure state machine: instants are its callers', in ns, what is drawn goes by a
// seed, and equal calls have equal results. The simulation of servers drives the very
// same one as the entry points do.
//
// # Policies
//
//   - A1: the server where the sum of the penalties grows least by the request; lines in
//     order of deadlines.
//   - A2: the server with the fewest queued, at the place in its line where it costs least.
//   - A3: the server where the times left until the deadlines differ most; whoever's
//     waiting costs most leaves the line first.
//   - rr, wrr: one after another, as often as the weight says. cap: rr within each class
//     of impact.
//   - ll: the fewest queued and in service by weight. p2c: the better of two drawn.
//   - peak-ewma: of two drawn, the lower peak latency × (requests + 1).
//   - prequal: few requests in flight before low latency (hot-cold lexicographic).
//   - icbs: the least expected cost; lines by penalty per service time.
//   - auto: see auto.
//
// What the papers leave open is decided by idler, then by who has waited longest for a
// request, then by the order of the list. Lines of rr to prequal are FIFO.
//
// The paper's three are to the letter unless an option says otherwise: Elapsed (what runs
// longer than estimated makes its server slower before it ends), FreeFirst (a server with
// a free slot goes first; A3 needs it, for to the letter a server with nothing waiting is
// the least diverse), Near (A3 considers only servers where the request ends about as soon
// as anywhere; to the letter it sees neither how slow a server nor how long its queue is),
// Abreast (A2 reckons with M side by side), Trial (a server of which nothing was heard for
// long is tried, so that one that was slow is found when it is fast again). The ramp of new servers
// (PROBLEMS P30) is no part of the paper either, and on unless it is negative.
//
// # Times
//
// A service time counts from the Start to the end of the answer, a wait from the placing
// at the server to the Start. Each server's perceptrons learn both: the wait by the bytes
// that were ahead at the placing, and only of what was queued, since that a free slot
// means no wait needs no learning. The limit of a request counts from Request.Entered.
//
// # States and failures
//
// A request is queued, in service, or, if it was queued when the last usable server went,
// waits for one without a line; all of them end by Done or Cancel. A server is in the
// list or leaving, usable or not; it is neither chosen nor started at unless it is in the
// list and usable. What is queued elsewhere is placed anew at once, the oldest first and
// behind what is in the new line already; it is never turned away, so that lines may then
// be longer than the limit. What is in service stays there, and counts against M also if
// the server comes back meanwhile. A server that comes back has its estimates still, and
// ramps.
//
// Done or Cancel for what isn't there changes nothing and is counted.
package pool
