package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// Do sends a request to a server of the pool and returns its answer, whose body
// the caller must close. Method, URL (path and query), Host, Header, Body and
// ContentLength of the request count; scheme and host of the URL don't. It is
// not changed, and its body is read but not closed: it belongs to the caller,
// who must not use it again before the answer's body has ended. Header fields
// about the connection (Connection, Transfer-Encoding, …) are left out but for
// an upgrade; those that Connection names are the caller's to take off.
//
// observe, unless nil, is told of every attempt that failed and was followed by
// another, in the calling goroutine. The last attempt is returned, with an error
// as well; its Done, BytesIn and Err are final when the answer's body has ended
// or is closed.
//
// The error wraps one of the sentinels, or the cause of the context's end. An
// answer that is a failure by Retry.Statuses is returned as it is if it can't be
// tried again.
func (p *Pool) Do(req *http.Request, observe func(*Attempt)) (*http.Response, *Attempt, error) {
	now := p.o.Clock.Now()
	p.budget.Request(now)
	r := run{p: p, req: req, ctx: req.Context()}
	if p.o.Dispatcher != nil {
		r.limit = p.o.Dispatcher.Limit(req)
	}
	if p.streams(req) {
		r.upload = newUpload(req, p.o.Clock.Now)
	} else {
		r.message = messages.Get().(*message)
		defer r.message.release()
		if err := r.message.readBody(req); err != nil {
			return r.refuse(now, err)
		}
		if hasBody(req) {
			now = p.o.Clock.Now() // reading from the client is not our wait
		}
	}
	r.entered = now
	for n := 1; ; n++ {
		x := &exchange{attempt: Attempt{Entered: r.entered, Queued: now, Limit: r.limit}}
		s, err := r.place(x)
		if err != nil {
			return r.refused(x, err)
		}
		x.attempt.Server = s.name
		s.requests.Add(1)
		s.outstanding.Add(1)
		resp, err := r.send(s, x)
		if err == nil && x.attempt.Reason != ReasonStatus {
			return resp, &x.attempt, nil
		}
		reason := ReasonStatus
		if err != nil {
			reason, err = explain(r.ctx, err)
			p.end(s, x, reason, err)
			now = x.attempt.Done
		} else {
			now = x.attempt.FirstByte
		}
		r.tried = append(r.tried, s)
		if n >= p.o.Retry.Attempts || !r.mayRepeat(reason, now) {
			return resp, &x.attempt, err
		}
		if resp != nil {
			_ = resp.Body.Close()
			now = x.attempt.Done
		}
		p.retries.Add(1)
		if observe != nil {
			observe(&x.attempt)
		}
	}
}

// run is one call of Do.
type run struct {
	p       *Pool
	req     *http.Request
	ctx     context.Context
	message *message // on the fast path
	upload  *upload  // on the transport's
	tried   []*server
	entered time.Time     // when a server was asked for first
	limit   time.Duration // by the Dispatcher; 0: none
}

// refuse is the end of a request for which no server was asked.
func (r *run) refuse(now time.Time, err error) (*http.Response, *Attempt, error) {
	return r.refused(&exchange{attempt: Attempt{Entered: now, Queued: now, Limit: r.limit}}, err)
}

// refused is refuse of an attempt that has begun.
func (r *run) refused(x *exchange, err error) (*http.Response, *Attempt, error) {
	a := &x.attempt
	a.Reason, a.Err = explain(r.ctx, err)
	a.Done = r.p.o.Clock.Now()
	r.p.refused.add(a.Reason)
	return nil, a, a.Err
}

// place finds the server for an attempt.
func (r *run) place(x *exchange) (*server, error) {
	if r.p.o.Dispatcher != nil {
		return r.admit(x)
	}
	if s := r.pick(x.attempt.Queued); s != nil {
		return s, nil
	}
	return nil, ErrNoServer
}

// pick chooses a server, one that was not tried if there is one.
func (r *run) pick(now time.Time) *server {
	members := r.p.current(now).members
	if len(r.tried) > 0 {
		if rest := r.untried(members); len(rest) > 0 {
			members = rest
		}
	}
	if len(members) == 0 {
		return nil
	}
	i := r.p.o.Picker.Pick(r.req, members)
	if i < 0 || i >= len(members) {
		i = 0
	}
	return members[i].s
}

func (r *run) untried(members []*Member) []*Member {
	return slices.DeleteFunc(slices.Clone(members), func(m *Member) bool { return slices.Contains(r.tried, m.s) })
}

