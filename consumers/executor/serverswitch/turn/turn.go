package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"penstock/consumers/executor/serverswitch"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/subject"
)

// ErrOptions is returned for options that can't work. Nothing was run.
var ErrOptions = errors.New("options of a turn")

// within bounds one question to the bus.
const within = time.Second

// mostKeep is the longest that may pass without a renewal: the server forgets the key
// after 5 s.
const mostKeep = 4 * time.Second

// Options of Run.
type Options struct {
	// Client is the connection. It outlives Run.
	Client *bus.Client
	// Clock paces renewals. Defaults to the machine's.
	Clock clock.Clock
	// Keep is how long the turn is had without a renewal, at most 4 s. Defaults to 3 s.
	Keep   time.Duration
	Logger zerolog.Logger
	// Name of the process, for people who look at the key. Needed.
	Name string
	// Renew is how often the key is renewed, or looked at. Defaults to 1 s.
	Renew time.Duration
	// Role whose turn it is. Defaults to serverswitch.
	Role string
}

// Run calls f each time that this process has the turn, until ctx ends or f returns while
// it has it: then its error is Run's. The context of f ends with the cause
// serverswitch.ErrTurn when the turn is lost; f is to return at once then.
func Run(ctx context.Context, o Options, f func(ctx context.Context) error) error {
	o.Keep, o.Renew, o.Role = cmp.Or(o.Keep, 3*time.Second), cmp.Or(o.Renew, time.Second), cmp.Or(o.Role, "serverswitch")
	if o.Client == nil || o.Name == "" || o.Renew < 0 || o.Keep < o.Renew || o.Keep > mostKeep {
		return fmt.Errorf("expected a client, a name, and Renew below Keep, at most %v: %w", mostKeep, ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	for {
		h, err := o.acquire(ctx)
		if err != nil {
			return nil //nolint:nilerr // The context has ended.
		}
		lost, err := h.hold(ctx, f)
		if !lost || ctx.Err() != nil {
			return err
		}
		o.Logger.Warn().Err(err).Str("role", o.Role).Msg("the turn is lost")
	}
}

// holder is who has the turn.
type holder struct {
	o        *Options
	kv       jetstream.KeyValue
	key      string
	revision uint64
	until    time.Time // the turn is lost unless it was renewed before
}

// acquire waits for the turn. The error is ctx's.
func (o *Options) acquire(ctx context.Context) (*holder, error) {
	h := &holder{o: o, key: "turn." + subject.Encode(o.Role)}
	for {
		began := o.Clock.Now()
		err := h.ask(ctx, func(ctx context.Context) (err error) {
			if h.kv, err = o.Client.KV(ctx, subject.MembersKV); err == nil {
				h.revision, err = h.kv.Create(ctx, h.key, []byte(o.Name))
			}
			return err
		})
		if err == nil {
			h.until = began.Add(o.Keep)
			return h, nil
		}
		if ctx.Err() == nil && !errors.Is(err, jetstream.ErrKeyExists) {
			o.Logger.Debug().Err(err).Msg("the bus doesn't say whose turn it is")
		}
		if err := o.Clock.Sleep(ctx, o.Renew); err != nil {
			return nil, err
		}
	}
}

func (h *holder) ask(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return f(ctx)
}

// hold calls f as long as the turn is had. lost says that it is not any more.
func (h *holder) hold(ctx context.Context, f func(ctx context.Context) error) (lost bool, err error) {
	turn, end := context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx)) // until f has returned
	var renewals sync.WaitGroup
	renewals.Go(func() { h.renew(renewing, end) })
	err = f(turn)
	stop()
	renewals.Wait()
	lost = errors.Is(context.Cause(turn), serverswitch.ErrTurn)
	end(nil)
	if !lost {
		// Left as it is, it would be forgotten in 5 s.
		_ = h.ask(context.WithoutCancel(ctx), func(ctx context.Context) error {
			return h.kv.Purge(ctx, h.key, jetstream.LastRevision(h.revision))
		})
	}
	return lost, err
}

// renew renews the key until ctx ends, or the turn is lost.
func (h *holder) renew(ctx context.Context, end context.CancelCauseFunc) {
	for h.o.Clock.Sleep(ctx, h.o.Renew) == nil {
		began := h.o.Clock.Now()
		var revision uint64
		err := h.ask(ctx, func(ctx context.Context) (err error) {
			revision, err = h.kv.Update(ctx, h.key, []byte(h.o.Name), h.revision)
			return err
		})
		var api *jetstream.APIError
		switch {
		case err == nil:
			h.revision, h.until = revision, began.Add(h.o.Keep)
		case ctx.Err() != nil:
			return
		case errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
			end(fmt.Errorf("%w: somebody else has written the key", serverswitch.ErrTurn))
			return
		case !h.o.Clock.Now().Add(h.o.Renew).Before(h.until):
			end(fmt.Errorf("%w: it could not be renewed: %w", serverswitch.ErrTurn, err))
			return
		}
	}
}
