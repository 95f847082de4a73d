package inforce

import "errors"

var (
	// ErrOptions is returned by New for what can't work. Nothing was brought into force.
	ErrOptions = errors.New("options of tables in force")
	// ErrFile is returned by Target.Restore for a file that can't be read. Nothing was
	// brought into force; the bus has the tables.
	ErrFile = errors.New("tables of before can't be read")
)
