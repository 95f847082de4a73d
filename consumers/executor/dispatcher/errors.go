package dispatcher

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrOptions is returned by New, NewTarget and Set for what can't work. Nothing has
	// changed.
	ErrOptions = errors.New("dispatcher options")
	// ErrFull is wrapped by what Admit returns while all queues of the site are full; it
	// is a *FullError then. The request has no place.
	ErrFull = errors.New("all queues are full")
	// ErrNoServer is returned by Admit while no server may get requests: none is on and
	// usable. The request has no place.
	ErrNoServer = errors.New("no server may get requests")
	// ErrTable is wrapped by what rejects a table. What was in force stays.
	ErrTable = errors.New("not a table of this site's servers")
)

// FullError says that all queues of a site are full.
type FullError struct {
	// Wait is after how long a place in service is expected, by the shortest of the
	// queues.
	Wait time.Duration
}

// Error implements error.
func (e *FullError) Error() string { return fmt.Sprintf("%v, expected wait %v", ErrFull, e.Wait) }

// Unwrap returns ErrFull.
func (e *FullError) Unwrap() error { return ErrFull }
