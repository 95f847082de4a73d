// Package strict stands between a client's connection and net/http's server and
// lets only HTTP/1.x through that all parties read alike (RFC 9112; the issue's
// request smuggling corpus).
//
// A [Conn] reads what the client sends, checks it, and hands the same bytes on:
//
//	   ┌──────────── whole message read ───────────┐
//	   ▼                                           │
//	[head] ──well-formed──▶ [body: length, chunks] ┘
//	   │  │ └──with Upgrade──▶ [held] ──hijacked──▶ [raw]
//	   │  └ idle or silent too long: closed without a word
//	   └──not well-formed, too large, too slow──▶ [refused]
//
// A head is held back until it is whole and right. What is not is replaced by
// one request that only this package can make ([Conn.Refused] tells it apart),
// so that the answer, with its status, goes the way of all answers, after those
// that the client still waits for; then the connection ends. Nothing after a
// refused byte is read. A body that is not well-formed ends in a [*BodyError].
//
// Where RFC 9112 leaves a choice, the stricter one is taken: a line ends in
// CRLF and in nothing else; a bare CR, a NUL and a folded line are refused; so
// are Content-Length beside Transfer-Encoding, more than one of either, any
// coding but chunked, a Host that is missing, doubled, or unlike the target's,
// space before a colon, and a Connection field that names what a proxy or a
// service decides by. What a target may hold are printable ASCII characters;
// one that says #, or % without two hexadecimal digits in its path, is refused.
//
// The header timeout runs from the first byte of a head (of a new connection:
// from its start), the idle timeout between requests. While a request is
// answered neither does; a client that leaves meanwhile is seen ([Conn.Watch]).
// Both are late by up to an eighth. A Conn is used as net/http uses one: one reader
// at a time. Requests of which nothing follows the head can be had by themselves
// ([Conn.Next]).
package strict
