package pull

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/door"
)

const (
	// writeTimeout is how long an answer may take, those included that are kept back.
	writeTimeout = MaxWait + 10*time.Second
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
	server     *door.Server
	components []string
	sites      []string
	atSite     map[string]bool

	waiting atomic.Int64
	heard   atomic.Int64  // when the bus was last there, in ns since 1970
	ending  chan struct{} // closed when nobody is to wait any longer
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
	s.server, err = door.Listen(door.ServerOptions{
		Connections: o.Connections, Handler: s, Listen: o.Listen, Logger: s.log, Name: "pull API", WriteTimeout: writeTimeout,
	})
	if err != nil {
		return nil, err
	}
	s.server.HTTP.RegisterOnShutdown(func() { close(s.ending) })
	return s, nil
}

// Addr is the address that was bound.
func (s *Server) Addr() string { return s.server.Addr() }

// Run serves until ctx ends, then answers those who wait, lets running requests
// finish for a short while, and returns nil; or it returns why the listener failed.
// It runs once: then door.ErrClosed.
func (s *Server) Run(ctx context.Context) error {
	if err := s.server.Begin(); err != nil {
		return err
	}
	defer s.Close()
	s.log.Info().Str("address", s.Addr()).Bool("public", s.opts.Public).Bool("token", len(s.opts.Tokens) > 0).Msg("splits are told")
	listening, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.listen(listening)
	}()
	defer func() {
		stop()
		<-ended
	}()
	return s.server.Serve(ctx)
}

// listen notes that the bus is there, while nobody asks too.
func (s *Server) listen(ctx context.Context) {
	look := s.opts.Clock.NewTicker(listenEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C():
			s.silence()
		case <-ctx.Done():
			return
		}
	}
}

// Close frees the address at once. It may be called more than once, and of a
// server that never ran.
func (s *Server) Close() { s.server.Close() }
