package dispatching

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"penstock/consumers/executor/dispatcher"
	"penstock/producers/entry/upstream"
)

// Dispatcher is an upstream.Dispatcher that asks a dispatcher.Site. Make it with New, give
// it to the pool's options, and Bind it to the pool.
type Dispatcher struct {
	site *dispatcher.Site

	mu      sync.Mutex
	pool    *upstream.Pool
	servers []upstream.Server
	on      map[string]bool
}

var _ upstream.Dispatcher = (*Dispatcher)(nil)

// New makes a site's dispatcher. Options.Switched is told after the pool of connections
// was. dispatcher.ErrOptions.
func New(o dispatcher.Options) (*Dispatcher, error) {
	d := &Dispatcher{}
	next := o.Switched
	o.Switched = func(on []string) {
		if err := d.switched(on); err != nil {
			o.Logger.Error().Err(err).Str("site", o.Site).Msg("the pool of connections does not follow the table of servers")
		}
		if next != nil {
			next(on)
		}
	}
	site, err := dispatcher.New(o)
	if err != nil {
		return nil, err
	}
	d.site = site
	return d, nil
}

// Site is what is asked.
func (d *Dispatcher) Site() *dispatcher.Site { return d.site }

// Bind has the pool follow which servers are on: those of its list by the names that the
// site's options have. It is called once, before requests.
func (d *Dispatcher) Bind(pool *upstream.Pool, servers []upstream.Server) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pool, d.servers = pool, slices.Clone(servers)
	return d.follow(nil)
}

// switched notes who is on.
func (d *Dispatcher) switched(on []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.on
	d.on = make(map[string]bool, len(on))
	for _, name := range on {
		d.on[name] = true
	}
	return d.follow(was)
}

// follow drains the servers that are off, and has those proven that were, if it is known
// who was on. The caller holds mu.
func (d *Dispatcher) follow(was map[string]bool) error {
	if d.pool == nil || d.on == nil {
		return nil
	}
	list := slices.Clone(d.servers)
	for i := range list {
		s := &list[i]
		s.Drain = s.Drain || !d.on[s.Name]
		s.Prove = was != nil && d.on[s.Name]
	}
	return d.pool.Set(list)
}

// Servers implements upstream.Dispatcher.
func (d *Dispatcher) Servers(names []string) { d.site.Usable(names) }

// Limit implements upstream.Dispatcher.
func (d *Dispatcher) Limit(req *http.Request) time.Duration {
	limit, _ := d.site.Limit(upstream.ClassOf(req.Context()))
	return limit
}

// Admit implements upstream.Dispatcher.
func (d *Dispatcher) Admit(req *http.Request, a upstream.Arrival) (upstream.Admission, error) {
	t, err := d.site.Admit(req.Context(), dispatcher.Facts{
		Class: upstream.ClassOf(req.Context()), Key: xxhash.Sum64String(req.URL.Path), Body: req.ContentLength, Entered: a.Entered, Tried: a.Tried,
	})
	var full *dispatcher.FullError
	switch {
	case err == nil:
		return place{t}, nil
	case errors.As(err, &full):
		return nil, &upstream.BusyError{Wait: full.Wait}
	case errors.Is(err, dispatcher.ErrNoServer):
		return nil, fmt.Errorf("%w: %w", upstream.ErrNoServer, err)
	}
	return nil, err
}

// place is a ticket as an upstream.Admission.
type place struct{ *dispatcher.Ticket }

// Done implements upstream.Admission.
func (p place) Done(a *upstream.Attempt) { p.Ticket.Done(resultOf(a)) }

// resultOf is what an attempt tells of its server. An answer of 500 or more teaches no
// more than a failure: a server that fails fast is not a fast server.
func resultOf(a *upstream.Attempt) dispatcher.Result {
	switch a.Reason {
	case upstream.ReasonAbandoned, upstream.ReasonBody, upstream.ReasonBusy, upstream.ReasonCancelled, upstream.ReasonNoServer, upstream.ReasonRequest:
		return dispatcher.Result{Gone: true}
	}
	r := dispatcher.Result{OK: a.Reason == "" && a.Status < http.StatusInternalServerError, Answer: -1}
	if a.Status != http.StatusSwitchingProtocols { // whose bytes are no answer's, and may still come
		r.Answer = a.BytesIn
	}
	if a.FirstByte.IsZero() {
		return r
	}
	from := a.Sent
	if from.IsZero() || from.After(a.FirstByte) {
		from = a.Connected // the answer began before the body had ended
	}
	r.Service = a.FirstByte.Sub(from) + a.Awaited
	return r
}
