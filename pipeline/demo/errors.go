package demo

import "errors"

var (
	// ErrPromise is returned by a run in which Penstock did not keep what it
	// promises. What was found is printed before.
	ErrPromise = errors.New("a promise was not kept")
	// ErrOptions is returned for options that make no demonstration. Nothing was
	// started.
	ErrOptions = errors.New("these options can't be used")
)
