package router

import (
	"errors"
	"fmt"

	"penstock/consumers/executor"
)

var (
	// ErrShares is returned for shares that can't be: negative, not finite, or all
	// 0. The table in force stays.
	ErrShares = errors.New("shares that can't be")
	// ErrTooFine is returned if more sites have a share than the target can tell
	// apart. The table in force stays.
	ErrTooFine = errors.New("more shares than the target has units")
	// ErrTable is returned for a table that contradicts itself: two rows for one
	// link, a site twice, a name that is missing. The table in force stays.
	ErrTable = errors.New("a table that can't be")
	// ErrAbsent is returned for a site where the component is not placed, as far as
	// the target knows. The table in force stays.
	ErrAbsent = errors.New("not placed there")
	// ErrOlder is returned by Router.Put for an epoch before the one in force, which
	// stays.
	ErrOlder = executor.ErrOlder
	// ErrNotReady is returned for a table that would shift weight to a site where
	// nothing is ready to take it. The table in force stays and the command comes
	// again: it wraps executor.ErrAgain.
	ErrNotReady = fmt.Errorf("not ready there: %w", executor.ErrAgain)
	// ErrUnreachable is returned if a target can't be asked. What is in force there
	// stays in force; the command comes again: it wraps executor.ErrAgain.
	ErrUnreachable = fmt.Errorf("no way to the target: %w", executor.ErrAgain)
	// ErrRemaining is returned by Drain if requests were still running at the end of
	// its time. The replica stays out of the choice and they go on.
	ErrRemaining = errors.New("requests are still running there")
	// ErrOptions is returned for options that can't work. Nothing was started.
	ErrOptions = errors.New("router options")
)
