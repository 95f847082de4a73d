package replay

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrDifferent is wrapped by *DifferentError.
	ErrDifferent = errors.New("the state folder belongs to another replay that isn't finished")
	// ErrFinished is returned when the state folder holds this same replay,
	// finished. Nothing was done; whoever wants it again empties the folder.
	ErrFinished = errors.New("the replay is finished")
	// ErrCursor is returned when cursor.json is there and cannot be read.
	// Nothing was changed.
	ErrCursor = errors.New("unreadable cursor")
	// ErrStalled is returned when nothing that a window waits for has come for
	// the time allowed. The error says what is missing. The window was sent; the
	// same command waits for it again.
	ErrStalled = errors.New("no progress")
	// ErrStrict is returned at the first malformed line of a strict replay. The
	// rows before it may have been sent.
	ErrStrict = errors.New("malformed input")
	// ErrOption is returned for options that no replay can run with. Nothing was
	// done.
	ErrOption = errors.New("invalid replay option")
)

// DifferentError says in what an unfinished replay differs from this one. The
// state is as it was.
type DifferentError struct {
	// Differences are name: what it was, what it is.
	Differences []string
}

// Error names every difference.
func (e *DifferentError) Error() string {
	return fmt.Sprintf("%v: %s", ErrDifferent, strings.Join(e.Differences, "; "))
}

// Unwrap makes errors.Is(err, ErrDifferent) true.
func (*DifferentError) Unwrap() error { return ErrDifferent }
