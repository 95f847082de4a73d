package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/schemas/subject"
)

const (
	// awayTimeout bounds one attempt to reach a bus that may be away, and one
	// question to it.
	awayTimeout = 2 * time.Second
	// grace is how long a start waits for a bus that neither answers nor refuses.
	grace = time.Second
	// lookLeast and lookMost pace the looking at a bus that is not as it should be.
	lookLeast = 50 * time.Millisecond
	lookMost  = time.Second
)

// patience is what a client of a patient bus knows about the bus. The bus is
// looked at when it comes, and again each time it comes back, for it may be
// another one then:
//
//	away ──connected──▶ looked at ──as it should be──▶ usable ──lost──▶ away
//	                        │  ▲
//	                    differs └── once a second
//	                        ▼
//	                      fault
type patience struct {
	b          *Bus
	nc         *nats.Conn
	js         jetstream.JetStream
	life       *life
	log        zerolog.Logger
	partitions int // what this client was made for; 0 until it is known

	kick chan struct{} // the connection was made
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	looked  bool   // the bus has been looked at on this connection
	number  uint64 // of the connection that was looked at
	fault   error
	why     error         // the last reason for not getting there
	changed chan struct{} // closed and made anew when one of them changes
}

func newPatience(b *Bus, role string, l *life) *patience {
	return &patience{
		b: b, life: l, log: b.opts.Logger.With().Str("role", role).Logger(), partitions: b.opts.Partitions,
		kick: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{}),
	}
}

