package coding

import "errors"

var (
	// ErrParams is returned for parameters that make no experiment: nothing was run.
	ErrParams = errors.New("parameters of the experiment")
	// ErrSizes is returned where the file of sizes cannot be used. Nothing was run.
	ErrSizes = errors.New("recorded sizes")
)
