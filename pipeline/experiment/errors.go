package experiment

import "errors"

var (
	// ErrParams is returned for parameters that make no experiment: nothing was
	// run.
	ErrParams = errors.New("parameters of the experiment")
	// ErrData is returned where the measured round trips, prices or coordinates
	// cannot be used: a file is missing or has another form. Nothing was run with
	// them.
	ErrData = errors.New("measured data of clouds")
)
