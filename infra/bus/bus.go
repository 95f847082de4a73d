package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/clock"
	"penstock/schemas/window"
)

// Bus is an embedded NATS server, or the address of one. It is safe for
// concurrent use.
type Bus struct {
	opts     Options
	server   *embedded // nil at a URL
	admin    *nats.Conn
	js       jetstream.JetStream
	replicas atomic.Int64
	gossip   time.Duration // how long servers of a cluster are waited for, once
	gossiped sync.Once
	metrics  *metrics

	mu      sync.Mutex
	clients map[*Client]struct{}
	closed  bool
}

// Open starts the embedded server over Options.Dir, or connects to
// Options.URL. It refuses a folder in use ([ErrInUse]), a server that is too
// old ([ErrVersion]) and one without JetStream. It makes no streams. With
// Options.Patient the server at the URL need not be there yet.
func Open(ctx context.Context, o Options) (*Bus, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	b := &Bus{opts: o, clients: map[*Client]struct{}{}, gossip: gossipWithin}
	var err error
	if b.metrics, err = newMetrics(o.Registerer); err != nil {
		return nil, err
	}
	if o.URL == "" {
		if b.server, err = startEmbedded(ctx, &o); err != nil {
			return nil, err
		}
	}
	if b.patient() {
		if err := b.connectLater(); err != nil {
			return nil, err
		}
		return b, nil
	}
	if err := b.connectAdmin(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Bus) connectAdmin(ctx context.Context) error {
	var err error
	if b.admin, err = b.connect("admin", new(life), nil); err != nil {
		return err
	}
	if err := checkVersion(b.admin.ConnectedServerVersion()); err != nil {
		return fmt.Errorf("NATS at %s: %w", b.address(), err)
	}
	if b.js, err = newJetStream(b.admin); err != nil {
		return err
	}
	if _, err := b.js.AccountInfo(ctx); err != nil {
		return fmt.Errorf("NATS at %s: JetStream cannot be used: %w", b.address(), err)
	}
	b.replicas.Store(replicas(b.admin))
	b.opts.Logger.Info().Str("at", b.address()).Str("version", b.admin.ConnectedServerVersion()).
		Int("replicas", b.Replicas()).Bool("embedded", b.server != nil).
		Bool("sync_always", b.server != nil && b.opts.Sync == SyncAlways).Msg("bus is open")
	return nil
}

// clusterReplicas is how many copies streams have on a cluster that is large enough.
const clusterReplicas = 3

// replicas is 3 on a cluster of at least three servers, else 1. The cluster is
// known by the servers it tells of, which leaves out the one that was named.
func replicas(nc *nats.Conn) int64 {
	if nc.ConnectedClusterName() == "" {
		return 1
	}
	known := map[string]bool{nc.ConnectedAddr(): true}
	told := nc.DiscoveredServers()
	for _, u := range told {
		known[hostPort(u)] = true
	}
	named := len(nc.Servers()) - len(told)
	if max(len(known), named) >= clusterReplicas {
		return clusterReplicas
	}
	return 1
}

// gossipWithin is how long a server of a cluster may take to tell a client of the others.
const gossipWithin = 2 * time.Second

// meet waits once for the servers of a cluster that are not known yet: one that has
// just started tells of the others a moment after it takes its first client, and
// streams must not be made with one copy for that.
func (b *Bus) meet(ctx context.Context) {
	b.gossiped.Do(func() {
		machine := clock.System() // connections go by it
		for end := machine.Now().Add(b.gossip); b.admin.ConnectedClusterName() != "" && b.Replicas() < clusterReplicas; {
			if machine.Now().After(end) || machine.Sleep(ctx, 10*time.Millisecond) != nil {
				return
			}
			b.replicas.Store(replicas(b.admin))
		}
	})
}

func hostPort(u string) string {
	if _, rest, ok := strings.Cut(u, "://"); ok {
		return rest
	}
	return u
}

func (b *Bus) address() string {
	if b.server != nil {
		if u := b.server.url(); u != "" {
			return u
		}
		return b.opts.Dir
	}
	return b.opts.URL
}

// URL is where other processes reach the bus: the address that was opened, or
// that of Options.Listen; empty for an embedded bus without a port.
func (b *Bus) URL() string {
	if b.server != nil {
		return b.server.url()
	}
	return b.opts.URL
}

// Embedded reports whether the server runs inside this process.
func (b *Bus) Embedded() bool { return b.server != nil }

// Replicas is the number of copies that streams made by Init have; 0 while a
// patient bus has not been seen yet.
func (b *Bus) Replicas() int { return int(b.replicas.Load()) }

// patient reports whether the server may be away at a start.
func (b *Bus) patient() bool { return b.opts.Patient && b.server == nil }

// connect makes a connection that is kept up for ever; l follows its ups and
// downs, and so does p if there is one.
func (b *Bus) connect(role string, l *life, p *patience) (*nats.Conn, error) {
	log := b.opts.Logger.With().Str("role", role).Logger()
	opts := append([]nats.Option{
		nats.Name(b.opts.Name + "/" + role),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(50 * time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 100*time.Millisecond),
		// A peer that is silent, not gone, is given up after 8 to 12 s, and one
		// that takes nothing any more after 5 s.
		nats.PingInterval(4 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.FlusherTimeout(5 * time.Second),
		nats.Timeout(5 * time.Second),
		nats.RetryOnFailedConnect(false),
		// What cannot be sent now fails now: a message held back in the client
		// would be stored long after its sender has given it up.
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			l.lost()
			if err != nil {
				log.Warn().Err(err).Msg("bus connection lost")
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info().Str("version", nc.ConnectedServerVersion()).Msg("bus connection is back")
			if p != nil {
				p.connected()
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn().Err(err).Msg("bus connection")
		}),
	}, b.opts.Connect...)
	if b.server != nil {
		opts = append(opts, nats.InProcessServer(b.server))
	}
	if p != nil {
		opts = append(opts,
			nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(), nats.Timeout(awayTimeout),
			nats.ConnectHandler(func(*nats.Conn) { p.connected() }), patientDialer(p.note))
	}
	nc, err := nats.Connect(b.opts.URL, opts...)
	if err != nil {
		return nil, fmt.Errorf("NATS at %s: %w", b.address(), err)
	}
	return nc, nil
}

func newJetStream(nc *nats.Conn) (jetstream.JetStream, error) {
	// Twice the default: with sync always a full disk queue takes its time.
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(10*time.Second))
	if err != nil {
		return nil, fmt.Errorf("JetStream: %w", err)
	}
	return js, nil
}

// Client makes a connection of its own for a role. The streams must be there
// (Init, or penstock init): the number of partitions is read from EVENTS, the width
// of windows from WINDOWS.
// Readers that were made with it end when it is closed.
//
// On a patient bus it returns although the bus is away: for Options.Partitions
// and Options.Window, or for the defaults where nobody says. Ready and Fault tell
// of the bus when it has come.
func (b *Bus) Client(ctx context.Context, role string) (*Client, error) {
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	c := &Client{bus: b, life: new(life)}
	var err error
	if b.patient() {
		c.patience = newPatience(b, role, c.life)
		c.widths = window.Widths{Owners: b.wantWindow()}
	} else if err = c.ask(ctx); err != nil {
		return nil, err
	}
	if c.NC, err = b.connect(role, c.life, c.patience); err != nil {
		return nil, err
	}
	if c.JS, err = newJetStream(c.NC); err != nil {
		c.NC.Close()
		return nil, err
	}
	if p := c.patience; p != nil {
		p.nc, p.js = c.NC, c.JS
		c.partitions = p.start(ctx)
	}
	b.mu.Lock()
	closed = b.closed
	if !closed {
		b.clients[c] = struct{}{}
	}
	b.mu.Unlock()
	if closed {
		c.shut()
		return nil, ErrClosed
	}
	return c, nil
}

const (
	// backWithin is how long a new client waits for a connection of the bus's own
	// that was lost a moment ago and is being made again.
	backWithin = 5 * time.Second
	// askWithin is how long one answer is waited for: what was asked over a
	// connection that is lost is never answered.
	askWithin = time.Second
)

// ask reads from the streams what every client must agree on. A server that has just
// come back is asked again.
func (c *Client) ask(ctx context.Context) error {
	machine := clock.System() // connections go by it, whatever else goes by another
	for end := machine.Now().Add(backWithin); ; {
		err := c.askOnce(ctx)
		passing := errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, context.DeadlineExceeded)
		if !passing || ctx.Err() != nil || machine.Now().After(end) {
			return err
		}
		if machine.Sleep(ctx, 10*time.Millisecond) != nil {
			return err
		}
	}
}

