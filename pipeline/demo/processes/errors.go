package processes

import "errors"

var (
	// ErrEnded is returned for a process that ended without being told to. What it
	// had acknowledged stays.
	ErrEnded = errors.New("the process ended by itself")
	// ErrNotReady is returned by Start for a process that did not answer in time.
	// It has been stopped.
	ErrNotReady = errors.New("the process did not become ready")
	// ErrKilled is returned by Stop for a process that did not end when told to
	// and was killed.
	ErrKilled = errors.New("the process had to be killed")
	// ErrNoPort is returned where no free port was found.
	ErrNoPort = errors.New("no free port")
)
