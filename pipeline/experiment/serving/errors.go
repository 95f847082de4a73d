package serving

import "errors"

var (
	// ErrParams is returned for parameters that make no experiment: nothing was run.
	ErrParams = errors.New("parameters of the experiment")
	// ErrData is returned where a recording cannot be used. Nothing was run.
	ErrData = errors.New("recorded arrivals")
)
