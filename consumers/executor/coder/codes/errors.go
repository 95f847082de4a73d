package codes

import "errors"

var (
	// ErrOptions is returned by New and NewTarget for options that can't work.
	ErrOptions = errors.New("coding options")
	// ErrTable is returned for a table that can't be: by New for a default, by
	// Chooser.Set, and by Target.Restore for a file that holds one. What was in force
	// stays.
	ErrTable = errors.New("not a table of codes")
)
