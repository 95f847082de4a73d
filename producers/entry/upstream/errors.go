package upstream

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrConfig is what New and Set return for options that can't be. Nothing was
	// changed.
	ErrConfig = errors.New("upstream: bad options")
	// ErrNoServer occurs when the pool has no server that takes new requests: its
	// list is empty, or all drain. Nothing was sent.
	ErrNoServer = errors.New("upstream: no server")
	// ErrRequest occurs for a request that can't be written as HTTP: its method,
	// target or a header holds what would end it early. Nothing was sent.
	ErrRequest = errors.New("upstream: request can't be sent")
	// ErrRequestBody occurs when the body could not be read from the client, or is
	// shorter than it should be. Nothing was sent, or the server has a part and
	// its connection was closed.
	ErrRequestBody = errors.New("upstream: body of the request")
	// ErrConnect occurs when no connection to the server could be made in time.
	// Nothing was sent.
	ErrConnect = errors.New("upstream: connect")
	// ErrBusy occurs when all connections that a server may have are in use for
	// longer than Timeouts.Queue, or when the Dispatcher has too many requests waiting:
	// then it comes with a *BusyError. Nothing was sent.
	ErrBusy = errors.New("upstream: no place is free")
	// ErrStale occurs when a connection that had been idle ended before the answer
	// began and the request may not be sent twice. Whether the server acted on it
	// is unknown.
	ErrStale = errors.New("upstream: idle connection was closed by the server")
	// ErrReset occurs when the connection ended before the answer did. Whether the
	// server acted on the request is unknown.
	ErrReset = errors.New("upstream: connection ended")
	// ErrTimeout occurs when the server took too long to take the request, to
	// begin its answer, or to go on with it. Whether it acted is unknown.
	ErrTimeout = errors.New("upstream: server too slow")
	// ErrMalformed occurs when what the server sends is not an answer in HTTP/1, or
	// its length is in doubt. Its connection was closed.
	ErrMalformed = errors.New("upstream: malformed answer")
)

// Reasons of a failed attempt, as in Attempt.Reason and the metrics. The reason
// of an attempt with a whole answer is empty, or ReasonStatus.
const (
	ReasonAbandoned = "abandoned" // the answer's body was closed before its end
	ReasonBody      = "request-body"
	ReasonBusy      = "busy"
	ReasonCancelled = "cancelled" // by the caller, who may have run out of time
	ReasonConnect   = "connect"
	ReasonMalformed = "malformed"
	ReasonNoServer  = "no-server"
	ReasonRequest   = "request"
	ReasonReset     = "reset"
	ReasonStale     = "stale"
	ReasonStatus    = "status" // one of Retry.Statuses
	ReasonTimeout   = "timeout"
)

// reasons are all of them, in the order of their counters.
var reasons = [...]string{
	ReasonAbandoned, ReasonBody, ReasonBusy, ReasonCancelled, ReasonConnect, ReasonMalformed,
	ReasonNoServer, ReasonRequest, ReasonReset, ReasonStale, ReasonStatus, ReasonTimeout,
}

// sentinels are our errors with their reasons; the first one that fits counts.
var sentinels = [...]struct {
	err    error
	reason string
}{
	{ErrRequestBody, ReasonBody},
	{ErrRequest, ReasonRequest},
	{ErrNoServer, ReasonNoServer},
	{ErrBusy, ReasonBusy},
	{ErrConnect, ReasonConnect},
	{ErrStale, ReasonStale},
	{ErrMalformed, ReasonMalformed},
	{ErrTimeout, ReasonTimeout},
	{ErrReset, ReasonReset},
}

// explain names the reason of an error, and makes one of ours of a socket's.
func explain(ctx context.Context, err error) (reason string, ours error) {
	if ctx.Err() != nil {
		return ReasonCancelled, fmt.Errorf("upstream: %w", context.Cause(ctx))
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.reason, err
		}
	}
	if timedOut(err) {
		return ReasonTimeout, fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return ReasonReset, fmt.Errorf("%w: %w", ErrReset, err)
}

// blames reports whether a reason says something about the server.
func blames(reason string) bool {
	switch reason {
	case ReasonConnect, ReasonMalformed, ReasonReset, ReasonStatus, ReasonTimeout:
		return true
	}
	return false
}
