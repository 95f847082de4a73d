package servers

import "errors"

var (
	// ErrPromise is returned for a run in which something was not kept that is
	// promised. The result says what.
	ErrPromise = errors.New("a promise was not kept")
	// ErrVoid is returned for a run that shows nothing, whatever it measured. The
	// result says why.
	ErrVoid = errors.New("the run is void")
	// ErrOptions is returned for options that make no demonstration. Nothing was
	// started.
	ErrOptions = errors.New("these options can't be used")
)