// mayRepeat reports whether the request may be sent again after a failure, and
// takes it from the budget if so.
func (r *run) mayRepeat(reason string, now time.Time) bool {
	elsewhere := false // only another server could do better
	switch reason {
	case ReasonConnect, ReasonBusy:
		elsewhere = true
	case ReasonStatus:
		if elsewhere = true; !Repeatable(r.req) {
			return false
		}
	case ReasonReset, ReasonTimeout, ReasonMalformed:
		if !Repeatable(r.req) {
			return false
		}
	default:
		return false
	}
	if elsewhere && len(r.untried(r.p.current(now).members)) == 0 {
		return false
	}
	if !r.p.budget.Retry(now) {
		r.p.spent.Add(1)
		return false
	}
	// At last, for it takes the body away from the attempt that failed.
	return r.upload == nil || r.upload.again(reason != ReasonConnect && reason != ReasonBusy)
}

// send makes one attempt at a server.
func (r *run) send(s *server, x *exchange) (*http.Response, error) {
	if r.upload != nil {
		return r.stream(s, x)
	}
	if err := r.message.write(r.req, s); err != nil {
		return nil, err
	}
	c, err := r.p.conn(r.ctx, s, x.attempt.chosen())
	if err != nil {
		return nil, err
	}
	for {
		if err = r.exchange(s, c, x); err == nil {
			return &x.resp, nil
		}
		c.close()
		if err = r.stale(s, c, x, err); err != nil {
			break
		}
		// Another in its place, so that nobody who waits comes first. Idle ones may
		// be closed as well, a new one is not.
		if c, err = r.p.dial(r.ctx, s); err != nil {
			break
		}
		s.dials.Add(1)
	}
	s.conns.gone()
	return nil, err
}

// stale returns nil if an error means that the server has just closed an idle
// connection and the request may be sent again, and else the error.
func (r *run) stale(s *server, c *conn, x *exchange, err error) error {
	switch {
	case c.used == 0 || !x.attempt.FirstByte.IsZero() || r.ctx.Err() != nil:
		return err
	case errors.Is(err, errDead):
		s.stale.Add(1)
		return nil
	case !ended(err):
		return err
	}
	s.stale.Add(1)
	if !c.unsent && !Repeatable(r.req) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return nil
}

// exchange sends the request over a connection and reads the head of the answer.
// After an error the connection is the caller's to close.
func (r *run) exchange(s *server, c *conn, x *exchange) error {
	p, a := r.p, &x.attempt
	a.Connected = a.chosen()
	if c.used == 0 {
		a.Connected = p.o.Clock.Now()
	}
	var stop func() bool
	if r.ctx.Done() != nil {
		stop = context.AfterFunc(r.ctx, c.abort)
	}
	c.patience(p.socketTime(a.Connected), p.o.Timeouts.Header)
	err := c.ask(r.message.bytes, a)
	if err == nil {
		err = c.readHead(r.ctx, p.o.HeadLimit, &x.resp, func() { a.FirstByte = p.o.Clock.Now() })
	}
	if err == nil {
		a.BytesOut = int64(len(r.message.body))
		err = r.answer(s, c, x, stop, c.failed == nil)
	} else if c.failed != nil {
		err = c.failed
	}
	if err != nil && stop != nil {
		stop()
	}
	return err
}

// answer makes the answer of a head.
func (r *run) answer(s *server, c *conn, x *exchange, stop func() bool, sent bool) error {
	resp := &x.resp
	f, keep, err := frame(resp, r.req.Method)
	if err != nil {
		return err
	}
	r.judge(s, &x.attempt, resp.StatusCode)
	resp.Request = r.req
	x.body = body{pool: r.p, server: s, c: c, ctx: r.ctx, stop: stop, keep: keep && sent, x: x}
	x.body.live.Store(c)
	x.body.begin(f, resp.ContentLength)
	resp.Body = &x.body
	if f == noBody {
		// The connection is given back at once: not everybody reads what is empty.
		resp.Body = http.NoBody
		x.body.finish(io.EOF)
	}
	return nil
}

// judge notes the status of an answer, and the failure that it may be, before
// its body ends, which else would count as a success.
func (r *run) judge(s *server, a *Attempt, status int) {
	a.Status = status
	if r.p.o.Retry.failedStatus(status) {
		a.Reason = ReasonStatus
		s.count(ReasonStatus)
		r.p.blame(s, r.p.o.Clock.Now(), ReasonStatus)
	}
}
