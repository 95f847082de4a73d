package live

import "errors"

var (
	// ErrOptions is returned for options that make no run. Nothing was run.
	ErrOptions = errors.New("options of a live sweep")
	// ErrPromise is returned with a result that does not keep what is promised.
	ErrPromise = errors.New("a promise was not kept")
	// ErrVoid is returned with a result that shows nothing, for the machine was its limit.
	ErrVoid = errors.New("the run is void")

	// errWrong is a read of other bytes than were written.
	errWrong = errors.New("wrong bytes")
)
