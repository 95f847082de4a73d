package topology

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rs/zerolog"
)

// Parts is a list of running parts, in stop order.
type Parts struct {
	log    zerolog.Logger
	failed context.CancelCauseFunc
	ctx    context.Context //nolint:containedctx // Ends when a part fails; handed out by Failed.
	parts  []*part
	once   sync.Once
	err    error
}

type part struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// NewParts returns an empty list.
func NewParts(log zerolog.Logger) *Parts {
	p := &Parts{log: log}
	p.ctx, p.failed = context.WithCancelCause(context.Background())
	return p
}

// Start runs a part in a goroutine until Stop, or until it fails. A part that
// returns nil before it was stopped has done its work.
func (p *Parts) Start(name string, run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	pt := &part{name: name, cancel: cancel, done: make(chan struct{})}
	p.parts = append(p.parts, pt)
	go func() {
		defer close(pt.done)
		pt.err = run(ctx)
		if pt.err != nil && ctx.Err() == nil {
			p.failed(fmt.Errorf("%s: %w", name, pt.err))
		}
	}()
	p.log.Debug().Str("part", name).Msg("started")
}

// finish ends Failed without a failure: what was to be done is done.
func (p *Parts) finish() { p.failed(nil) }

// Failed ends when a part fails; context.Cause says which and why.
func (p *Parts) Failed() context.Context { return p.ctx }

// Stop stops the parts one after another in the order in which they were
// started and returns all their failures. It is safe to call twice.
func (p *Parts) Stop() error {
	p.once.Do(func() {
		var errs []error
		for _, pt := range p.parts {
			pt.cancel()
			<-pt.done
			if pt.err != nil && !errors.Is(pt.err, context.Canceled) {
				errs = append(errs, fmt.Errorf("%s: %w", pt.name, pt.err))
			}
			p.log.Debug().Str("part", pt.name).Msg("stopped")
		}
		p.failed(nil)
		p.err = errors.Join(errs...)
	})
	return p.err
}

// During runs work until it returns or a part fails, whichever is first, and
// returns the part's failure before the work's own.
func (p *Parts) During(ctx context.Context, work func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(p.ctx, cancel)
	defer stop()
	err := work(ctx)
	if cause := context.Cause(p.ctx); cause != nil {
		return cause
	}
	return err
}
