package telemetry

import "errors"

var (
	// ErrOptions is returned for options that mean nothing, such as an unknown
	// level. Nothing was made.
	ErrOptions = errors.New("unusable telemetry options")

	// ErrToken is returned by NewServer for an address off loopback without a
	// token. Nothing was bound.
	ErrToken = errors.New("a token is needed off loopback")

	// ErrClosed is returned by Run of a server that was closed or has run.
	ErrClosed = errors.New("telemetry server is closed")
)
