package executor

import "errors"

var (
	// ErrAgain is wrapped by errors of Tables.Put that say nothing about the table:
	// the target could not be reached. The table in force stays, and the command comes
	// again.
	ErrAgain = errors.New("the target can't be reached now")
	// ErrOptions is returned by New for options that can't work. Nothing was
	// started.
	ErrOptions = errors.New("executor options")
	// ErrGrace is returned by Run when commands were still in flight at the end
	// of Grace. They were not acknowledged and will be delivered again.
	ErrGrace = errors.New("commands in flight were cut off")
	// ErrNotConcerned is wrapped by errors of Tables.Put for a table that has nothing
	// for the target. It was put nowhere, and is answered Advised.
	ErrNotConcerned = errors.New("the table has nothing for the target")
	// ErrOlder is returned by Epochs.Admit for an epoch before the one in force.
	ErrOlder = errors.New("older than the table in force")
)
