package pool

import "errors"

var (
	// ErrFull says that every server that may take the request has as many waiting as the
	// limit of its line allows. The request is not in the pool.
	ErrFull = errors.New("every line is full")
	// ErrNoServer says that there is no server, or none is usable. The request is not in the
	// pool.
	ErrNoServer = errors.New("no server may take the request")
	// ErrKnown says that a request of this ID is in the pool already. That one is unchanged.
	ErrKnown = errors.New("a request of this ID is in the pool")
	// ErrOption wraps what is wrong with an option; nothing was made.
	ErrOption = errors.New("invalid option")
	// ErrServers wraps what is wrong with a list of servers; the pool is unchanged.
	ErrServers = errors.New("invalid servers")
	// ErrClass says that the request's class is none of the options'. The request is not in
	// the pool.
	ErrClass = errors.New("unknown class")
)
