// Package identify finds out whose data a request asks for, and who asks, from
// what the request holds: its path, a header, a cookie, a claim of a token, or
// the address that it came from (DESIGN §4.1, owner routing).
//
// A [Set] is a list of rules that is gone through in order: the first rule that
// yields a value decides. A value that cannot be an id (longer than
// event.MaxID, not UTF-8, with control characters) counts as none and is told as
// such, so that it can be counted. So does what is taken from a path of which some
// services make another one ("/u/ada/..;/bob", "..%2f", "%252e%252e").
//
// Paths are compared in their normal form ([Normal]): escapes of characters that
// need none are undone, the others are in capitals, dot segments are gone. An empty
// segment is nobody's name: "/u//x" has no owner. Of what a pattern takes all escapes
// are undone, that of a slash too: so one owner has one name however a client spells
// it, and the one that a header, the redirector and the service have. The segments of
// a pattern are
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
