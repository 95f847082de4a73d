package decider

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"penstock/consumers/panes"
	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// Decider decides one kind. New makes it, Run runs it once; Status, Ready and
// Explain are safe from any goroutine.
type Decider struct {
	opts  Options
	log   zerolog.Logger
	kind  control.Kind
	group string
	ttl   string

	// Belong to the goroutine of Run.
	policy   Policy
	config   string // digest of the policy's configuration
	asm      *panes.Assembler
	state    state
	store    *store
	operator *operator
	windows  *panes.Reader
	outcomes *outcomes
	history  history
	setAside panes.Stats // as last reported
	since    int         // windows since the last snapshot
	// dirty: a window was closed and is not known to be recorded as decided, so
	// the state must not become a snapshot.
	dirty    bool
	live     bool      // caught up with the records
	at       time.Time // of the last record, on the bus
	instance string    // of this process and Run, in decision ids
	ids      int

	// publish is the client's PublishFenced.
	publish func(ctx context.Context, msgs []bus.Msg, expect uint64) (uint64, error)

	requests chan func()
	ready    chan struct{}
	ended    chan struct{}
	status   atomic.Pointer[Status]
}

// Phase is what a decider is doing.
type Phase string

// The phases.
const (
	Recovering Phase = "recovering"
	Deciding   Phase = "deciding"
	Stopped    Phase = "stopped"
	Failed     Phase = "failed" // fenced, diverged, …: see Err
)

// Status is how a decider stands.
type Status struct {
	Kind       control.Kind
	Phase      Phase
	Mode       control.Mode   // in effect at the last decided window
	FellBack   bool           // to advise, by itself
	Window     control.Window // the last decided one
	At         time.Time      // when its record came to the bus; zero without one
	Watermark  time.Time      // of the windows that were read so far; zero: none
	Windows    int64          // decided since the beginning
	Unanswered int            // moves without an outcome
	Err        error
}

// New checks the options and makes the policy of the configuration in force. It
// reads nothing from the bus.
func New(opts Options) (*Decider, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	p, err := opts.policy(opts.Config)
	if err != nil {
		return nil, err
	}
	for _, w := range opts.Client.Widths().Group(p.Groups()[0]) {
		if p.Width()%w != 0 && p.Groups()[0] == window.Owners {
			return nil, fmt.Errorf("policy of %s decides windows of %s on a bus with windows of %s: %w", p.Kind(), p.Width(), w, ErrOptions)
		}
	}
	if opts.TTL == 0 {
		opts.TTL = 24 * p.Width()
	}
	d := &Decider{
		opts: opts, kind: p.Kind(), group: p.Groups()[0], ttl: ttl(opts.TTL),
		log:      opts.Logger.With().Str("part", "decider").Str("kind", string(p.Kind())).Logger(),
		requests: make(chan func()), ready: make(chan struct{}), ended: make(chan struct{}),
		publish: opts.Client.PublishFenced, instance: rand.Text(),
	}
	d.begin(p)
	d.report(Recovering, nil)
	return d, nil
}

// begin takes a policy in its first state, and forgets everything else.
func (d *Decider) begin(p Policy) {
	d.policy, d.config = p, ConfigDigest(p.Config())
	d.asm = panes.New(panes.Options{Group: d.group, Partitions: d.opts.Client.Partitions(), Width: p.Width(), Widths: d.opts.Client.Widths()})
	d.state = state{Epochs: map[string]uint64{}}
}

// Ready is closed once the decider has caught up with its records and decides.
func (d *Decider) Ready() <-chan struct{} { return d.ready }

// Status returns how the decider stands.
func (d *Decider) Status() Status { return *d.status.Load() }

func (d *Decider) report(p Phase, err error) {
	s := Status{
		Kind: d.kind, Phase: p, Mode: d.opts.Mode, FellBack: d.state.Fallback != nil,
		Window: d.state.Window, At: d.at, Windows: d.state.Windows, Unanswered: d.state.Answers.unanswered(), Err: err,
	}
	if mark := d.asm.Watermark(); mark != window.NullInt {
		s.Watermark = time.UnixMicro(mark).UTC()
	}
	if d.operator != nil && d.operator.switches.Mode != "" {
		s.Mode = d.operator.switches.Mode
	}
	if s.FellBack && s.Mode == control.Act {
		s.Mode = control.Advise
	}
	d.status.Store(&s)
}

// Run recovers and decides until the context ends (nil) or there is no going on.
// When the context ends it stores a snapshot, for which it has StopWithin.
func (d *Decider) Run(ctx context.Context) error {
	defer close(d.ended)
	err := d.run(ctx)
	if ctx.Err() != nil && !d.lasting(err) {
		err = d.stop(ctx)
	}
	if err != nil {
		d.report(Failed, err)
		return fmt.Errorf("decider %s: %w", d.kind, err)
	}
	d.report(Stopped, nil)
	return nil
}

