package queue

import "errors"

var (
	// ErrCancelled is the cause with which the context of a running task ends when its
	// request needs it no more. The connection is idle once its function has returned.
	ErrCancelled = errors.New("the request has enough chunks")
	// ErrClosed is returned by Do when the queue is stopping, and is what requests end
	// with that its grace was too short for. Their tasks have been told to end.
	ErrClosed = errors.New("the queue is closed")
	// ErrFull is returned by Do when as many requests wait as may. Nothing was done for
	// the request.
	ErrFull = errors.New("too many requests wait")
	// ErrOptions is returned by New for options that can't work, and by Run when it is
	// called twice.
	ErrOptions = errors.New("queue options")
	// ErrTooFew is wrapped by what Do returns for a request of which too few tasks can
	// still succeed, beside the errors of those that failed. The others have been told
	// to end.
	ErrTooFew = errors.New("too few chunks")
)
