package entry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"penstock/infra/address"
	"penstock/infra/clock"
	"penstock/infra/pseudonym"
	"penstock/producers/entry/identify"
	"penstock/producers/entry/strict"
)

// Entry is the entry point of one site. Make one with New.
type Entry struct {
	o          Options
	m          *metrics
	router     *router
	owner      *identify.Set
	user       *identify.Set
	tokens     *identify.Tokens
	claims     bool // tokens are looked at
	classes    []class
	own        *component            // Options.Component
	components []*component          // all, the own first
	named      map[string]*component // by name
	routes     []*component          // in the order of Options.Components
	proxies    address.Proxies
	peerKey    []string
	limits     *strict.Limits

	public *door
	inner  *door // of components of the site; nil: there is none
	recent recent
	// strangers are the sites, by index, whose entry points don't know this one: it is
	// told once of each.
	strangers sync.Map
	started   atomic.Bool
	watches   atomic.Bool // replicas are looked at: Run runs
	probes    probes
}

type class struct {
	pattern *identify.Pattern
	name    string
}

// New makes an entry point and listens, so that Addr is known; Run serves. The
// error wraps ErrOption, what it says of rules and keys identify's sentinels
// too, or is the network's. Where nothing is to be listened on (Listen is empty)
// only Handler is of use.
func New(o Options) (*Entry, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	e := &Entry{o: o, router: newRouter(&o), proxies: o.TrustedProxies}
	if err := e.compile(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	if err := e.compileComponents(); err != nil {
		return nil, err
	}
	if e.m, err = newMetrics(o.Registerer, o.Site); err != nil {
		return nil, err
	}
	e.m.ofComponents(e.components, o.Sites)
	if len(o.PeerKey) > 0 {
		e.peerKey = []string{string(o.PeerKey)}
	}
	marker := make([]byte, 16)
	_, _ = rand.Read(marker) // never fails
	e.limits = &strict.Limits{
		Header: o.Limits.Header, HeaderTimeout: o.Limits.HeaderTimeout, IdleTimeout: o.Limits.IdleTimeout,
		WriteTimeout: o.Limits.WriteTimeout, Marker: "/" + hex.EncodeToString(marker),
		Names: append(append(e.owner.Headers(), e.user.Headers()...), e.o.Session.headers()...), Idle: func() { e.m.connection("idle") },
	}
	e.public = newDoor(e, false)
	if o.Listen == "" {
		return e, nil
	}
	if err = e.public.listen(o.Listen); err != nil {
		return nil, err
	}
	if o.Internal != "" {
		e.inner = newDoor(e, true)
		if err = e.inner.listen(o.Internal); err != nil {
			_ = e.public.listener.Close()
			return nil, err
		}
	}
	return e, nil
}

// compile makes what rules are made of.
func (e *Entry) compile() error {
	var hasher *pseudonym.Hasher
	var err error
	if len(e.o.HashKey) > 0 {
		if hasher, err = pseudonym.New(e.o.HashKey); err != nil {
			return err
		}
	}
	if e.owner, err = identify.Compile("owner", e.o.Owner, hasher); err != nil {
		return err
	}
	if e.user, err = identify.Compile("user", e.o.User, hasher); err != nil {
		return err
	}
	if e.tokens, err = identify.NewTokens(e.o.JWT.Key, e.o.Clock.Now); err != nil {
		return err
	}
	e.claims = e.o.JWT.Required || e.owner.NeedsClaims() || e.user.NeedsClaims()
	if e.claims && !e.tokens.Verifies() {
		e.o.Logger.Warn().Str("site", e.o.Site).
			Msg("claims of tokens are believed unverified: there is no key (entry.jwt); anybody can write one")
	}
	for _, c := range e.o.Class {
		p, err := identify.CompilePattern(c.Path, "")
		if err != nil {
			return fmt.Errorf("class %s: %w", c.Class, err)
		}
		e.classes = append(e.classes, class{p, c.Class})
	}
	return nil
}

// Addr is the address that the entry point listens on, nil if it doesn't.
func (e *Entry) Addr() net.Addr { return e.public.addr() }

// InternalAddr is the address at which components of the site call others, nil if
// there is none.
func (e *Entry) InternalAddr() net.Addr { return e.inner.addr() }

// Handler is the entry point without its listener, for servers of other makes.
// Those have to refuse themselves what is no HTTP.
func (e *Entry) Handler() http.Handler { return e }

// Run serves until ctx ends; then it stops accepting, lets running requests
// finish within Options.Drain, closes what still runs, and returns nil. It
// returns an error if a listener fails.
func (e *Entry) Run(ctx context.Context) error {
	if e.public.listener == nil || !e.started.CompareAndSwap(false, true) {
		return ErrRunning
	}
	e.o.Logger.Info().Str("site", e.o.Site).Stringer("address", e.Addr()).Bool("tls", e.public.tls != nil).Msg("entry point serves")
	failed := make(chan error, 2)
	doors := []*door{e.public}
	if e.inner != nil {
		e.o.Logger.Info().Str("site", e.o.Site).Stringer("address", e.InternalAddr()).Msg("components of the site call others here")
		if !address.IsLoopback(address.Host(e.InternalAddr().String())) {
			e.o.Logger.Warn().Str("site", e.o.Site).Stringer("address", e.InternalAddr()).Msg("whoever reaches this address may call every component, in the name of any")
		}
		doors = append(doors, e.inner)
	}
	for _, d := range doors {
		d.serve(failed)
	}
	watching, unwatch := context.WithCancel(context.Background())
	defer unwatch()
	var beside sync.WaitGroup
	if e.o.Shares != nil {
		e.probes.begin()
		beside.Go(func() { e.watch(watching) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	e.probes.end()
	e.drain(doors)
	unwatch()
	beside.Wait()
	for _, d := range doors {
		d.await()
	}
	if ctx.Err() == nil && err != nil {
		return fmt.Errorf("entry point of %s: %w", e.o.Site, err)
	}
	return nil
}

// drain ends the entry point, door by door: the requests of clients that still run
// may call other components until they are done.
func (e *Entry) drain(doors []*door) {
	until := clock.System().Now().Add(e.o.Drain + min(lingerFor, e.o.Drain))
	for _, d := range doors {
		d.drain(until)
	}
	e.o.Logger.Info().Str("site", e.o.Site).Msg("entry point has ended")
}
