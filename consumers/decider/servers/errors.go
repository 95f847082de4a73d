package servers

import "errors"

var (
	// ErrConfig is returned by New, Parse and Config.Validate when a configuration
	// cannot be used. The error lists every fault with its field; no policy was made.
	ErrConfig = errors.New("servers configuration")
	// ErrSnapshot is returned by Restore when the bytes are not a whole snapshot of this
	// package. The policy's state is undefined: make another one.
	ErrSnapshot = errors.New("servers snapshot")
)
