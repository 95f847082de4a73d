package picker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"penstock/schemas/control"
)

// mostCallees bounds how many components are followed: who picks by what others
// send must not make questions without end.
const mostCallees = 1000

// Picker picks servers by the split. Its methods are safe for concurrent use.
type Picker struct {
	o       Options
	log     zerolog.Logger
	metrics *metrics
	own     *http.Transport // of the client, if it is ours
	callees atomic.Pointer[map[string]*callee]
	wake    chan struct{} // a server was put out, or in again

	mu     sync.Mutex // of those who meet a component
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	closed bool
}

// Choice is where a request goes.
type Choice struct {
	Site string
	// Server is the URL of one of the site's servers; "" if none is known.
	Server string
	// Epoch is that of the table that said so; 0 is the default's.
	Epoch uint64
	// Known is false if no table has these calls: the site is the caller's own.
	Known bool

	callee *callee
	server *server
}

// Open returns a picker that follows nothing yet. It follows each component from
// the first pick for it, or from Ready, until Close, or ctx ends. The error wraps
// ErrOptions; an API that is away is none.
func Open(ctx context.Context, o Options) (*Picker, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	p := &Picker{o: o, log: o.Logger.With().Str("part", "picker").Logger(), wake: make(chan struct{}, 1)}
	var err error
	if p.metrics, err = newMetrics(o.Registerer); err != nil {
		return nil, err
	}
	if o.Client == nil {
		p.own = &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			DisableCompression:  true,
			ForceAttemptHTTP2:   true,
			IdleConnTimeout:     idleTimeout,
			MaxIdleConnsPerHost: mostCallees,
			Proxy:               http.ProxyFromEnvironment,
			TLSHandshakeTimeout: dialTimeout,
		}
		// The token is for the address that was configured.
		p.o.Client = &http.Client{Transport: p.own, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	p.callees.Store(&map[string]*callee{})
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.all.Go(p.tend)
	return p, nil
}

// Limits of connections to the API.
const (
	dialTimeout = 5 * time.Second
	idleTimeout = 75 * time.Second
)

// Close ends the questions and returns when the last has ended. Picks are answered
// by what is known, then as before. It may be called more than once.
func (p *Picker) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.all.Wait()
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
}

// Pick chooses a server of a component for a request: sites take turns by their
// shares, and the servers of a site one after the other. The first pick of a
// component begins to follow it.
func (p *Picker) Pick(component string) Choice {
	return p.of(component).choose("", false)
}

// PickFor chooses for a key (a session, a user): the same key gets the same server,
// from all who ask, as long as shares and servers allow. Without a key it is Pick.
func (p *Picker) PickFor(component, key string) Choice {
	return p.of(component).choose(key, false)
}

// PickWrite chooses for a request that writes: a server at the site for writes,
// whatever its share; where there is none, as Pick does.
func (p *Picker) PickWrite(component string) Choice {
	return p.of(component).choose("", true)
}

// Done says how the request went that a choice was made for, once. An error puts
// the server out after some in a row, at once if nothing listens there; one that
// wraps context.Canceled says nothing of the server.
func (c Choice) Done(err error) {
	switch {
	case c.server == nil:
	case err == nil:
		if c.server.failing.Load() != 0 && c.server.well() {
			c.callee.changed()
		}
	case errors.Is(err, context.Canceled):
	default:
		p := c.callee.p
		if c.server.failed(gone(err), p.o.Clock.Now(), &p.o) {
			p.metrics.out.Inc()
			p.log.Warn().Err(err).Str("component", c.callee.link.To).Str("site", c.Site).Str("server", c.Server).
				Msg("a server fails and is put out for a while")
			c.callee.changed()
		}
	}
}

// gone reports whether nobody listens at a server: nothing was sent.
func gone(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// changed tells the shares that a server was put out or in, and who looks after
// those that are out.
func (c *callee) changed() {
	c.mu.Lock()
	c.settle(c.p.nanos())
	c.mu.Unlock()
	select {
	case c.p.wake <- struct{}{}:
	default: // it is told already
	}
}

// idle is how long nothing is looked after while no site is out.
const idle = time.Hour

// tend tries sites again whose servers are all out, when their time has come.
func (p *Picker) tend() {
	timer := p.o.Clock.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
		case <-timer.C():
		}
		timer.ResetAt(p.look())
	}
}

// look tells the shares of all components which sites can take requests, and returns
// until when nothing changes by itself.
func (p *Picker) look() time.Time {
	at := p.nanos()
	first := int64(0)
	for _, c := range *p.callees.Load() {
		c.mu.Lock()
		if again := c.settle(at); again != 0 && (first == 0 || again < first) {
			first = again
		}
		c.mu.Unlock()
	}
	if first == 0 {
		first = at + int64(idle)
	}
	return time.Unix(0, first)
}

// nanos is the time, in ns since 1970.
func (p *Picker) nanos() int64 { return p.o.Clock.Now().UnixNano() }

func (p *Picker) of(component string) *callee {
	if c := (*p.callees.Load())[component]; c != nil {
		return c
	}
	return p.meet(component)
}

// meet begins to follow a component. One that can't be followed is known from the
// fallback alone.
func (p *Picker) meet(component string) *callee {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := *p.callees.Load()
	if c := now[component]; c != nil {
		return c
	}
	c := newCallee(p, component)
	if p.closed || component == "" || len(component) > control.MaxID || len(now) >= mostCallees {
		p.metrics.tooMany.Inc()
		return c
	}
	next := maps.Clone(now)
	next[component] = c
	p.callees.Store(&next)
	p.all.Go(c.follow)
	return c
}

// Ready follows components and waits until the API has told something of each. The
// error wraps that of ctx, and says what came instead.
func (p *Picker) Ready(ctx context.Context, components ...string) error {
	for _, component := range components {
		c := p.of(component)
		select {
		case <-c.first:
		case <-ctx.Done():
			if why := c.shown().Err; why != nil {
				return fmt.Errorf("split of %.80q: %w (%w)", component, ctx.Err(), why)
			}
			return fmt.Errorf("split of %.80q: %w", component, ctx.Err())
		}
	}
	return nil
}

// States returns what is known of the components that are followed, by name.
func (p *Picker) States() []State {
	all := *p.callees.Load()
	out := make([]State, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name].shown())
	}
	return out
}

func (c *callee) shown() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, now := c.state, c.p.nanos()
	for _, each := range c.now.Load().sites {
		for _, server := range each.servers {
			s.Servers++
			if server.out(now) {
				s.Out++
			}
		}
	}
	return s
}
