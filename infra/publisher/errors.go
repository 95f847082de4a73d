package publisher

import "errors"

var (
	// ErrClosed is returned by Send, Barrier and End after Close, and after
	// End. The row was not taken.
	ErrClosed = errors.New("the publisher is closed")

	// ErrNotReplay is returned by Send of a live publisher and by New for
	// options that do not go together.
	ErrNotReplay = errors.New("not a publisher of that kind")

	// ErrSpoolInUse is returned by New when another process has the spool.
	ErrSpoolInUse = errors.New("the spool is in use by another process")

	// errTorn marks the end of what can be read of a spool file.
	errTorn = errors.New("torn record")
)
