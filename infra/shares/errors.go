package shares

import "errors"

var (
	// ErrShares is returned for shares that can't be: negative, not finite, or all
	// 0. The table in force stays.
	ErrShares = errors.New("shares that can't be")
	// ErrTooFine is returned if more sites have a share than there are units to tell
	// them apart. The table in force stays.
	ErrTooFine = errors.New("more shares than the target has units")
	// ErrTable is returned for a table that contradicts itself: two rows for one
	// link, a site twice, a name that is missing, a probe that can't be. The table in
	// force stays.
	ErrTable = errors.New("a table that can't be")
	// ErrAbsent is returned for a site where the component is not placed, as far as
	// is known. The table in force stays.
	ErrAbsent = errors.New("not placed there")
	// ErrOlder is returned by Router.Put for an epoch before the one in force, which
	// stays.
	ErrOlder = errors.New("older than the table in force")
	// ErrNotReady is returned by Router.Ready for a replica that can't take requests
	// now. Nothing has changed.
	ErrNotReady = errors.New("not ready there")
	// ErrRemaining is returned by Router.Drain if requests were still running at the
	// end of its time. The replica stays out of the choice and they go on.
	ErrRemaining = errors.New("requests are still running there")
)
