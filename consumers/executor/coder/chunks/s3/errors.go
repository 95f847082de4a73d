package s3

import "errors"

var (
	// ErrOption is wrapped by what New returns for options that can't be used. Nothing
	// was sent.
	ErrOption = errors.New("unusable option")
	// ErrTooLarge is returned by Put for a blob of more than 10,000 parts. Nothing was
	// sent.
	ErrTooLarge = errors.New("blob too large for its parts")

	// errRange: the service sends the whole where a range is asked for.
	errRange = errors.New("the service does not send ranges")
)
