package splitting

import "errors"

var (
	// ErrParams is returned for parameters that make no experiment: nothing was
	// run.
	ErrParams = errors.New("parameters of the experiment")
	// ErrData is returned where recordings of arrivals cannot be used: a file is
	// missing or has another form. Nothing was run.
	ErrData = errors.New("recorded arrivals")
)
