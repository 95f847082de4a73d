package picker

import "errors"

var (
	// ErrOptions is returned by Open for options that can't be used. Nothing was
	// started.
	ErrOptions = errors.New("unusable options of a picker")
	// ErrNoServer is returned by the transport where nothing says which servers a
	// component has. Nothing was sent.
	ErrNoServer = errors.New("no server is known")
	// ErrAnswer is what State.Err wraps if what was asked gave another answer than a
	// split. What was last known goes on.
	ErrAnswer = errors.New("no split was told")

	// errStatus is what the transport tells Choice.Done of an answer that says that
	// nobody is behind a server.
	errStatus = errors.New("the server has nobody to answer")
	// errOlder is of an answer with an epoch before the one that is known.
	errOlder = errors.New("an older table was told")
)
