package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/address"
)

// Limits of the server: it answers small questions of few askers.
const (
	maxHeader      = 16 << 10
	maxConnections = 64
	maxScrapes     = 4
	headerTimeout  = 5 * time.Second
	requestTimeout = 10 * time.Second
	idleTimeout    = time.Minute
	checkTimeout   = 2 * time.Second
	stopTimeout    = 2 * time.Second
)

// DefaultListen is the address of a server whose options name none.
const DefaultListen = "127.0.0.1:9464"

// ServerOptions say what a server serves and where.
type ServerOptions struct {
	// Gatherer is what /metrics shows. Required.
	Gatherer prometheus.Gatherer
	// Listen is host:port; port 0 takes a free one. Defaults to DefaultListen.
	Listen string
	// Logger gets one line at start and one for each failure.
	Logger zerolog.Logger
	// Readiness is what /healthz and /readyz show. Required.
	Readiness *Readiness
	// Token must be sent as "Authorization: Bearer TOKEN" with each request, if
	// it is set; off loopback it must be, of at least 16 bytes.
	Token string
}

// minToken is the least length of a token that is worth its name.
const minToken = 16

// Server serves metrics, health and readiness.
type Server struct {
	opts     ServerOptions
	listener net.Listener
	http     *http.Server
	started  atomic.Bool
	closing  sync.Once
}

// NewServer binds the address. The error wraps ErrOptions or ErrToken, or says
// why the address could not be bound.
func NewServer(o ServerOptions) (*Server, error) {
	if o.Gatherer == nil || o.Readiness == nil {
		return nil, fmt.Errorf("telemetry server without gatherer or readiness: %w", ErrOptions)
	}
	o.Listen = cmp.Or(o.Listen, DefaultListen)
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen address %.80q, expected host:port: %w: %w", o.Listen, ErrOptions, err)
	}
	if !address.IsLoopback(host) && len(o.Token) < minToken {
		return nil, fmt.Errorf("listen address %q, token of %d bytes, expected at least %d: %w", o.Listen, len(o.Token), minToken, ErrToken)
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("telemetry server: %w", err)
	}
	s := &Server{opts: o, listener: &limited{Listener: l, slots: make(chan struct{}, maxConnections), done: make(chan struct{})}}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      2 * requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          quiet(o.Logger),
	}
	return s, nil
}

// Addr is the address that was bound.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until ctx ends, then lets running requests finish for a short
// while, and returns nil; or it returns why the listener failed. It runs once.
func (s *Server) Run(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return ErrClosed
	}
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
	s.opts.Logger.Info().Str("address", s.Addr()).Bool("token", s.opts.Token != "").Msg("metrics, health and readiness are served")
	select {
	case err := <-failed:
		if errors.Is(err, http.ErrServerClosed) {
			return ErrClosed
		}
		s.Close()
		return fmt.Errorf("telemetry server: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := s.http.Shutdown(stop); err != nil {
		s.opts.Logger.Warn().Err(err).Msg("requests to the telemetry server were cut off")
	}
	s.Close()
	if err := <-failed; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("telemetry server: %w", err)
	}
	return nil
}

// Close frees the address at once. It may be called more than once, and of a
// server that never ran.
func (s *Server) Close() {
	s.closing.Do(func() {
		s.started.Store(true)
		// Closing what is closed already is what happens after Shutdown.
		_ = s.http.Close()
		_ = s.listener.Close()
	})
}

// limited is a listener with at most as many open connections as it has slots;
// others wait to be accepted.
type limited struct {
	net.Listener
	slots chan struct{}
	done  chan struct{}
	once  sync.Once
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &counted{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// counted is a connection that frees its slot when it is closed.
type counted struct {
	net.Conn
	free func()
}

func (c *counted) Close() error {
	defer c.free()
	return c.Conn.Close()
}
