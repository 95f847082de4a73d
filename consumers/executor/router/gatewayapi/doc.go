// Package gatewayapi is a router.Target that keeps the weights of backendRefs in
// HTTPRoutes of the Kubernetes Gateway API (gateway.networking.k8s.io/v1), through
// the API server's REST interface.
//
// A Route of the options says which rule of which HTTPRoute carries the calls of a
// link, and which of its backendRefs stands for which site. Only the weights of
// these are ever written; other backendRefs, rules, filters, labels and annotations
// stay as they are, byte for byte.
//
// # How weights are written
//
// As a JSON patch (RFC 6902) that first tests the object's resourceVersion and the
// name of each backendRef that it touches, then sets weights. Server-side apply and
// merge patches can't do this: the lists of rules and of backendRefs are atomic in
// the published schema, so that whoever applies one weight owns, and writes, all
// rules. If somebody else wrote meanwhile the patch changes nothing, and it is made
// again from what is there then.
//
// Weights of a rule's sites sum up to Units, by largest remainder, so that none
// above 0 becomes 0. Where a foreign backendRef of the rule has weight too, the sum
// stays what it was, so that its part of the requests does as well; the resolution
// is then that sum.
//
// # States
//
// Of a site's backendRef: usable; without ready endpoints, as its Service's
// EndpointSlices say (a gateway would answer 503 for its part of the requests, so
// its weight goes to the others until it has some again); draining. If that leaves
// none all keep their weights: nothing at all is worse (PROBLEMS P31).
//
// Of a rule: untouched; with a table's weights; cleared, with the weights that it
// had before the first table. Those, and what drains, are kept in Options.StateFile,
// so that they outlive the process.
//
// Of a written version: unconfirmed; accepted, when a parent's condition Accepted is
// true at its generation; refused, when all who accepted the one before say that it
// is false. Silence is consent after Options.Wait.
//
// # Failures
//
// An API server that can't be reached, is overloaded or doesn't know our token is
// router.ErrUnreachable. What it, an admission hook or a gateway refuses is
// ErrRefused; what was written of that table is written back, and the Keeper doesn't
// send it again until it changes (PROBLEMS P37). Whoever else sets these weights (a
// repository that is applied again and again) is found at the Keeper's next look,
// counted, and overruled.
//
// The API doesn't tell whether requests are still running: Options.Running asks
// elsewhere. Without it a drain takes a replica's weight away and never says that it
// is done.
package gatewayapi
