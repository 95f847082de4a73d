package gate

import (
	"errors"
	"fmt"
)

var (
	// ErrOptions is returned for options that nothing can be made of.
	ErrOptions = errors.New("gate: bad options")
	// ErrNameInUse is returned by Keeper.Run when another entry point that lives is
	// registered under this name. Nothing was changed, and no write was let in.
	ErrNameInUse = errors.New("another entry point has this name")
	// ErrDisplaced is returned by Keeper.Run when another entry point has taken its
	// name over, which then answers for it: from then on no write is let in here.
	ErrDisplaced = errors.New("another entry point has taken this name over")
	// ErrSilent is wrapped by every SilentError.
	ErrSilent = errors.New("an entry point does not answer")
	// ErrNotDrained is returned by Keeper.Drain when writes are still running at its
	// context's end. The entry point stays registered, and lets no write in.
	ErrNotDrained = errors.New("writes are still running")

	// errConflict: another write to the key came first.
	errConflict = errors.New("another write came first")
)

// SilentError is returned by Hold when an entry point that is registered does not
// answer: it may be writing. Nothing is held.
type SilentError struct{ Site, Entry string }

// Error names the entry point.
func (e *SilentError) Error() string {
	return fmt.Sprintf("entry-silent: %s (of %s): %v", e.Entry, e.Site, ErrSilent)
}

// Unwrap makes errors.Is(err, ErrSilent) true.
func (*SilentError) Unwrap() error { return ErrSilent }
