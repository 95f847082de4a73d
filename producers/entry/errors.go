package entry

import "errors"

var (
	// ErrOption is wrapped by what New says of options that make no entry point.
	// Nothing was started.
	ErrOption = errors.New("unusable option of an entry point")
	// ErrRunning is what Run says when it is called a second time.
	ErrRunning = errors.New("entry point runs already, or has run")

	// What ends the reading of a request's body.
	errTooLarge   = errors.New("body larger than the limit")
	errTooSlow    = errors.New("body slower than the least rate")
	errNotKept    = errors.New("body can't be sent again")
	errSuperseded = errors.New("body is sent by another attempt")
)
