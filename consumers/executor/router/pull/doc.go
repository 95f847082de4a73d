// Package pull tells applications the split, over HTTP, so that they can follow it
// without our proxy (DESIGN §4.2):
//
//	GET|HEAD /v1/split/{component}?from_site=SITE[&from=COMPONENT][&wait=30s]
//
// The answer (control.SplitAnswer) names the sites that calls from a component at a
// site go to, their shares, and the servers there. Its ETag is the epoch; with
// If-None-Match the same one is 304, and with wait that answer is kept back until
// there is another, for 60 s at most. A component is one segment of the path,
// percent-encoded where need be. Without a table calls stay at their site, but for
// writes that have a site by the configuration (Options.WritesAt).
//
// The epoch says nothing of servers, which are configured: Penstock-Servers, a
// digest of them, stands in every answer, and who sends it back with If-None-Match
// is told of others, too. What is configured has no epoch of its own: the tag
// of a configured default, and of an answer with a configured site for writes, has a
// digest beside the epoch.
//
// Every answer says in Penstock-Age for how many seconds the bus has been away, 0
// while it is there: what was last known is told on, and Age and Warning say so too.
// Before what is in force was read from the bus the answer is 503.
//
// The server binds to loopback and answers to loopback names only; elsewhere it
// needs a bearer token, unless it is public. It has limits for each client and for
// all together, for headers, connections, slow clients, and those who wait. It
// takes no bodies and sends no CORS headers.
//
// States: bound (after New), serving (in Run), ended; those who wait are answered
// when it ends. Failures: an address that can't be bound fails New, a listener that
// fails ends Run with its error. Whatever is refused is counted by what it was.
package pull
