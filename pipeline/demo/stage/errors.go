package stage

import "errors"

var (
	// ErrFolder is returned for a folder that holds something else than an earlier
	// demonstration. Nothing was removed.
	ErrFolder = errors.New("name another folder")
	// ErrAccount is returned beside an account that is not of all rows that were sent.
	ErrAccount = errors.New("rows are not accounted for")
)
