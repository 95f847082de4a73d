package door

import "errors"

var (
	// ErrOptions is returned by Options.Check for an address or a token that can't be
	// one.
	ErrOptions = errors.New("unusable options of a server")
	// ErrToken is returned by Options.Check for an address off loopback that is
	// neither public nor has a token of at least 16 bytes.
	ErrToken = errors.New("a token is needed off loopback")
	// ErrClosed is returned by Server.Begin and Serve of a server that was closed or
	// has served. It does nothing more.
	ErrClosed = errors.New("the server is closed")
)
