package serverswitch

import (
	"errors"
	"fmt"

	"penstock/consumers/executor"
)

var (
	// ErrOptions is returned by New for options that can't work. Nothing was started.
	ErrOptions = errors.New("serverswitch options")
	// ErrInUse is returned by New for a state folder that another process has. Nothing
	// was changed.
	ErrInUse = errors.New("the state folder is in use by another process")
	// ErrJournal is returned by New for a journal that can't be read. Nothing was
	// started; without the file nothing is known of the servers, and those that can't be
	// asked are told again.
	ErrJournal = errors.New("the journal of the server switch")
	// ErrStopped is returned by Apply when the switch is being stopped, or its ctx ends.
	// The table is in the journal and its command comes again: it wraps executor.ErrAgain.
	ErrStopped = fmt.Errorf("the server switch is being stopped: %w", executor.ErrAgain)
	// ErrUnknownServer rejects a table with a server that is not configured. The last good
	// table stays.
	ErrUnknownServer = errors.New("a server that is not configured")

	// ErrLater is wrapped by errors of a Backend that has done nothing because something
	// else is under way. It counts as no try.
	ErrLater = errors.New("something else is under way")

	errNotReady = errors.New("not ready")
	errNotOn    = errors.New("nothing else is on: kept")
)
