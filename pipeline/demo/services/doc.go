// Package services is a small broker in six parts, as HTTP services that call each
// other (a graph like that of StockTrader, PAPERS §4.1):
//
//	            ┌─▶ quotes
//	outside ─▶ web ─▶ search
//	            ├─▶ accounts ─▶ ledger
//	            └─▶ orders ─▶ accounts ─▶ ledger
//
// A [Service] is one component at one site. It knows nobody's address: it calls
// another component through the internal listener of its site's entry point, says
// who it is (Penstock-Component) and whom it wants (Penstock-To), and passes on
// what belongs to the request: the trace, and the mark of a probe.
//
// Its own work takes a time that is drawn anew for each request and spent waiting
// for a timer, so that a machine with few processors can play many services. It
// answers with Server-Timing: app is its own time, total is app and the time that
// it waited for those it called.
//
// # Control
//
// At an address of its own a service can be made slower ([Service.Control]): what
// is added counts from the next request on. That is the fault of demonstrations.
//
// # Failures
//
// What the callee did not answer with 200 is answered with 502 and the reason, a
// kind of request that nobody knows with 404.
package services
