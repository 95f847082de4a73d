package decider

import "errors"

var (
	// ErrFenced is returned by Run when another decider of the kind has written
	// a record. What this one wanted to send was not stored; it has left no
	// snapshot of it. Start it again from scratch to take over.
	ErrFenced = errors.New("fenced: another decider of this kind has written")
	// ErrDiverged is returned by Run when a recorded window, decided again with
	// its recorded inputs, does not come out as recorded. Nothing was sent. The
	// program, or what is on the bus, is not what it was.
	ErrDiverged = errors.New("a recorded window does not come out as recorded")
	// ErrStateLost is returned by Run when there are records but no usable
	// snapshot, and the bus no longer holds what led to them. Nothing was sent.
	ErrStateLost = errors.New("no snapshot can be used and the bus no longer holds the beginning")
	// ErrSnapshot is returned for bytes that are not a snapshot of this kind and
	// version. The next older one is tried.
	ErrSnapshot = errors.New("unusable snapshot")
	// ErrTooLarge is returned by Run when a record or a single move is too large
	// for the bus. Nothing of the window was sent.
	ErrTooLarge = errors.New("decision too large for a message")
	// ErrEnded is returned by Explain when Run has ended.
	ErrEnded = errors.New("the decider has ended")
	// ErrOptions is returned by New for options that cannot work.
	ErrOptions = errors.New("decider options")
)
