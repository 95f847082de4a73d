// Package accesslog reads the access logs of web servers: one line, one
// request (DESIGN §3.1, issue of the loop; P07).
//
// A [Format] is a list of literals and named fields, compiled once from a
// pattern; the combined and the common format of Apache and NGINX are two
// instances of it. A [Parser] matches lines against a format and fills an
// [event.Request]:
//
//   - time: the log's own, with its zone; Apache and NGINX write a line when
//     they are done with the request, as the column asks for
//   - user: a keyed hash of the client address; the address itself goes
//     nowhere. The name that a client logged in with is not used
//   - owner: the first segments of the path, see [Options]
//   - op: by the method; what RFC 9110 and WebDAV call safe is a read
//   - bytes: what was sent, at most event.MaxRequestBytes. "-" is Apache's spelling of 0 bytes sent (%b), and
//     so is 0 here, not missing
//   - status; "-" is missing
//   - lat, lon: by a [Locator], unknown without one
//   - class: bad-request where the request field is not a request, else absent
//
// Quoted fields hold the servers' escapes (\xNN, \" and so on), which are
// undone. A byte of a path that is not printable ASCII is written as %NN, so
// that an owner is the same however the server logged it.
//
// A Parser is not safe for concurrent use. It holds no files and no goroutines.
//
// Failures: a line whose format does not match to its end gives a *[LineError]
// that names the first field that did not match, where, and what was expected
// there. Nothing panics, whatever the bytes.
package accesslog
