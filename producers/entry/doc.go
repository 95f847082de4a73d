// Package entry is the live entry point of a site: an HTTP/1.1 and HTTP/2
// reverse proxy that finds out whose data a request asks for, sends it where
// that data is, measures, and makes a row of it (DESIGN §3.1, §4.1 owner
// routing).
//
//	client ─▶ entry of site B ─┬─ owner here, unknown, or none ──▶ a server of B
//	          (publishes       ├─ owner at A: forward ──▶ entry of A ──▶ a server of A
//	           the row)        └─ owner at A: redirect ──▶ 307 to A's URL
//
// # A request
//
//	connection ─▶ strict.Conn ─▶ net/http ─▶ identify ─▶ route ─▶ gate ─▶ send ─▶ answer ─▶ row
//	              refuses what               component,  ▲        writes   │
//	              isn't HTTP                 owner, …    └── 421, pause ◀──┘
//
// net/http serves; package strict stands in front of it for HTTP/1 and package
// upstream behind it. Requests of HTTP/1.1 that are a head and nothing else have a
// shorter way beside net/http's server, up to the first of a connection that is
// more (simple.go). One goroutine carries a request from its first byte to its
// row. Nothing on the way waits for the bus: [Publisher] and [Locations] never
// block, and without them requests are served just so.
//
// # Where a request goes
//
// The location of the owner decides. Where none is known, Options.Unknown does,
// within what Options.Residency allows. A site of which the configuration knows
// nothing counts as not known, and is counted.
//
//   - Here: a server of the site. Writes go through the [Gate] first: while the
//     mover holds the owner they wait, for at most Options.Hold.
//   - Elsewhere: forwarded to that site's entry point, or answered with 307 where
//     Options.Answer says so or no way leads there. A request that changes the
//     protocol is never redirected, and neither is one for what has just moved: the
//     other entry point may not have heard of it and would send the client back.
//   - Here, and the service answers 421 with Penstock-Site ("its data isn't here"):
//     the word is learnt and followed once at once, then after pauses of 5 to
//     100 ms, until Options.Hold is over and the answer is 503 with Retry-After.
//     A body is sent again as long as no more than Options.Replay bytes of it were
//     read; beyond that the client gets 307 and sends it again itself. A 421
//     without Penstock-Site is an answer like any other.
//   - A request that a peer forwarded is never forwarded again. If its data is not
//     here the answer is 421, and the peer follows. So an answer has taken at most
//     one hop. A peer that knows a newer version than this entry point is believed.
//   - A request that bears Penstock-Hop and is no known peer's is believed nothing,
//     but it isn't forwarded or redirected either: it is served here, or answered
//     with 508 and Penstock-Site. So no request goes in circles, whatever the keys
//     and rules of two entry points. The one that forwarded it follows a word that
//     is newer than its own; else the client gets the 508, and the log tells once of
//     each site that the keys differ.
//
// # Components, and sites by shares
//
// A service may have parts: Options.Component, which owners' data is of, and
// Options.Components. On the address for clients the first public component counts
// whose hosts and path match, else it is Options.Component. What isn't public can't be
// reached there, whatever a client says. On Options.Internal the components of the
// site call each other, without sidecars:
//
//	client ──▶ clients' door ──▶ web ──▶ internal door ─┬─ the own site's ──▶ cart
//	                        Penstock-To: cart           └─ another's: forward ──▶ its entry ──▶ cart
//	                        Penstock-Component: web
//
// The callee is named by Penstock-To, else found by host and path; one that is
// neither gets 404. The caller names itself, and is "unknown" if it doesn't. Nothing
// else tells components apart there: who reaches that address may call them all, in
// anybody's name. Tokens aren't asked for, and X-Forwarded-* is believed.
//
// Where Options.Shares has a table for a link (calling component, or "entry" for
// calls from outside; this site; component) it chooses the site:
//
//   - The known location of an owner comes first, and so do rules of
//     Options.Unknown other than UnknownLocal, and residency. Requests for an owner of
//     unknown location stay together. Only Options.Component has owners.
//   - Writes go to the row's site for writes, else to ComponentRoute.WritesAt, if either
//     is there: also where no table has the link. What is a write goes by the method
//     (event.OpOf), so that all of gRPC is.
//   - A session (Options.Session) stays where it is while that site is up and has a
//     share.
//   - Else sites take turns; the shares are met to a request.
//
// A peer that is named a component serves it at its site or not at all: one hop. If
// the chosen site has no server of it, none that can be reached, or none for which not
// too many wait already (upstream.ErrBusy), one other is
// tried: the own one, else the one with the greatest share; within
// ComponentRoute.Sites, and within a budget of 20 % of the requests, which is not for
// calls that a peer refused because it doesn't know this entry point. What may have
// reached a server is not sent again unless it may be sent twice. Writes that have
// a site are not tried elsewhere.
//
// Shares are told which replicas are down: the own site's while no server of its pool
// is well, another's after three failures in a row or when its entry point says that
// it has none, or doesn't know this one. It is tried again after 5 to 40 s, and is up with the first answer. While
// all are down all are tried.
//
// # Probes
//
// A table may order probes of sites that get too few requests. They are copies of
// real requests that read (GET, HEAD, OPTIONS, no body), sent in the background after
// the request itself, the whole of it with its credentials; only Penstock-Probe: 1 and
// the span are theirs. One that is due at another request waits for the next of those.
// Writes are never copied, nor are probes. A service that hands the mark on with its
// own calls makes them part of the probe. At most 256 KiB of an answer are read, for at
// most 10 s; at most 64 run at once, and never more than Options.ProbeLimit of a
// link's requests are copied, whatever a table says.
//
// # Headers
//
// Of an answer about an owner: Penstock-Site (who served; where to go for 307, 421
// and 508), Penstock-Version (of the location, if known), Penstock-Hops (0 or 1).
// Peers tell each other Penstock-Hop, Penstock-Peer, Penstock-User and
// Penstock-Owner (ids escaped as in URLs), Penstock-Version, Penstock-Server, and
// penstock-service, penstock-wait and penstock-limit in Server-Timing; of calls also Penstock-To,
// Penstock-Component and Penstock-Probe, and of an answer of the entry point's own
// Penstock-Reason: why there is no other. A request is a peer's if it
// shows the peer key, or, where none is configured, comes from a trusted proxy.
// Anybody behind such a proxy could have written what a peer writes: it has to take
// Penstock-Hop off, and user, owner, version and component are not believed without
// the key. A forwarded call (Penstock-Hop with Penstock-To) that doesn't show the key
// gets 508 and a text that the keys differ: it was meant for something else than what is
// served to strangers, and a peer with another key would take that answer for the
// component's. So it tries another site, see above; where none may, its answer is 503.
// A stranger who writes both harms nobody: the row names no component, see below.
// From anybody else every Penstock-* header is taken off before anything looks at
// it (but that there is a Penstock-Hop at all, see above), and so are those that a gateway could take for one (Penstock_User).
//
// Answers on the internal listener say Penstock-Site too. Services get
// Penstock-Probe, of a probe, and nothing else of ours.
//
// Services get the client's address in X-Forwarded-For, with X-Forwarded-Proto
// and X-Forwarded-Host; what a client says itself in any X-Forwarded-*, in
// Forwarded and in X-Real-IP counts only from a trusted proxy. Host stays as the
// client wrote it; Via is not added. Headers of the connection are taken off.
// traceparent goes on with a span of the entry point's, in the client's trace or
// in a new one.
//
// # Rows
//
// The entry point that the client called publishes one row for each answer, also
// for its own (401, 413, 307, 503, …), and whoever made an attempt that failed and
// was followed by another publishes that one. What it answers by itself, with no server
// and no peer to answer for it, has no to_component: else clients could move traffic
// off a site by asking for what is refused. So have redirects, 508, bodies that could
// not be read, and 503 while an owner is being moved, here or by a peer's word. Its 502,
// 503 and 504 because servers failed, or none could be had, name the component, at the
// site that was chosen. What was no request has the class
// bad-request and the status that it got. A client that left before the end of
// its answer makes a row of status 499, which nobody ever sees; an answer that the
// server broke off one of 502. time is when the answer was done. wait is the time
// at the gate, for a place at a server and for a connection, here and at the peer; service is what
// Server-Timing says, else the time from the request's last byte to the answer's
// first; network is the rest of that time, less what a service says that it waited for
// those it called (Options.ServerTiming): that is in their rows. If the answer began
// before the body had ended, the last byte that had come by then counts. All are of one
// clock but what Server-Timing says, so network may be negative, and is published so
// (P18); so it is if a peer's wait fell into the time in which the client sent its body.
// Of a connection that changed its protocol they are the handshake's, and bytes and
// time are of its end.
//
// Where an upstream.Dispatcher has a limit for the request, overdue is by how much the
// response missed it, 0 if it didn't: from when a server was first asked for (with the
// time at the gate) to the end of the answer, as far as that was waited for. A client that
// left while its request waited is overdue if that was after the limit; what was turned
// away has none, and neither has an attempt that was followed by another.
//
// What the client takes to send its body and to take its answer is thus in none of the
// three, and neither is the answer after its first byte, which comes no faster than it
// is taken: slow clients would look like a slow replica, and move traffic off it. So
// time - wait - service - network is not when the request came, but when it would have
// come if its client had taken no time. time is the end all the same: windows go by it,
// and a slow request must not be late.
//
// # What is refused
//
//	400 no HTTP, of whatever kind; a body cut short    413 body too large
//	401 a token is required (JWT.Required)             414 request line too long
//	405 CONNECT, TRACE                                 417 an unknown expectation
//	408 header or body too slow                        431 header too large
//	501 unknown coding, a method that isn't one        505 another version
//	508 forwarded by somebody who isn't known, to where the data is not, or for a component
//	404 a call on the internal listener for what is no component
//
// All end the connection, but 401, 404, 508, 405 of HTTP/2 and 413 there. 502, 503 and 504
// are the entry point's own where no server answered; their text says no more than
// that. 503 says by Retry-After when to come again: where too many wait, after what they
// are expected to wait, in whole seconds. Where connections are at their limit a new one gets 503 and is closed. An
// answer that comes before the end of a request's body ends the connection after
// it.
//
// # States
//
//	made ──Run──▶ serves ──context ends──▶ drains ──all finished, or Drain over──▶ ended
//
// New listens already, so that connections wait for Run. Draining, the listener is
// closed, idle connections end, running requests and changed protocols have
// Options.Drain, and answers say that their connection ends. The internal listener
// goes on until the requests of clients are done, which may call through it; then it
// drains in what is left of the time. Probes are broken off at once. Run returns nil
// then; an error only if a listener fails by itself. Probes and the health of replicas
// are Run's: the Handler alone has neither.
package entry
