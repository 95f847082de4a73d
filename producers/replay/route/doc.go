// Package route says which site serves a request of a replay, and where each
// owner's data is (DESIGN §4.1, §5). It is pure.
//
// A [Table] learns owners as rows pass, and changes only by rows in time and by
// the outcomes of moves. Where an owner's data is when it is first seen:
//
//   - imported: where the import says;
//   - [Follow]: at the allowed site nearest to the first place seen: the owner's
//     own if it has been a user before, else the requester's; without a place at
//     the first allowed site;
//   - [Recorded]: at the site that served most of its requests in the first
//     window in which a site served one, ties in config order. It is known at
//     the end of that window.
//
// Late and future rows are routed by what is known and teach nothing.
//
// Failures: [ErrSite] for an imported location at a site that isn't configured.
package route
