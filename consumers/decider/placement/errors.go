package placement

import "errors"

var (
	// ErrConfig is returned by New, Parse and Config.Validate when a
	// configuration cannot be used. The error lists every fault with its field;
	// no policy was made.
	ErrConfig = errors.New("placement configuration")
	// ErrSnapshot is returned by Restore when the bytes are not a whole snapshot
	// of this package, or when the state read does not have the digest that the
	// snapshot names. The policy's state is undefined: make another one.
	ErrSnapshot = errors.New("placement snapshot")
)