// start looks at the bus until close. It waits for the first answer, or for the
// news that there is none, but not for long, and returns the partitions that
// hold from then on.
func (p *patience) start(ctx context.Context) int {
	own, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() {
		defer close(p.done)
		p.run(own)
	}()
	wait, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for {
		p.mu.Lock()
		// Without a number of its own the client would rather wait for the bus's.
		settled, changed := p.looked || p.why != nil && p.partitions != 0, p.changed
		p.mu.Unlock()
		if settled {
			break
		}
		select {
		case <-changed:
			continue
		case <-wait.Done():
		}
		break
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.partitions == 0 { // Nobody said how many, and the bus could not be asked.
		p.partitions = DefaultPartitions
	}
	if !p.looked {
		p.log.Warn().Str("at", p.b.address()).AnErr("why", p.why).Int("partitions", p.partitions).
			Msg("the bus is away; going on without it until it comes")
	}
	return p.partitions
}

func (p *patience) close() {
	p.stop()
	<-p.done
}

// run looks at the bus each time that it comes, and every second while it is not
// as it should be.
func (p *patience) run(ctx context.Context) {
	for wait := lookLeast; ; {
		if p.look(ctx) {
			wait = lookLeast
			if !p.pause(ctx, nil) {
				return
			}
			continue
		}
		t := p.b.opts.Clock.NewTimer(wait)
		wait = min(2*wait, lookMost)
		on := p.pause(ctx, t)
		t.Stop()
		if !on {
			return
		}
	}
}

// pause waits for a new connection, or for the timer if there is one; false once
// the context has ended.
func (p *patience) pause(ctx context.Context, t clock.Timer) bool {
	var fired <-chan time.Time
	if t != nil {
		fired = t.C()
	}
	select {
	case <-p.kick:
	case <-fired:
	case <-ctx.Done():
		return false
	}
	return true
}

// look compares the bus with what this client was made for, if there is a
// connection. It reports whether the bus can be used.
func (p *patience) look(ctx context.Context) bool {
	if !p.nc.IsConnected() {
		return false
	}
	number := p.nc.Stats().Reconnects
	ctx, cancel := context.WithTimeout(ctx, awayTimeout)
	defer cancel()
	ctx, release := p.life.within(ctx)
	defer release()
	fault, err := p.examine(ctx)
	if err != nil { // It has not answered, so that nothing is known.
		p.note(err)
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell(fault)
	p.looked, p.number, p.fault = true, number, fault
	p.wake()
	return fault == nil
}

// examine asks for what every client relies on: a server that is new enough,
// JetStream, and streams that were made for as many partitions. The width of
// windows counts only if somebody named one, for who publishes needs none.
func (p *patience) examine(ctx context.Context) (fault, err error) {
	if err := checkVersion(p.nc.ConnectedServerVersion()); err != nil {
		return fmt.Errorf("NATS at %s: %w", p.b.address(), err), nil
	}
	have, err := p.b.partitions(ctx, p.js)
	var width time.Duration
	if err == nil && p.b.opts.Window != 0 {
		width, err = p.b.window(ctx, p.js)
	}
	switch {
	case errors.Is(err, ErrNotReady):
		return err, nil
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("NATS at %s: JetStream cannot be used: %w", p.b.address(), err), nil
	case err != nil:
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.partitions == 0 {
		p.partitions = have
	}
	d := differ{of: "stream " + p.b.name(subject.EventsStream)}
	d.compare("metadata "+metaPartitions, have, p.partitions)
	d.of = "stream " + p.b.name(subject.WindowsStream)
	d.compare("metadata "+metaWindow, width, p.b.opts.Window)
	if len(d.diffs) > 0 {
		return &DiffError{Diffs: d.diffs}, nil
	}
	return nil, nil
}

// tell logs what has changed. The lock is held.
func (p *patience) tell(fault error) {
	switch {
	case fault == nil && (!p.looked || p.fault != nil):
		p.log.Info().Str("at", p.b.address()).Str("version", p.nc.ConnectedServerVersion()).
			Int("partitions", p.partitions).Msg("the bus is there")
	case fault != nil && (p.fault == nil || p.fault.Error() != fault.Error()):
		p.log.Error().Err(fault).Msg("the bus cannot be used; waiting until it is as it should be")
	}
}

// note keeps why the bus could not be reached.
func (p *patience) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.why = err
	p.wake()
}

// wake tells those who wait that something has changed. The lock is held.
func (p *patience) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// connected is called when a connection was made.
func (p *patience) connected() {
	select {
	case p.kick <- struct{}{}:
	default: // It is awake already.
	}
}

// usable is nil if the bus was looked at on the connection that there is now,
// and is as it should be.
func (p *patience) usable() error {
	connected, number := p.nc.IsConnected(), p.nc.Stats().Reconnects
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !connected, !p.looked, p.number != number:
		return ErrAway
	default:
		return p.fault
	}
}

// Connected reports whether there is a connection to the bus at the moment.
// Whether it is the right bus says Usable.
func (c *Client) Connected() bool { return c.NC.IsConnected() }

// Usable is nil if messages may be sent. On a patient bus it is [ErrAway] while
// there is no connection or the bus has not been looked at yet, and else what
// Fault says. A client that is not patient may always send, and hears of a lost
// connection from what it sends.
func (c *Client) Usable() error {
	if c.patience == nil {
		return nil
	}
	return c.patience.usable()
}

// Fault says in what the bus, when it was last looked at, differed from what this
// client was made for: a server that is too old ([ErrVersion]), no streams of
// ours yet ([ErrNotReady]), other partitions (*[DiffError]). It is nil if it did
// not differ or has not been seen yet, and always on a bus that is not patient.
// It is looked at again every second, so that a fault may go away.
func (c *Client) Fault() error {
	if c.patience == nil {
		return nil
	}
	c.patience.mu.Lock()
	defer c.patience.mu.Unlock()
	return c.patience.fault
}

// Ready waits until the bus is there and as it should be. The error is the
// context's, and says what is missing; ErrClosed once the client is closed.
func (c *Client) Ready(ctx context.Context) error {
	for {
		if c.NC.IsClosed() {
			return ErrClosed
		}
		changed := c.changes()
		err := c.Usable()
		if err == nil && c.Connected() {
			return nil
		}
		if err == nil {
			err = ErrAway
		}
		t := c.bus.opts.Clock.NewTimer(tick) // What nobody tells of: the loss of the connection.
		select {
		case <-changed:
		case <-t.C():
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%w: %w", ctx.Err(), c.reason(err))
		}
		t.Stop()
	}
}

// changes is closed when what is known about the bus changes; nil if it isn't
// patient.
func (c *Client) changes() <-chan struct{} {
	if c.patience == nil {
		return nil
	}
	c.patience.mu.Lock()
	defer c.patience.mu.Unlock()
	return c.patience.changed
}

// reason adds to ErrAway why the last attempt failed.
func (c *Client) reason(err error) error {
	if c.patience == nil || !errors.Is(err, ErrAway) {
		return err
	}
	last := c.NC.LastError() // of a server that was reached and would not have us
	c.patience.mu.Lock()
	defer c.patience.mu.Unlock()
	switch {
	case c.patience.why != nil:
		return fmt.Errorf("%w (%w)", err, c.patience.why)
	case last != nil && !errors.Is(last, errDialling):
		return fmt.Errorf("%w (%w)", err, last)
	}
	return err
}

// connectLater makes the connection that Init and Check use, in the background.
func (b *Bus) connectLater() error {
	var err error
	if b.admin, err = b.connect("admin", new(life), newPatience(b, "admin", new(life))); err != nil {
		return err
	}
	b.js, err = newJetStream(b.admin)
	return err
}

// seen returns an error while a patient bus has not been seen or is too old.
// From then on it is known how many copies a stream has.
func (b *Bus) seen() error {
	if !b.patient() {
		return nil
	}
	if !b.admin.IsConnected() {
		return fmt.Errorf("NATS at %s: %w", b.address(), ErrAway)
	}
	if err := checkVersion(b.admin.ConnectedServerVersion()); err != nil {
		return fmt.Errorf("NATS at %s: %w", b.address(), err)
	}
	b.replicas.Store(replicas(b.admin))
	return nil
}
