package pull

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
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
	writeTimeout  = MaxWait + 10*time.Second
	idleTimeout   = 75 * time.Second
	stopTimeout   = 5 * time.Second
	// listenEvery is how often the bus is looked at while nobody asks.
	listenEvery = time.Second
)

// Server tells the split.
type Server struct {
	opts       Options
	log        zerolog.Logger
	metrics    *metrics
	door       *door.Door
	rates      *door.Rates
	components []string
	sites      []string
	atSite     map[string]bool

	waiting atomic.Int64
	heard   atomic.Int64 // when the bus was last there, in ns since 1970
	ending  chan struct{}

	listener net.Listener
	http     *http.Server
	started  atomic.Bool
	closing  sync.Once
}

// New binds the address. The error wraps ErrOptions or door.ErrToken, or says why
// the address could not be bound.
func New(o Options) (*Server, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		opts: o, log: o.Logger.With().Str("part", "pull").Logger(), door: door.New(o.door()), ending: make(chan struct{}), atSite: map[string]bool{},
		rates: door.NewRates(door.RateOptions{Burst: o.Burst, Clients: o.Clients, Rate: o.Rate, TotalRate: o.TotalRate}),
	}
	s.components = slices.Sorted(maps.Keys(o.Components))
	for _, name := range o.Sites {
		s.atSite[name] = true
	}
	for _, sites := range o.Components {
		for name := range sites {
			s.atSite[name] = true
		}
	}
	s.sites = slices.Sorted(maps.Keys(s.atSite))
	s.heard.Store(o.Clock.Now().UnixNano())
	var err error
	if s.metrics, err = newMetrics(o.Registerer); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("pull API: %w", err)
	}
	s.listener = netutil.LimitListener(l, o.Connections)
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(lines{s.log}, "", 0),
		// OPTIONS * is no question of ours.
		DisableGeneralOptionsHandler: true,
	}
	return s, nil
}

// Addr is the address that was bound.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until ctx ends, then answers those who wait, lets running requests
// finish for a short while, and returns nil; or it returns why the listener failed.
// It runs once.
func (s *Server) Run(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return ErrClosed
	}
	defer s.Close()
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
	s.log.Info().Str("address", s.Addr()).Bool("public", s.opts.Public).Bool("token", len(s.opts.Tokens) > 0).Msg("splits are told")
	look := s.opts.Clock.NewTicker(listenEvery)
	defer look.Stop()
	for ended := false; !ended; {
		select {
		case err := <-failed:
			if errors.Is(err, http.ErrServerClosed) {
				return ErrClosed
			}
			return fmt.Errorf("pull API: %w", err)
		case <-look.C():
			s.silence()
		case <-ctx.Done():
			ended = true
		}
	}
	close(s.ending)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := s.http.Shutdown(end); err != nil {
		s.log.Warn().Err(err).Msg("requests to the pull API were cut off")
	}
	if err := <-failed; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("pull API: %w", err)
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

// lines hands what the library logs to ours.
type lines struct{ log zerolog.Logger }

func (w lines) Write(p []byte) (int, error) {
	w.log.Warn().Msg(strings.TrimSpace(string(p)))
	return len(p), nil
}
