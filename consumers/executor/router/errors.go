package router

import (
	"errors"
	"fmt"

	"penstock/consumers/executor"
	"penstock/infra/shares"
)

var (
	// ErrNotReady is returned for a table that would shift weight to a site where
	// nothing is ready to take it. The table in force stays and the command comes
	// again: it wraps executor.ErrAgain, and shares.ErrNotReady.
	ErrNotReady = fmt.Errorf("%w: %w", shares.ErrNotReady, executor.ErrAgain)
	// ErrUnreachable is returned if a target can't be asked. What is in force there
	// stays in force; the command comes again: it wraps executor.ErrAgain.
	ErrUnreachable = fmt.Errorf("no way to the target: %w", executor.ErrAgain)
	// ErrOptions is returned for options that can't work. Nothing was started.
	ErrOptions = errors.New("router options")
)
