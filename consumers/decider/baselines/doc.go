// Package baselines holds the strategies of others, against which reports and
// experiments measure Penstock's own policies over the same requests: where each
// would have kept the data, who would have served, and what would have moved.
//
//   - nearest-replica, the paper's baseline (PAPERS §1.4): a full copy at every
//     site, each request goes to the site nearest to the requester, every write
//     is sent on to the n − 1 others.
//   - distance-only, the paper's third curve (PAPERS §1.4): one copy, at the site
//     nearest to the owner, whatever the load. The owner is where it was last
//     seen as a user; the copy follows at the ends of windows.
//   - volley (PAPERS §1.6): each window from scratch, the weighted spherical mean
//     of the places from which an owner's data is asked, then weighted springs to
//     these places and to the data that it communicates with, then collapsed to
//     the nearest site under capacity. See [Volley].
//   - akkio-like (PAPERS §1.6): counters of the last accessors by their nearest
//     site; the data migrates when another site's share is large enough, after
//     enough accesses, and not again within a cooldown. See [Akkio].
//
// PAPERS has of the last two only what they do, no formula and no constant: all
// formulas here are our reading, marked [A] where they stand. Residency,
// guardrails and moves that fail are not theirs: a baseline moves what it wants,
// at once.
//
// A [Box] feeds one [Ledger], which counts what any of them may want to know,
// and asks each for the site that serves. All is pure and incremental: an access
// stands for one request or for the many alike of a window's table, and what is
// counted are integers, so that both ways give the same (but for where a new
// owner's copy is put, which who comes first decides). Nothing depends on the
// order of a map; ties end at config order, then the owner's number. Distances
// are great circles (schemas/sphere).
//
// Where a single copy is when its owner is first seen: where [Box.Stand] says;
// else at the site nearest to the owner's own place, if that is known by then;
// else at the one nearest to the requester's place. Until one of these is known
// nobody serves ([None]).
package baselines
