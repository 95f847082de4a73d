package redirector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/micro"

	"penstock/infra/door"
)

// The micro service. Several redirectors share what is asked, in one queue group.
const (
	// ServiceName is its name.
	ServiceName = "penstock-redirector"
	// LocateSubject and LocateManySubject are its endpoints, without the prefix of
	// the bus.
	LocateSubject     = "redirector.locate"
	LocateManySubject = "redirector.locate-many"
	queueGroup        = "redirector"
	// flushTimeout bounds the wait, at the end, for the server to know of it.
	flushTimeout = time.Second
)

// serve answers on the bus until stop. A connection that is lost takes its
// subscriptions along when it comes back.
func (r *Redirector) serve() (stop func() error, err error) {
	c := r.opts.Client
	s, err := micro.AddService(c.NC, micro.Config{
		Name: ServiceName, Version: r.opts.Version, QueueGroup: queueGroup,
		Description: "where owners' data is",
		ErrorHandler: func(_ micro.Service, err *micro.NATSError) {
			r.log.Warn().Err(err).Msg("the redirector on the bus")
		},
	})
	if err != nil {
		return nil, fmt.Errorf("redirector on the bus: %w", err)
	}
	for name, e := range map[string]struct {
		subject string
		handle  func(micro.Request)
	}{
		"locate":      {LocateSubject, r.locateOne},
		"locate-many": {LocateManySubject, r.locateMany},
	} {
		if err := s.AddEndpoint(name, micro.HandlerFunc(e.handle), micro.WithEndpointSubject(c.Subject(e.subject))); err != nil {
			return nil, errors.Join(fmt.Errorf("redirector on the bus: %w", err), s.Stop())
		}
	}
	return func() error {
		if err := s.Stop(); err != nil {
			return err
		}
		if !c.Connected() {
			return nil
		}
		// Until the server knows, it sends questions that nobody will answer.
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		return c.NC.FlushWithContext(ctx)
	}, nil
}

// locateOne answers with an Answer. The body is the owner's id, any bytes.
func (r *Redirector) locateOne(req micro.Request) {
	owner := string(req.Data())
	if len(owner) > maxOwner {
		r.reply(req, whatLocation, http.StatusBadRequest, Failure{Error: failBody, Text: errOwner.Error()})
		return
	}
	fresh, ok := r.admit(req, whatLocation, 1)
	if !ok {
		return
	}
	l, known := r.locate(owner, fresh)
	if !known {
		r.reply(req, whatLocation, http.StatusNotFound, r.missing(owner, fresh))
		return
	}
	r.reply(req, whatLocation, http.StatusOK, l)
}

// locateMany answers a Batch with Answers.
func (r *Redirector) locateMany(req micro.Request) {
	owners, f := readBatch(req.Data(), r.opts.Batch)
	if f != nil {
		status := http.StatusBadRequest
		if f.Error == failTooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		r.reply(req, whatBatch, status, *f)
		return
	}
	fresh, ok := r.admit(req, whatBatch, max(1, len(owners)))
	if ok {
		r.reply(req, whatBatch, http.StatusOK, r.all(owners, fresh))
	}
}

// admit takes lookups from the rate of all, and asks how fresh the directory is; or
// it answers why not.
func (r *Redirector) admit(req micro.Request, what string, n int) (age, bool) {
	if _, by := r.rates.Take(door.OnTheBus, n, r.opts.Clock.Now()); by != "" {
		r.metrics.limited.WithLabelValues(by).Add(float64(n))
		r.reply(req, what, http.StatusTooManyRequests, Failure{Error: failLimited, Text: "too many lookups: try again later"})
		return age{}, false
	}
	fresh, why := r.fresh()
	if why == "" {
		return fresh, true
	}
	f := Failure{Error: why, Text: "the locations are not known yet, or too old"}
	if why == failTooOld {
		seconds := fresh.json()
		f.Age = &seconds
	}
	r.reply(req, what, http.StatusServiceUnavailable, f)
	return age{}, false
}

// reply answers as micro services do: a failure has its status and word in headers.
func (r *Redirector) reply(req micro.Request, what string, status int, v any) {
	r.metrics.requests.WithLabelValues("bus-"+what, strconv.Itoa(status)).Inc()
	var err error
	if f, failed := v.(Failure); failed {
		err = req.Error(strconv.Itoa(status), f.Error, encode(f))
	} else {
		err = req.Respond(encode(v))
	}
	if err != nil {
		// The connection is lost, and the asker will ask again.
		r.metrics.requests.WithLabelValues("bus-"+what, "unsent").Inc()
	}
}
