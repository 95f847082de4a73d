// Package telemetry is how a running Penstock is watched: its log, its metrics,
// and whether it is alive and ready.
//
// [NewLogger] makes the log: text on a terminal, JSON elsewhere. [NewRegistry]
// makes a Prometheus registry of its own, never the global one, and [New] the
// [Metrics] in it, names penstock_…: rows by account, lag, time and results of
// decisions, outcomes. [Readiness] holds what each part says of itself: a part
// is not ready, with a reason, from when it is registered until it says
// otherwise, so that a start is never taken for readiness. [Server] serves
//
//	/metrics  the registry
//	/healthz  200 while every registered check passes, else 503 and the faults:
//	          what only a restart can mend
//	/readyz   200 when every part is ready, else 503 and which are not, and why
//
// The server binds to loopback; elsewhere it needs a bearer token (DESIGN §6).
// It is bounded in headers, connections and time. States of a Server: bound
// (after NewServer), serving (in Run), closed (after Run or Close). Failures: an
// address that cannot be bound fails NewServer, a listener that fails ends Run
// with its error; the end of the context ends Run with nil.
package telemetry
