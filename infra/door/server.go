package door

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Limits of a server.
const (
	// MaxHeader is the most bytes of a request's headers, or little more.
	MaxHeader     = 16 << 10
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 10 * time.Second
	idleTimeout   = 75 * time.Second
	stopTimeout   = 5 * time.Second
)

// ServerOptions say what answers, and where.
type ServerOptions struct {
	// Connections is the most that are open at a time; others wait. Needed.
	Connections int
	// Handler answers. Needed.
	Handler http.Handler
	// Listen is host:port; port 0 takes a free one.
	Listen string
	// Logger gets what goes wrong on connections.
	Logger zerolog.Logger
	// Name is what the server is called in errors.
	Name string
	// StopTimeout is how long running requests may take after the end. Defaults to 5 s.
	StopTimeout time.Duration
	// Wrap, if any, is what connections are taken from in place of the listener that was
	// bound: deadlines of its own, TLS.
	Wrap func(net.Listener) net.Listener
	// WriteTimeout is how long an answer may take from the end of the request's
	// headers. Defaults to 10 s.
	WriteTimeout time.Duration
}

// Server answers on one address until it ends: for short answers to small
// questions, of many who ask.
type Server struct {
	// HTTP is the server itself, for limits of a kind that differ; not to be changed
	// once it serves.
	HTTP *http.Server

	o        ServerOptions
	listener net.Listener
	started  atomic.Bool
	closing  sync.Once
}

// Listen binds the address. The error says why it could not be bound.
func Listen(o ServerOptions) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	l = limit(l, o.Connections)
	if o.Wrap != nil {
		l = o.Wrap(l)
	}
	return &Server{o: o, listener: l, HTTP: &http.Server{
		Handler:           o.Handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      cmp.Or(o.WriteTimeout, writeTimeout),
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    MaxHeader,
		ErrorLog:          log.New(lines{o.Logger}, "", 0),
		// OPTIONS * is no question of ours.
		DisableGeneralOptionsHandler: true,
	}}, nil
}

// Addr is the address that was bound.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Begin says that Serve will be called, once: ErrClosed if it was called before, or
// Close.
func (s *Server) Begin() error {
	if !s.started.CompareAndSwap(false, true) {
		return ErrClosed
	}
	return nil
}

// Serve serves until ctx ends, then lets running requests finish for a short while,
// and returns nil; or it returns why the listener failed, or ErrClosed. It comes
// after Begin, and closes the server.
func (s *Server) Serve(ctx context.Context) error {
	defer s.Close()
	failed := make(chan error, 1)
	go func() { failed <- s.HTTP.Serve(s.listener) }()
	select {
	case err := <-failed:
		if errors.Is(err, http.ErrServerClosed) {
			return ErrClosed
		}
		return fmt.Errorf("%s: %w", s.o.Name, err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(s.o.StopTimeout, stopTimeout))
	defer cancel()
	if err := s.HTTP.Shutdown(end); err != nil {
		s.o.Logger.Warn().Err(err).Msg("requests were cut off")
	}
	if err := <-failed; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", s.o.Name, err)
	}
	return nil
}

// Close frees the address at once. It may be called more than once, and of a server
// that never served.
func (s *Server) Close() {
	s.closing.Do(func() {
		s.started.Store(true)
		// Closing what is closed already is what happens after Shutdown.
		_ = s.HTTP.Close()
		_ = s.listener.Close()
	})
}

// lines hands what the library logs to ours.
type lines struct{ log zerolog.Logger }

func (w lines) Write(p []byte) (int, error) {
	w.log.Warn().Msg(strings.TrimSpace(string(p)))
	return len(p), nil
}