// lasting reports whether an error would have come without the context's end.
func (d *Decider) lasting(err error) bool {
	return errors.Is(err, ErrFenced) || errors.Is(err, ErrDiverged) || errors.Is(err, ErrStateLost) || errors.Is(err, ErrTooLarge)
}

func (d *Decider) run(ctx context.Context) error {
	defer d.closeReaders()
	if err := d.recover(ctx); err != nil {
		return err
	}
	if err := d.goLive(ctx); err != nil {
		return err
	}
	d.live = true
	d.report(Deciding, nil)
	close(d.ready)
	return d.loop(ctx)
}

// loop decides windows as they close. Outcomes are taken in as they come, which
// is between windows.
func (d *Decider) loop(ctx context.Context) error {
	for {
		for w := d.asm.Close(); w != nil; w = d.asm.Close() {
			if err := d.decide(ctx, w); err != nil {
				return err
			}
		}
		if b := d.outcomes.back; b != nil {
			d.outcomes.back = nil
			if err := d.takeOutcome(ctx, *b, true); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m, ok := <-d.windows.C():
			if err := d.takeWindows(ctx, m, ok); err != nil {
				return err
			}
		case m, ok := <-d.outcomes.C():
			if err := d.takeOutcome(ctx, m, ok); err != nil {
				return err
			}
		case f := <-d.requests:
			f()
		}
	}
}

// takeWindows takes in a message of WINDOWS.
func (d *Decider) takeWindows(ctx context.Context, m bus.Msg, ok bool) error {
	if !ok {
		ended, err := d.windows.Reopen(ctx)
		if err == nil && ended {
			err = cmp.Or(ctx.Err(), bus.ErrClosed)
		}
		return err
	}
	_, err := d.windows.Take(m)
	if err == nil && d.live {
		d.report(Deciding, nil) // The watermark may have come on.
	}
	return err
}

// stop is the end of a run whose context has ended.
func (d *Decider) stop(ctx context.Context) error {
	if !d.live || d.dirty || d.since == 0 {
		return nil
	}
	if !d.opts.Client.NC.IsConnected() {
		d.log.Warn().Msg("stopped without a snapshot: there is no connection to the bus")
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.opts.StopWithin)
	defer cancel()
	if err := d.snapshot(ctx); err != nil {
		// The records are on the bus: the next start takes longer, no more.
		d.log.Warn().Err(err).Msg("stopped without a snapshot")
	}
	return nil
}

func (d *Decider) closeReaders() {
	if d.windows != nil {
		d.windows.Close()
	}
	if d.outcomes != nil {
		d.outcomes.Close()
	}
}

// Explain tells what the policy knows of an owner, false if nothing. It waits
// until the decider decides, and then for its turn between two windows. ErrEnded
// says that its Run has ended.
func (d *Decider) Explain(ctx context.Context, owner string) (any, bool, error) {
	type answer struct {
		v  any
		ok bool
	}
	out := make(chan answer, 1)
	ask := func() {
		v, ok := d.policy.Explain(owner)
		out <- answer{v, ok}
	}
	select {
	case d.requests <- ask:
		a := <-out
		return a.v, a.ok, nil
	case <-d.ended:
		return nil, false, fmt.Errorf("explain %.60q: %w", owner, ErrEnded)
	case <-ctx.Done():
		return nil, false, fmt.Errorf("explain %.60q: %w", owner, ctx.Err())
	}
}

// retry calls f until it succeeds, fails for good, or the context ends.
func (d *Decider) retry(ctx context.Context, what string, f func(ctx context.Context) error) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		try, cancel := context.WithTimeout(ctx, 30*time.Second)
		err := f(try)
		cancel()
		if err == nil || d.lasting(err) || errors.Is(err, errForGood) || errors.Is(err, bus.ErrClosed) || errors.Is(err, nats.ErrConnectionClosed) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		d.opts.Metrics.Retried(d.kind, what)
		d.log.Warn().Err(err).Str("what", what).Msg("the bus did not answer, asking again")
		if err := d.opts.Clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// errForGood marks errors that asking again does not mend.
var errForGood = errors.New("for good")

// lastRecord is the last message on the kind's decisions; its sequence is 0 if
// there is none.
func (d *Decider) lastRecord(ctx context.Context) (m bus.Msg, err error) {
	err = d.retry(ctx, "last record", func(ctx context.Context) error {
		var err error
		m, err = d.opts.Client.Last(ctx, subject.CommandsStream, subject.Decisions(string(d.kind)))
		if errors.Is(err, bus.ErrNoMessage) {
			m, err = bus.Msg{}, nil
		}
		return err
	})
	return m, err
}
