// Package placement decides where the data of each owner lives: policy tmatch,
// the algorithm of the paper (PAPERS §1, the paper's §5), as DESIGN §4.1 pins it
// down.
//
// # What it does with a window
//
// [Policy.Decide] first learns: names, where users are, social levels, stored
// bytes, where new owners' data is (the site that served most of their first
// requests), and t(u), the traffic of each owner. Then it decides:
//
//   - MINIMAL, the total is at most the least capacity: every owner goes to its
//     L-match, the site with the least E = alpha·NDW + beta·NSW.
//   - OVERHEAD of the first type, the window decided before was MINIMAL: the
//     L-match of all owners is the base; a site is over by Σ t of that match.
//   - OVERHEAD of the continuous type: the base is where data stands, but new
//     owners are L-matched first; a site is over by observed traffic.
//
// In both types owners are taken out of sites that are over, most traffic first,
// until their traffic reaches the excess, and go one by one to the site that five
// factors choose among those with room: E, social weight, distance weight, least
// expected traffic, config order.
//
// Weights are rounded to 1e-9 and ties are values within TieTolerance of the
// least. Sums over friends run in ascending id and nothing is fused, so that the
// same window has the same decision on any machine, for any number of workers
// and after any restart.
//
// # States of an owner
//
//	unknown ──seen with a site, or imported──▶ standing ──decided──▶ under way
//	                                              ▲                     │
//	                                              └──any outcome────────┘
//
// An owner without a known location is never moved. One under way counts where it
// goes, and isn't moved again until its outcome is there. Done: it stands at the
// destination, and its cooldown begins at the end of the last window. Failed,
// expired: it stands where it stood, and may be tried again under a new version.
// Refused: the same move, from there to there, is not sent again until a decision
// wants another one.
//
// # What holds a move back
//
// Each owner that stays has one reason, which Explain tells and the record
// counts. What the text of the design leaves open is settled like this:
//
//   - A site where the data is that ties with the L-match in all three weights is
//     as good: NoImprovement, though config order would name another.
//   - Normalisation runs over all sites of the configuration; residency and
//     evacuation then remove edges. The first residency rule that matches an
//     owner binds it, and an owner whose rule forbids where it is counts as new.
//   - Owners that cannot be moved (pinned, under way, in cooldown) stand where
//     they are in the base match too, and are passed over by extraction. One
//     without room stays where its data is, and is expected there.
//   - Windows that are not decided, because they are incomplete or thin, are no
//     predecessors: the case goes on from the last decided one. A frozen window
//     is classified.
//   - Limits take overload first, in the order of extraction, then L-matches by
//     traffic. An owner held back before its first match is still a new one.
//   - An evacuated site takes nobody in and gives all up, within the others'
//     room; it is not counted as least capacity. A cooldown gives way to it, a
//     pin does not. The moves are under the limits.
//   - A rollback takes owners to where they were before the first move of the
//     time it undoes. Only residency, a pin and a move under way hold it back.
//   - Versions are used up by advice too, so that one owner and version have one
//     outcome; nothing else of a window that isn't acted on enters the state but
//     that new owners have been matched.
//
// # Failures
//
// New and Parse return every fault of a configuration ([ErrConfig]); Restore
// refuses what is not a whole snapshot ([ErrSnapshot]). Nothing else fails: rows
// that cannot be used, sites that nobody knows and outcomes nobody waits for are
// counted, in reasons or by [Policy.Ignored].
//
// # Scale
//
// State is in columns by id, without pointers: about 200 bytes an owner with five
// friends. Distances are kept in two bytes each with a bound on their error, and
// computed exactly where that does not tell sites apart (see lmatch.go). L-matches
// are computed again only for owners for which something has changed.
package placement
