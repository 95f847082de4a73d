package entry

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/address"
	"penstock/infra/clock"
	"penstock/infra/pseudonym"
	"penstock/producers/entry/identify"
	"penstock/producers/entry/strict"
)

// Entry is the entry point of one site. Make one with New.
type Entry struct {
	o       Options
	m       *metrics
	router  *router
	owner   *identify.Set
	user    *identify.Set
	tokens  *identify.Tokens
	claims  bool // tokens are looked at
	classes []class
	proxies address.Proxies
	peerKey []string
	limits  *strict.Limits
	tls     *tls.Config

	listener net.Listener
	plain    *http.Server // HTTP/1
	multi    *http.Server // HTTP/2
	conns    conns
	tunnels  tunnels
	simples  running
	draining atomic.Bool
	recent   recent
	// strangers are the sites, by index, whose entry points don't know this one: it is
	// told once of each.
	strangers sync.Map
	started   atomic.Bool
	cut       context.CancelFunc // ends the requests that still run
	rowless   atomic.Int64       // requests that run: they have no row yet
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
	if e.m, err = newMetrics(o.Registerer, o.Site); err != nil {
		return nil, err
	}
	if len(o.PeerKey) > 0 {
		e.peerKey = []string{string(o.PeerKey)}
	}
	marker := make([]byte, 16)
	_, _ = rand.Read(marker) // never fails
	e.limits = &strict.Limits{
		Header: o.Limits.Header, HeaderTimeout: o.Limits.HeaderTimeout, IdleTimeout: o.Limits.IdleTimeout,
		WriteTimeout: o.Limits.WriteTimeout, Marker: "/" + hex.EncodeToString(marker),
		Names: append(e.owner.Headers(), e.user.Headers()...), Idle: func() { e.m.connection("idle") },
	}
	e.servers()
	if o.Listen == "" {
		return e, nil
	}
	var config net.ListenConfig
	if e.listener, err = config.Listen(context.Background(), "tcp", o.Listen); err != nil {
		return nil, fmt.Errorf("entry point of %s: %w", o.Site, err)
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

// servers makes the two servers: connections are given to the one whose protocol
// they speak.
func (e *Entry) servers() {
	var base context.Context
	base, e.cut = context.WithCancel(context.Background())
	inBase := func(net.Listener) context.Context { return base }
	e.plain = &http.Server{
		Handler: e, DisableGeneralOptionsHandler: true, ErrorLog: e.errorLog(),
		// The connection has checked and bounded the header; this is never reached.
		MaxHeaderBytes: e.limits.Header + 4096,
		TLSNextProto:   map[string]func(*http.Server, *tls.Conn, http.Handler){},
		BaseContext:    inBase,
		ConnContext:    e.connContext,
		ConnState: func(c net.Conn, s http.ConnState) {
			switch guarded := c.(*strict.Conn); s {
			case http.StateIdle:
				guarded.Answered()
			case http.StateHijacked:
				guarded.Hijacked()
			}
		},
	}
	e.multi = &http.Server{
		Handler: e, DisableGeneralOptionsHandler: true, ErrorLog: e.errorLog(),
		MaxHeaderBytes: e.limits.Header, IdleTimeout: e.limits.IdleTimeout, ReadHeaderTimeout: e.limits.HeaderTimeout,
		BaseContext: inBase, ConnContext: e.connContext, Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 250, SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second,
			WriteByteTimeout: e.o.Limits.WriteTimeout,
		},
	}
	e.multi.Protocols.SetHTTP2(true)
	e.multi.Protocols.SetUnencryptedHTTP2(true)
	if e.o.TLS != nil {
		e.tls = e.o.TLS.Clone()
		e.tls.NextProtos = []string{"h2", "http/1.1"}
		if e.tls.MinVersion == 0 {
			e.tls.MinVersion = tls.VersionTLS12
		}
	}
}

func (e *Entry) connContext(ctx context.Context, c net.Conn) context.Context {
	guarded, _ := c.(*strict.Conn)
	if guarded != nil {
		var leave context.CancelFunc
		ctx, leave = context.WithCancel(ctx)
		guarded.Watch(leave)
	}
	return withClient(ctx, e.newClient(c.RemoteAddr().String(), guarded, e.tls != nil))
}

// Addr is the address that the entry point listens on, nil if it doesn't.
func (e *Entry) Addr() net.Addr {
	if e.listener == nil {
		return nil
	}
	return e.listener.Addr()
}

// Handler is the entry point without its listener, for servers of other makes.
// Those have to refuse themselves what is no HTTP.
func (e *Entry) Handler() http.Handler { return e }

// Run serves until ctx ends; then it stops accepting, lets running requests
// finish within Options.Drain, closes what still runs, and returns nil. It
// returns an error if the listener fails.
func (e *Entry) Run(ctx context.Context) error {
	if e.listener == nil || !e.started.CompareAndSwap(false, true) {
		return ErrRunning
	}
	e.o.Logger.Info().Str("site", e.o.Site).Stringer("address", e.listener.Addr()).Bool("tls", e.tls != nil).Msg("entry point serves")
	plain, multi := newQueue(e.listener.Addr()), newQueue(e.listener.Addr())
	var serving sync.WaitGroup
	serving.Go(func() { _ = e.plain.Serve(plain) }) // ends with its queue, after Shutdown
	serving.Go(func() { _ = e.multi.Serve(multi) })
	looking, done := context.WithCancel(context.Background())
	var looks sync.WaitGroup
	looks.Go(func() { e.conns.look(looking) })
	failed := make(chan error, 1)
	serving.Go(func() { failed <- e.accept(plain, multi) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	e.drain()
	serving.Wait()
	_ = e.simples.wait(context.Background()) // one may have been accepted as the drain began
	done()
	looks.Wait()
	if ctx.Err() == nil && err != nil {
		return fmt.Errorf("entry point of %s: %w", e.o.Site, err)
	}
	return nil
}

// drain ends the entry point: nothing new is accepted, idle connections are
// closed, running requests get their time.
func (e *Entry) drain() {
	e.draining.Store(true)
	_ = e.listener.Close()
	e.conns.linger(min(lingerFor, e.o.Drain))
	e.conns.close()
	defer e.cut()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	limit := clock.System().NewTimer(e.o.Drain)
	defer limit.Stop()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		err := errors.Join(e.plain.Shutdown(ctx), e.multi.Shutdown(ctx), e.tunnels.wait(ctx), e.simples.wait(ctx))
		if err != nil {
			e.o.Logger.Warn().Str("site", e.o.Site).Int("connections", e.conns.len()).Msg("drain is over, requests still run: they are cut off")
		}
	}()
	select {
	case <-finished:
	case <-limit.C():
		cancel()
		<-finished
		e.cut()
		// What is left is cut off: its clients see a connection that ends.
		_ = e.plain.Close()
		_ = e.multi.Close()
		e.conns.cut()
		_ = e.simples.wait(context.Background()) // they end, for their connections are closed
	}
	e.tunnels.close()
	e.awaitRows()
	e.o.Logger.Info().Str("site", e.o.Site).Msg("entry point has ended")
}

// rowsWithin is how long the end waits for requests that were cut off.
const rowsWithin = 5 * time.Second

// awaitRows waits until the requests that were cut off have made their rows.
func (e *Entry) awaitRows() {
	system := clock.System()
	for end := system.Now().Add(rowsWithin); e.rowless.Load() > 0; {
		if system.Now().After(end) {
			e.o.Logger.Warn().Str("site", e.o.Site).Int64("requests", e.rowless.Load()).Msg("requests that were cut off do not end: their rows are lost")
			return
		}
		_ = system.Sleep(context.Background(), time.Millisecond) // without an end there is no error
	}
}
