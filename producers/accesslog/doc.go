// Package accesslog reads the access logs of web servers and proxies: one line,
// one request (DESIGN §3.1, docs/logs.md; P07, P09, P18).
//
// A [Format] is one small file (formats/, or a user's own): [Shape]s say how a
// line is cut into fields, and one mapping, [Sources] for each column, says what
// fills the columns of a row:
//
//	line ── Unwrapper ── Cut ── shape ── fields ── mapping ── event.Request
//	        prefixes,    several  format    checks    unit, pick, match,
//	        parts        records  string,             lookup, expression
//	                              JSON, header
//
// Format strings of NGINX, Apache, HAProxy and Envoy, and the templates of text,
// are compiled to literals and fields that a byte scanner finds; mappings without
// match, lookup or expression are a list of steps that allocate nothing. The
// combined format is one such instance. JSON is read by a parser that is used
// again for each line.
//
// What rows get:
//
//   - time: when the server was done with the request, as the column asks for. To
//     a time that is the request's start the whole duration is added
//   - user: a keyed hash of the client address; the address itself goes nowhere.
//     The name that a client logged in with is not used unless a mapping does
//   - owner: the first segments of the path, see [Options]
//   - op: by the method; what RFC 9110 and WebDAV call safe is a read
//   - bytes: at most event.MaxRequestBytes; 0 where the log has none, as Apache's
//     %b writes "-" for it
//   - status, wait, service and network: missing where there is none, never 0. Of
//     a whole time what wait and service leave is the network's; of a whole alone
//     all is service. Negative values are kept
//   - to_server: of several tries the last owns the row
//   - lat, lon: by a [Locator], unknown without one
//   - class: bad-request where the request is none; else what the mapping says
//
// Fields hold the servers' escapes (\xNN, \", #NN and so on), which are undone. A
// byte of a path that is not printable ASCII is written as %NN, so that an owner
// is the same however the server logged it.
//
// A Format is immutable. A Parser, Lines and an Unwrapper are not safe for
// concurrent use; they hold no files and no goroutines, and bounded caches. What
// is parsed follows from the line, the format and the options alone, but for
// delimited formats, whose header names the fields from then on.
//
// Failures: a line that no shape of its format fits gives a *[LineError] that
// names the first field that did not match, where, and what was expected there.
// A format with a fault is refused when it is compiled. Nothing panics, whatever
// the bytes.
package accesslog
