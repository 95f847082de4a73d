package redirector

import (
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
	"golang.org/x/net/netutil"

	"penstock/infra/door"
)

// Limits of the server.
const (
	maxHeader     = 16 << 10
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 10 * time.Second
	idleTimeout   = 75 * time.Second
	stopTimeout   = 5 * time.Second
)

// Redirector tells where owners are.
type Redirector struct {
	opts    Options
	log     zerolog.Logger
	metrics *metrics
	door    *door.Door
	rates   *door.Rates

	listener net.Listener
	http     *http.Server
	started  atomic.Bool
	closing  sync.Once
}

// New binds the address. The error wraps ErrOptions or door.ErrToken, or says why the
// address could not be bound.
func New(o Options) (*Redirector, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	r := &Redirector{opts: o, log: o.Logger.With().Str("part", "redirector").Logger(), door: door.New(o.door()), rates: door.NewRates(o.rates())}
	var err error
	if r.metrics, err = newMetrics(o.Registerer); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("redirector: %w", err)
	}
	r.listener = netutil.LimitListener(l, o.Connections)
	r.http = &http.Server{
		Handler:           r,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(lines{r.log}, "", 0),
		// OPTIONS * is no question of ours.
		DisableGeneralOptionsHandler: true,
	}
	return r, nil
}

// Addr is the address that was bound.
func (r *Redirector) Addr() string { return r.listener.Addr().String() }

// Run serves until ctx ends, then lets running requests finish for a short while,
// and returns nil; or it returns why the listener failed. It runs once.
func (r *Redirector) Run(ctx context.Context) (err error) {
	if !r.started.CompareAndSwap(false, true) {
		return ErrClosed
	}
	defer r.Close()
	if r.opts.Client != nil {
		stop, err := r.serve()
		if err != nil {
			return err
		}
		defer func() {
			if err := stop(); err != nil {
				// The connection was lost: nobody can ask there any more.
				r.log.Warn().Err(err).Msg("the redirector on the bus did not end well")
			}
		}()
	}
	failed := make(chan error, 1)
	go func() { failed <- r.http.Serve(r.listener) }()
	r.log.Info().Str("address", r.Addr()).Bool("public", r.opts.Public).Bool("token", len(r.opts.Tokens) > 0).
		Msg("locations are told")
	select {
	case err := <-failed:
		if errors.Is(err, http.ErrServerClosed) {
			return ErrClosed
		}
		return fmt.Errorf("redirector: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := r.http.Shutdown(end); err != nil {
		r.log.Warn().Err(err).Msg("requests to the redirector were cut off")
	}
	if err := <-failed; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("redirector: %w", err)
	}
	return nil
}

// Close frees the address at once. It may be called more than once, and of a
// redirector that never ran.
func (r *Redirector) Close() {
	r.closing.Do(func() {
		r.started.Store(true)
		// Closing what is closed already is what happens after Shutdown.
		_ = r.http.Close()
		_ = r.listener.Close()
	})
}

// lines hands what the library logs to ours.
type lines struct{ log zerolog.Logger }

func (w lines) Write(p []byte) (int, error) {
	w.log.Warn().Msg(strings.TrimSpace(string(p)))
	return len(p), nil
}
