// Package admin is how operators look into a coder and have it scrubbed, over HTTP on an
// address of its own (DESIGN §6): `penstock coder status` and `penstock coder scrub` ask
// it by Client.
//
//	GET  /v1/status                              Status
//	POST /v1/scrub?repair=…&orphans=…&rate=…     lines of JSON: progress …, then a report
//	POST /v1/store-is-new?store=…                TakenIn
//	GET  /healthz                                200 while the coder answers; needs no token
//
// Who may come in is the door's business: on loopback those who name loopback, elsewhere
// those with a token. No page of a browser may, for it could be anybody's.
//
// States: New binds the address; Run serves until its context ends, which ends a scrub
// that runs. A scrub also ends when who asked for it goes away; what it repaired stays.
// Failures: a second scrub is refused (ErrScrubbing, 409); what goes wrong within one is
// its last line. The last scrub is told until the process ends.
package admin
