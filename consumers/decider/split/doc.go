// Package split decides how each component's calls are shared out over the sites
// of its callees (DESIGN §4.2, PAPERS §4). It is pure: the decider of kind split
// feeds it windows of the rollup delay, and routers follow its tables.
//
// # What it knows
//
//   - D[im,jn], what a call of component i at site m to j at n takes, in two parts
//     that are never mixed: network (link) and wait + service (callee, as its own
//     clock saw it). Each part is a moving average over History windows, weighted
//     by recency and by the number of samples: Σ (W−a)·c·x ÷ Σ (W−a)·c. If the two
//     newest windows agree with each other and not with the older ones, only they
//     count. A link without samples takes the mean of all links between its two
//     sites, else Config.Links, else the distance.
//   - T[i,j], calls of i to j for each call that i gets, and the calls a second
//     that come from outside: calls without a from_component, calls of components
//     that nobody calls, and calls that close a circle.
//   - C[i,m], estimated by the paper's rule, guarded so that a slow-down is not
//     taken for overload (see capacity.go). A replica takes any load until its
//     delay has risen with load.
//
// A slow caller is not blamed on its callees: network that rises on all links of
// one caller at once is taken off them and charged to the caller's replica (see
// blame.go, which has the rules). So calls are moved away from that replica, if it
// has a caller that can, and from none of its callees.
//
// A call that fails costs ErrorCost: a replica that fails at once would look fast.
//
// What a coder logs of its clients (no caller, no site) is no call to share out: it is
// left out, of the coders that the configuration names. A call of a coder by a component
// is one like any other.
//
// # What it decides
//
// Policies greedy, lp and redirect make a plan: package solve shares out all
// calls. lp fits a curve of delay against load to each replica (curve.go) and
// counts egress; redirect allows no call between sites behind the entry. closest
// sends everything to the nearest site that does not fail; locality-failover to
// the nearest with capacity left, then the next. A plan is made when a delay, a
// rate, or a capacity has changed by more than Change since the last, or when the
// last is as old as half of TTL.
//
// A row is the calls of a component at a site to another. Rows move towards the
// plan one step a window. Shares are whole parts of Resolution, by largest
// remainder: they add up exactly, and never to zero, because a row without an
// allowed site keeps what it has, evacuation gives way when nothing else is left,
// and overload is spread in proportion to capacities.
//
// Commands: one per calling component that changes, with all its rows; its scope is
// the component, EntryScope for calls from outside. A table is sent again after
// half of TTL.
//
// # States of a row
//
//	unknown ──enough samples──▶ known ──thin window──▶ held ──TTL──▶ expired
//	                             ▲                      │              │
//	                             └────enough samples────┴──────────────┘
//
// Unknown: no table, routers do what they do without one. Known: it moves with the
// plan; it begins at the shares that were seen. Held (InsufficientSamples): an
// empty or thin window is no delay of 0; the row stays. Expired: it goes back to
// the nearest allowed site in one step, once. A row with too few samples is never
// moved by a plan (P34).
//
// # What keeps it from flapping
//
// Delays answer late: a table of this window shows in the delays two or three
// windows on, and noise looks like change. Seven rules, tested by
// testdata/flap-*.txt and by 24 simulated hours:
//
//   - Cooldown. A share that rose does not fall within Cooldown, and one that fell
//     does not rise. Only a change of the share starts it: a table that is sent
//     again, other probes, or an outcome do not. So nothing goes from A to B and
//     back to A inside a cooldown, whatever the delays say.
//   - Dead band. A change of less than DeadBand is no command.
//   - Margin. Another site has to be better than the nearest by Margin; once calls
//     have left, the nearest takes them back at half of it. Between the two, rows
//     stay.
//   - Room. A replica gets a part more of calls in one window, and the next part when
//     that has been seen, unless the one that they leave is hopeless (room.go).
//   - Fast down, slow up. A row that leaves what got worse goes all the way, by at
//     most MaxStep.Down a window; every other change goes Damping of the way, by at
//     most MaxStep.Up. What tells them apart is which moved: the delay of the site
//     that loses, since the row last changed, or that of the site that wins.
//   - Change. Without a change of more than Change there is no other plan.
//   - A table that was refused by all who answered is not sent again until it
//     changes (P37). One executor that has it is enough for it to be in force.
//
// Constraints and the operator's words (evacuate, rollback) pass cooldown and
// steps; incomplete windows and freezes change nothing.
//
// # Probes
//
// A site that a row leaves has no samples, and would never be returned to. So each
// table orders probes for replicas and links that get fewer than MinSamples calls
// in History windows: at most a tenth of a row's calls, more to good paths, none
// without its floor (probe.go). Without any, the last known delay counts for TTL,
// and then the replica is tried again.
//
// # Failures
//
// New and Parse return every fault of a configuration ([ErrConfig]); Restore
// refuses what is not a whole snapshot ([ErrSnapshot]). Nothing else fails: rows
// that cannot be used and sites that nobody knows are counted in reasons; if the
// linear programme has no result, greedy decides and the record says Unsolved.
package split
