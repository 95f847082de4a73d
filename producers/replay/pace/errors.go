package pace

import "errors"

var (
	// ErrSpeed is returned for a speed that is neither max nor a factor such
	// as 0.5x or 36000x. Nothing was sent.
	ErrSpeed = errors.New("unsupported speed")
	// ErrLag is returned by Check when a row was sent later than the limit
	// allows. All rows were sent.
	ErrLag = errors.New("the schedule was not kept")
)
