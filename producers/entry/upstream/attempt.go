package upstream

import (
	"net/http"
	"time"
)

// Attempt is one attempt to get an answer from a server. All instants are of one
// monotonic clock; one that was not reached is zero.
type Attempt struct {
	// Server by name, empty if there was none to ask.
	Server string
	// Entered is when the request asked for a server for the first time: Queued of the
	// first attempt.
	Entered time.Time
	// Queued is when a server was asked for, Connected when a connection was had.
	// Their difference is the wait on our side: for a place at a server, where a
	// Dispatcher gives them out, and for the connection.
	Queued, Connected time.Time
	// Placed is when a Dispatcher had given a place at a server or had refused one; zero
	// without a Dispatcher.
	Placed time.Time
	// Sent is when the request with its body had been handed to the system. It is
	// zero if the answer was there before all of the body was sent.
	Sent time.Time
	// FirstByte is when the answer began, 1xx answers included.
	FirstByte time.Time
	// Done is when the body of the answer had been read to its end or was closed,
	// or when the attempt failed.
	Done time.Time
	// Awaited is how long the body of the answer was waited for, summed up. It is
	// measured where there is a Dispatcher only.
	Awaited time.Duration
	// Limit is the time in which the request was to be answered, from Entered on, by
	// the Dispatcher's word; 0 if there is none.
	Limit time.Duration
	// Status of the answer, 0 if there was none.
	Status int
	// BytesOut and BytesIn are the bytes of the bodies of request and answer.
	BytesOut, BytesIn int64
	// Err is why there is no answer, or, after Done, why its body ended too soon.
	Err error
	// Reason is one of the Reason constants, or empty.
	Reason string
}

// chosen is when the server was.
func (a *Attempt) chosen() time.Time {
	if a.Placed.IsZero() {
		return a.Queued
	}
	return a.Placed
}

// exchange is all that one attempt needs, in one allocation. Its body ends it.
type exchange struct {
	resp    http.Response
	attempt Attempt
	body    body
	place   Admission // to be given back at the end; nil: there is no Dispatcher
}

// end notes how an attempt ended, once: in its times, in the counters, and in the
// health of its server. An answer that is a failure itself has been judged
// already.
func (p *Pool) end(s *server, x *exchange, reason string, err error) {
	a := &x.attempt
	a.Done = p.o.Clock.Now()
	s.outstanding.Add(-1)
	judged := a.Reason == ReasonStatus
	if reason != "" {
		if a.Err = err; !judged { // What it was judged by is why it failed, however its body ended.
			a.Reason = reason
		}
		s.count(reason)
	}
	if x.place != nil {
		x.place.Done(a)
	}
	switch {
	case judged:
	case blames(reason):
		p.blame(s, a.Done, reason)
	case reason == "" && s.blemished.Load():
		p.note(func() { p.board.succeeded(&s.standing, a.Done) })
	}
}

// blame notes a failure of a server.
func (p *Pool) blame(s *server, now time.Time, reason string) {
	p.note(func() {
		if s.counts() {
			p.board.failed(&s.standing, now, reason)
		}
	})
}
