package upstream

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Dispatcher chooses the server of each attempt, and says when it may be sent: it
// keeps requests waiting while servers have as many as they may (DESIGN §4.3). It takes
// the place of the Picker. Its methods are called concurrently and must not call the
// pool.
type Dispatcher interface {
	// Servers is told which servers may be used, by name and in the order of the pool:
	// at the start and whenever that changes. It must not block and must not keep or
	// change the slice. Requests that wait for a server which is not among them any
	// more are to be placed anew; what runs there goes on.
	Servers(names []string)
	// Limit is the time in which a request of this kind is to be answered, 0 if none is
	// known. It must not block.
	Limit(req *http.Request) time.Duration
	// Admit waits until a server may take the request and returns which. It ends with
	// the request's context, whose cause it returns. If too many wait, its error is a
	// *BusyError, or wraps ErrBusy; if no server may be used, it wraps ErrNoServer.
	Admit(req *http.Request, a Arrival) (Admission, error)
}

// Arrival is what a pool tells of a request that is to be admitted.
type Arrival struct {
	// Entered is when the request asked for a server for the first time; an attempt
	// that follows a failed one has that of the first.
	Entered time.Time
	// Tried are the servers that failed to answer it, in this order. They are to be
	// avoided where there is another. Not to be kept.
	Tried []string
}

// Admission is a place at a server.
type Admission interface {
	// Server is its name.
	Server() string
	// Done gives the place back, once, when the attempt has ended: with the end of the
	// answer's body, or before. The attempt must not be kept.
	Done(a *Attempt)
}

// BusyError is what a Dispatcher refuses a request with because too many wait
// already. It wraps ErrBusy. Nothing was sent.
type BusyError struct {
	// Wait is after how long there may be a place again, 0 if that isn't known.
	Wait time.Duration
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%v: too many requests wait, expected to last %v", ErrBusy, e.Wait)
}

// Unwrap returns ErrBusy.
func (e *BusyError) Unwrap() error { return ErrBusy }

// classKey is that of a request's class in its context.
type classKey struct{}

// WithClass returns a context that tells the pool's Dispatcher the class of a request.
func WithClass(ctx context.Context, class string) context.Context {
	return context.WithValue(ctx, classKey{}, class)
}

// ClassOf is the class of a request by its context, "" if that has none.
func ClassOf(ctx context.Context) string {
	class, _ := ctx.Value(classKey{}).(string)
	return class
}
