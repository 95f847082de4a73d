// Package redirector tells clients where owners' data is (DESIGN §4.1), over HTTP
// and over the bus, from a directory in memory.
//
//	GET|HEAD /v1/locations/{owner}   where it is, as JSON; ETag is the version
//	POST     /v1/locations           of many owners at once
//	any      /r/{owner}/rest?query   307 to the same at the site that holds it
//	bus      redirector.locate       where an owner is; its id is the body
//	bus      redirector.locate-many  as POST
//
// An owner is one segment of the path, percent-encoded where need be, so that it
// may have any bytes. What follows it is passed on as it came, but for bytes that
// no URL has, which are encoded, and for segments "." and "..", which are refused:
// no client sends them, and they could leave the path that the site's URL names.
// A Location always begins with a configured URL.
//
// Every answer about an owner says in Penstock-Age how many seconds ago the
// directory was in step with the bus, 0 while it is. Without the bus the last known
// is served, for MaxAge if there is one: Age and Warning say so too, and caches are
// told to ask again soon. Otherwise they may keep an answer to the end of the
// placement window, before which nothing is decided.
//
// The server binds to loopback and answers to loopback names only; elsewhere it
// needs a bearer token, unless it is public. It has limits for each client and for
// all together, for headers, bodies, connections and slow clients. It sends no
// CORS headers.
//
// States: bound (after New), serving (in Run), ended. Failures: an address that
// can't be bound fails New, a listener that fails ends Run with its error. The bus
// fails nothing here. Whatever is refused is counted by what it was.
package redirector
