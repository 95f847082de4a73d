package mover

import (
	"errors"

	"penstock/schemas/control"
)

var (
	// ErrCorrupt is returned by New when the journal is damaged before its end.
	// Nothing was changed; what the mover owed can be found by locations verify.
	ErrCorrupt = errors.New("damaged journal")
	// ErrInUse is returned by New when another process has the journal.
	ErrInUse = errors.New("the mover's journal is in use by another process")
	// ErrClosed is returned for what is asked of a mover after Close.
	ErrClosed = errors.New("the mover is closed")

	// errHeldTooLong ends what is done while writers wait.
	errHeldTooLong = errors.New("writers were held for too long")
	// errFlip: locations couldn't be written, or it isn't known whether it was.
	// The source is closed to writers; the move is to be tried again.
	errFlip = errors.New("locations can't be reached")
	// errContested: another mover took the incoming copy over.
	errContested = errors.New("another mover works on this move")
)

// verdict is a move's end as an error: the outcome's status and reason.
type verdict struct {
	status control.Status
	reason string
	cause  error
}

func (v *verdict) Error() string {
	s := string(v.status) + ": " + v.reason
	if v.cause != nil {
		s += ": " + v.cause.Error()
	}
	return s
}

func (v *verdict) Unwrap() error { return v.cause }

// storeError is an error of an object store: worth another attempt, then the
// end of the move.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

func ofStore(err error) error {
	if err == nil {
		return nil
	}
	return &storeError{err}
}