func (c *Client) askOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var err error
	if c.partitions, err = c.bus.partitions(ctx, c.bus.js); err != nil {
		return err
	}
	c.widths.Owners, err = c.bus.window(ctx, c.bus.js)
	return err
}

// Suspend takes an embedded server down, as a crash of a separate one would:
// connections are lost and retry. Resume brings it up over the same folder.
// They are for tests and drills; at a URL they do nothing.
func (b *Bus) Suspend() {
	if b.server != nil {
		b.server.stop()
	}
}

// Resume ends Suspend.
func (b *Bus) Resume() error {
	if b.server == nil {
		return nil
	}
	return b.server.start(context.Background())
}

// Close closes all clients, shuts an embedded server down and gives its folder
// free. It is safe to call twice.
func (b *Bus) Close() error {
	b.mu.Lock()
	clients := b.clients
	b.closed, b.clients = true, map[*Client]struct{}{}
	b.mu.Unlock()
	for c := range clients {
		c.shut()
	}
	if b.admin != nil {
		b.admin.Close()
	}
	if b.server != nil {
		return b.server.close()
	}
	return nil
}

// name adds the prefix to a stream: EVENTS, or NAME_EVENTS.
func (b *Bus) name(stream string) string {
	if b.opts.Prefix == "" {
		return stream
	}
	return b.opts.Prefix + "_" + stream
}

// subject adds the prefix to a subject: events.0.web, or NAME.events.0.web.
func (b *Bus) subject(s string) string {
	if b.opts.Prefix == "" {
		return s
	}
	return b.opts.Prefix + "." + s
}

// bare takes the prefix off a subject.
func (b *Bus) bare(s string) string {
	if b.opts.Prefix == "" {
		return s
	}
	return strings.TrimPrefix(s, b.opts.Prefix+".")
}

// Options are those that the bus was opened with, defaults filled in.
func (b *Bus) Options() Options { return b.opts }
