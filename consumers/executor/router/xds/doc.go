// Package xds is a router.Target that serves Envoys, and other clients of xDS, the
// configuration they were given with the shares of split tables in it: as the
// weights of a route's weighted clusters, or of a cluster's localities.
//
// Options.Base is the whole configuration: listeners, routes, clusters, endpoints.
// A Split says which named route, or which cluster's endpoints, carry the calls of
// a link. Only their weights are ever changed; all else is served as it was given.
//
// # Consistent snapshots
//
// All clients get the same snapshot, in the state-of-the-world and in the delta
// variant. A table becomes a new snapshot, whole; its version changes only for types
// of which something changed. It is checked before it is served: by the validators
// of its messages, and for references between them.
//
//	good ──Put──▶ unconfirmed ──every subscriber acknowledged it──▶ good
//	  ▲                │
//	  └──one refused───┘
//
// # Failures
//
// A client that refuses a snapshot (NACK) keeps what it had. If that snapshot is
// not confirmed yet, the last good one takes its place for all, under its old
// version, and the table is rejected with the client's words: it is not sent again
// until it changes (PROBLEMS P37). A client that refuses what is good, which others
// took, has its stream ended, so that nothing is sent to it in a tight loop; it
// returns at its own pace. Clients that say nothing within Options.Wait are counted,
// and may still refuse.
//
// The protocol doesn't tell whether a client's requests are still running, nor what
// it finds healthy: Options.Running and Options.Ready ask elsewhere. Without
// Running, a drain takes a replica's weight away and never says that it is done.
package xds
