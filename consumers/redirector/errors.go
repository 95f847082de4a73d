package redirector

import "errors"

var (
	// ErrOptions is returned by New for options that can't be used. Nothing was
	// bound.
	ErrOptions = errors.New("unusable options of a redirector")

	// What is wrong with the path or query of a request.
	errPath  = errors.New("the path is not one of ours")
	errOwner = errors.New("no owner, of 1 to 1024 bytes, as one percent-encoded segment")
	errDots  = errors.New("the path has a segment of dots alone")
)
