// Package identify finds out whose data a request asks for, and who asks, from
// what the request holds: its path, a header, a cookie, a claim of a token, or
// the address that it came from (DESIGN §4.1, owner routing).
//
// A [Set] is a list of rules that is gone through in order: the first rule that
// yields a value decides. A value that cannot be an id (longer than
// event.MaxID, not UTF-8) counts as none and is told as such, so that it can be
// counted.
//
// Paths are compared in their normal form ([Normal]): escapes of characters that
// need none are undone, the others are in capitals, dot segments and empty
// segments are gone. Of what a pattern takes all escapes are undone: so one owner
// has one name however a client spells it, and the one that the redirector and the
// service know. The segments of a pattern are
//
//	text        itself
//	*           any one segment
//	a{owner}b   one segment, of which what is between a and b is taken
//	{owner:N}   up to N segments, as they stand, slashes included
//	**          at the end: any number of segments, none too
//
// Tokens are JSON Web Tokens in Authorization: Bearer. With a key they count
// only if their signature and times are right; without one they are read as
// they are, which [Tokens.Verifies] tells.
//
// Everything here is safe for concurrent use, and but for tokens and for paths
// that aren't in their normal form allocates nothing. Nothing panics, whatever
// the bytes.
package identify
