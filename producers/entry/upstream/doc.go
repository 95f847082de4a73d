// Package upstream sends requests to the servers of one site, or to the entry
// points of one peer: it chooses a server, keeps connections, tries again where
// that is safe, and knows which servers are fit to be used (DESIGN §4.1, §7).
//
// # How a request goes
//
// [Pool.Do] picks a server, takes an idle connection or makes one, writes the
// request and reads the head of the answer, all in the calling goroutine: a
// connection has no goroutine of its own and neither has a request. The caller
// reads the body from the connection and gives the connection back by reaching
// the body's end. A body that is closed before costs the connection, unless what
// is left of it has been received already. Cancelling the request's context
// closes the connection, which ends whatever waits for it.
//
// What this fast path is not made for goes through a net/http.Transport that is
// tuned for a proxy: requests with Upgrade or Expect, with trailers, with a body
// of unknown length or of more than Options.Buffer bytes, and all requests of a
// pool that speaks HTTP/2. A smaller body is read from the client before a server
// is chosen, so that a slow client holds no connection, an early answer can't
// cross the body, and the body can be sent again.
//
// Heads of answers in the plain shape that servers send are cut out of one
// string; all others are read by net/textproto. What says how long a body is has
// to be beyond doubt (RFC 9112 §6.3): conflicting or unreadable lengths, both a
// length and chunks, or unknown transfer codings are [ErrMalformed], as is
// anything that is sent after the end of an answer.
//
// # A dispatcher
//
// With Options.Dispatcher each attempt is admitted before it is sent: it waits, with its
// small body read and without a connection, until a server has a place for it. The time
// counts as wait (Attempt.Queued to Placed). The place is given back when the attempt has
// ended, with the last of the answer's body; a retry is admitted anew, after its first
// place was given back. Who cancels the request's context leaves the queue at once. The
// pool tells the dispatcher which servers may be used, whenever that changes; one that
// goes out of use between its choice and the sending is chosen again. Of a client that still
// sends a body which isn't small it shows only when its turn has come that it has left.
//
// # When a request is sent again
//
//   - No connection, or not one byte was taken by one that had been idle: any
//     request whose body can be sent again.
//   - An idle connection ended before the first byte of an answer: requests that
//     may be sent twice, on a fresh connection to the same server. This is a
//     server that closes idle connections, not a failure: nobody is told, but it
//     is counted. An idle connection is looked at before it is used, so that only
//     what is closed in the same moment gets this far.
//   - Reset, time-out, malformed answer, 502, 503, 504: requests that may be sent
//     twice, to another server where there is one; as often as Retry.Attempts and
//     the budget allow.
//
// A request may be sent twice if its method is idempotent (RFC 9110 §9.2.2) or
// the client sends an Idempotency-Key, and its body can be had again.
//
// # States of a server
//
//	used ──failures or failed probes──▶ bad ──within the cap──▶ out
//	  ▲                                  │ beyond the cap          │
//	  │                                  ▼                         │
//	  ├──successes────────────────── suspect (used last)           │
//	  └──its time is over, or probes succeed───────────────────────┘
//
// Beside these, draining; and proving (Server.Prove), until a first probe succeeds.
//
// The cap (Health.MaxEjected) is computed with the server already out, and the
// last server never goes out. A server that takes no connections is out beyond the cap. When all are bad none is out: the pool is in panic,
// which is counted and shown (PROBLEMS P31). A server that is taken off the list
// or marked Drain gets no new request; what runs there runs to its end (P38).
//
// # Failures
//
// Sentinels are in errors.go. A failed pool does not exist: [Pool.Run] returns
// nil when its context ends, and without it everything but active probes and the
// closing of idle connections in time works.
package upstream
