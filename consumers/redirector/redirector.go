package redirector

import (
	"context"

	"github.com/rs/zerolog"

	"penstock/infra/door"
)

// Redirector tells where owners are.
type Redirector struct {
	opts    Options
	log     zerolog.Logger
	metrics *metrics
	door    *door.Door
	rates   *door.Rates
	server  *door.Server
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
	r.server, err = door.Listen(door.ServerOptions{Connections: o.Connections, Handler: r, Listen: o.Listen, Logger: r.log, Name: "redirector"})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Addr is the address that was bound.
func (r *Redirector) Addr() string { return r.server.Addr() }

// Run serves until ctx ends, then lets running requests finish for a short while,
// and returns nil; or it returns why the listener failed. It runs once: then
// door.ErrClosed.
func (r *Redirector) Run(ctx context.Context) (err error) {
	if err := r.server.Begin(); err != nil {
		return err
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
	r.log.Info().Str("address", r.Addr()).Bool("public", r.opts.Public).Bool("token", len(r.opts.Tokens) > 0).
		Msg("locations are told")
	return r.server.Serve(ctx)
}

// Close frees the address at once. It may be called more than once, and of a
// redirector that never ran.
func (r *Redirector) Close() { r.server.Close() }
