package control

import "errors"

var (
	// ErrUndecodable is returned when bytes are not a message of this package.
	// Nothing of the input was used.
	ErrUndecodable = errors.New("undecodable control message")

	// ErrUnencodable is returned by Encode for a value that JSON cannot hold
	// without a change: text that is not UTF-8, a number that is not finite.
	ErrUnencodable = errors.New("unencodable control message")
)
