// Package placement decides where the data of each owner lives. It has two
// policies: tmatch, the algorithm of the paper (PAPERS §1, the paper's §5), and
// optimal, which makes the total of one printed objective least. Both are pinned
// down in DESIGN §4.1, and share everything but the plan of a window.
//
// # What it does with a window
//
// [Policy.Decide] first learns: names, where users are, social levels, stored
// bytes, where new owners' data is (the site that served most of their first
// requests), and t(u), the traffic of each owner. The record of either policy
// names the case: MINIMAL, the total is at most the least capacity; OVERHEAD of
// the first type, the window decided before was MINIMAL; else of the continuous
// type. Then it plans.
//
// tmatch goes by the case:
//
//   - MINIMAL: every owner goes to its L-match, the site with the least
//     E = alpha·NDW + beta·NSW.
//   - First type: the L-match of all owners is the base; a site is over by Σ t of
//     that match.
//   - Continuous type: the base is where data stands, but new owners are L-matched
//     first; a site is over by observed traffic.
//
// In both types owners are taken out of sites that are over, most traffic first,
// until their traffic reaches the excess, and go one by one to the site that five
// factors choose among those with room: E, social weight, distance weight, least
// expected traffic, config order.
//
// optimal gives all owners that may be moved the sites that together cost least
// ([Objective]): E, a margin and the bytes and dollars of moving away from where
// an owner stands, and bytes over capacity. Owners without traffic count with
// their weight. Owners that may not be moved fill capacity where they stand.
// Package assign solves it: exactly, with exact weights, up to 2^18 costs (owners
// × sites); beyond by prices, with weights from kept distances. The record's
// reason Optimised has the plan's total, a bound that no plan is below, and the
// gap between them, errors of rough weights included. A plan that isn't proved
// best and costs more than to move nobody is dropped.
//
// Weights are rounded to 1e-9 and ties are values within TieTolerance of the
// least. Sums over friends run in ascending id and nothing is fused, so that the
// same window has the same decision on any machine, for any number of workers
// and after any restart.
//
// # States of an owner
//
//	unknown ──seen with a site, or imported──▶ standing ──decided──▶ under way
//	                                            ▲    ▲                  │
//	                              imported again┘    └───any outcome────┘
//
// An owner without a known location is never moved. One under way counts where it
// goes, and isn't moved again until its outcome is there. Done: it stands at the
// destination, and its cooldown begins at the end of the last window. Failed,
// expired: it stands where it stood, and may be tried again under a new version,
// but not in the next window, after two failures in a row not in the next two,
// then 4, 8, up to BackOff (BackingOff; tmatch only if its configuration says so).
// Refused: the same move, from there to there, is not sent again until a decision
// wants another one. An import (outcome imported) is the operator's word: site,
// version and pin are what it says.
//
// # What holds a move back
//
// Each owner that stays has one reason, which Explain tells and the record
// counts. What the text of the design leaves open is settled like this:
//
//   - A site where the data is that ties with the L-match in all three weights is
//     as good: NoImprovement, though config order would name another. Of optimal,
//     NoImprovement is that no other site costs less, moving included, and NoRoom
//     that one does but its room is worth more to others.
//   - Normalisation runs over all sites of the configuration; residency and
//     evacuation then remove edges. The first residency rule that matches an
//     owner binds it. An owner whose rule forbids where it is counts as new for
//     tmatch; optimal moves it wherever it may be, even over a capacity.
//   - Owners that cannot be moved (pinned, under way, in cooldown, backing off)
//     stand where they are in the base match too, and are passed over by
//     extraction. One without room stays where its data is, and is expected there.
//   - Windows that are not decided, because they are incomplete or thin, are no
//     predecessors: the case goes on from the last decided one. A frozen window
//     is classified.
//   - Limits of tmatch take overload first, in the order of extraction, then
//     L-matches by traffic. Those of optimal take what relieves sites over their
//     capacity first, most traffic a stored byte, then the greatest gain a stored
//     byte, and only moves that by themselves make the total less. An owner held
//     back before its first match is still a new one.
//   - An evacuated site takes nobody in and gives all up, within the others'
//     room; it is not counted as least capacity. A cooldown gives way to it, a
//     pin does not, and leaving it costs no margin. The moves are under the limits.
//   - A rollback takes owners to where they were before the first move of the
//     time it undoes, or where they were imported since. Only residency, a pin and
//     a move under way hold it back.
//   - Versions are used up by advice too, so that one owner and version have one
//     outcome; nothing else of a window that isn't acted on enters the state but
//     that new owners have been matched.
//
// # Promises
//
// In mode act a plan promises that its moves are done and that the sites it
// relieves come down to what it expects of them. When for three decided windows
// in a row at least ten moves, and more than half of those that ended, were not
// done, or a relieved site was above its promise by more than a fifth of its
// capacity, Output.Broken says so and the loop falls back to advise (DESIGN §3.3).
// Growth of all traffic breaks no promise: loads are taken back by as much. Both
// counts begin anew after the signal, and in every other mode.
//
// # Failures
//
// New and Parse return every fault of a configuration ([ErrConfig]); Restore
// refuses what is not a whole snapshot ([ErrSnapshot]), and reads those of the
// format before this one. Nothing else fails: rows that cannot be used, sites that
// nobody knows and outcomes nobody waits for are counted, in reasons or by the
// decider.
//
// # Scale
//
// State is in columns by id, without pointers: about 200 bytes an owner with five
// friends. Distances are kept in two bytes each with a bound on their error. tmatch
// computes them exactly where that does not tell sites apart (see lmatch.go), and
// L-matches again only for owners for which something has changed; optimal computes
// a row exactly where the bound is too wide (see rows.go). [Policy.LastPlan] is
// exact, and takes its time.
package placement
