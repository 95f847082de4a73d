package locations

import "errors"

var (
	// ErrConflict is returned by Set when the entry is no longer at the revision
	// that the caller read. Nothing was written by this call.
	ErrConflict = errors.New("the location was changed by another")
	// ErrSingly is returned by SetAll when the entries can only be written one by
	// one. Nothing was written.
	ErrSingly = errors.New("locations can only be written one by one here")
	// ErrRow is wrapped by the error for a line of an import that can't be used.
	// It names the line, the field and what was expected.
	ErrRow = errors.New("not a location")
)
