package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/control"
)

// resumeTries is how often a target is asked to resume before Run fails: some 20 s
// of a bus that is away.
const resumeTries = 25

// OwnFor is for how long the consumer of a process with its own is kept when nobody
// reads from it.
const OwnFor = time.Hour

// Options of an executor.
type Options struct {
	// AckWait is after how long without a sign of life a command is given to
	// another. Defaults to 2 s.
	AckWait time.Duration
	// Client is the connection. It outlives Run.
	Client *bus.Client
	// Clock paces retries, signs of life and ttl. Defaults to the machine's.
	Clock clock.Clock
	// Grace is how long commands in flight may take when Run is stopped.
	// Defaults to 10 s.
	Grace  time.Duration
	Logger zerolog.Logger
	// Metrics gets the counts. Defaults to none.
	Metrics Metrics
	// Name is this executor in outcomes. Defaults to its role.
	Name string
	// Own says that every process has to carry out every command: its consumer is its
	// own, Role is its name among all, and so are its outcomes. A new one begins with
	// the last command of each scope, so the kind must be one of tables. The server
	// removes the consumer of a process that has been gone for OwnFor.
	Own bool
	// Role names the durable consumer, which all processes of a role share.
	// Defaults to "mover" for placement and to the kind for others.
	Role string
	// Stall is how long commands may be pending and none delivered before the
	// watchdog subscribes anew. Defaults to 5 s.
	Stall time.Duration
	// Target knows how.
	Target Target
	// Workers is how many commands are in work at a time. Defaults to 2.
	Workers int
}

// Executor is the loop for one kind.
type Executor struct {
	o        Options
	role     string
	src      source
	answered answered

	ready      atomic.Bool
	stalled    atomic.Bool
	busy       atomic.Int32  // workers with a command
	deliveries atomic.Uint64 // commands delivered
}

// New returns the executor of a target's kind. Nothing runs before Run.
func New(o Options) (*Executor, error) {
	if o.Client == nil || o.Target == nil || o.Workers < 0 || o.AckWait < 0 {
		return nil, fmt.Errorf("executor: a client and a target are needed, and no negative bound: %w", ErrOptions)
	}
	if o.Own && (o.Role == "" || o.Target.Kind() == control.Placement) {
		return nil, fmt.Errorf("executor: a consumer of its own needs a role, and a kind of tables: %w", ErrOptions)
	}
	o = o.complete()
	x := &Executor{o: o, role: o.Role}
	x.src = newPuller(&o)
	return x, nil
}

func (o Options) complete() Options {
	kind := o.Target.Kind()
	role := string(kind)
	if kind == "placement" {
		role = "mover"
	}
	o.AckWait = cmp.Or(o.AckWait, 2*time.Second)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.Role = cmp.Or(o.Role, role)
	o.Name = cmp.Or(o.Name, o.Role)
	o.Stall = cmp.Or(o.Stall, 5*time.Second)
	o.Workers = cmp.Or(o.Workers, 2)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Metrics == nil {
		o.Metrics = NoMetrics{}
	}
	return o
}

// Ready reports whether the executor has resumed what was open and gets what is
// pending.
func (x *Executor) Ready() bool { return x.ready.Load() && !x.stalled.Load() }

// Run resumes what was begun before and carries commands out until ctx ends.
// Then it pulls no more, finishes what is in flight within Grace, and returns nil;
// ErrGrace if that was too short.
func (x *Executor) Run(ctx context.Context) error {
	work, cut := x.grace(ctx)
	defer cut()
	if err := x.resume(ctx, work); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	if err := x.open(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	x.ready.Store(true)
	defer x.ready.Store(false)
	var group errgroup.Group
	for range x.o.Workers {
		group.Go(func() error { return x.worker(ctx, work) })
	}
	watch, stop := context.WithCancel(ctx)
	var watchdog sync.WaitGroup
	watchdog.Go(func() { x.watch(watch) })
	err := group.Wait()
	stop()
	watchdog.Wait()
	return err
}

// open binds to the consumer, and waits a bus out that doesn't answer.
func (x *Executor) open(ctx context.Context) error {
	var refused error
	err := x.retry(ctx, "open", func(ctx context.Context) error {
		err := x.src.open(ctx)
		var api *jetstream.APIError
		if errors.As(err, &api) && api.Code < 500 {
			refused = err // the bus has answered: no use in asking again
			return nil
		}
		return err
	})
	if err != nil {
		return nil //nolint:nilerr // The context has ended.
	}
	return refused
}

// grace returns a context that ends Grace after ctx does.
func (x *Executor) grace(ctx context.Context) (context.Context, func()) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
		case <-done:
			return
		}
		t := x.o.Clock.NewTimer(x.o.Grace)
		defer t.Stop()
		select {
		case <-t.C():
			cancel(ErrGrace)
		case <-done:
		}
	}()
	return work, func() {
		close(done)
		<-ended
		cancel(nil)
	}
}

// resume lets the target finish what it had begun. It can take long, so it ends
// with ctx, not with the grace that follows.
func (x *Executor) resume(ctx, work context.Context) error {
	answer := func(_ context.Context, o control.Outcome) error { return x.answer(work, o, 0) }
	wait := retryFirst
	for try := 1; ; try++ {
		err := x.o.Target.Resume(ctx, answer)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // Stopped: what is open stays open.
		}
		if try == resumeTries {
			return fmt.Errorf("resume: %w", err)
		}
		x.o.Metrics.Count(Retried, "resume", 1)
		x.o.Logger.Warn().Err(err).Msg("what was begun before could not be finished, trying again")
		_ = x.o.Clock.Sleep(ctx, wait) // if it is cut short, Resume says so
		wait = min(2*wait, retryMost)
	}
}
