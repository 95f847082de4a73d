package gate

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
)

// DefaultAway is how long an entry point that starts while the bus is away keeps
// writes waiting.
const DefaultAway = 4 * time.Second

// KeeperOptions says whose writes are kept.
type KeeperOptions struct {
	// Away is how long after its start an entry point keeps all writes waiting if
	// it can't register, because the bus is away. Then it lets them in, and no
	// mover may know of it if this is its first start. Negative: for ever.
	// Defaults to DefaultAway.
	Away time.Duration
	// Client is the connection to the bus; it may be patient.
	Client *bus.Client
	// Clock paces retries and leases. Defaults to the system's.
	Clock clock.Clock
	// Count, if set, is told what happens, by the What constants. It must not block.
	Count func(what string, n int64)
	// Learn, if set, is told where an owner is, before writers that waited go on.
	Learn func(owner, site string, version uint64)
	// Logger gets what is worth knowing.
	Logger zerolog.Logger
	// Name of the entry point, by which it comes back after a crash.
	Name string
	// Site of the entry point.
	Site string
	// Sync, if set, is called after the entry point has registered and before
	// writes are let in. It returns once Locate knows every location that was on
	// the bus when it was called: an entry point that was drained was not told of
	// moves since.
	Sync func(ctx context.Context) error

	link link
}

func (o *KeeperOptions) complete() error {
	if o.Client == nil && o.link == nil || o.Name == "" || o.Site == "" {
		return fmt.Errorf("a client, a site and a name are needed: %w", ErrOptions)
	}
	if o.link == nil {
		o.link = onBus{o.Client}
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Count == nil {
		o.Count = func(string, int64) {}
	}
	o.Away = cmp.Or(o.Away, DefaultAway)
	return nil
}

// What is counted, on both sides.
const (
	Held        = "held"          // an owner's writes, at a mover's word
	Waited      = "waited"        // a write found its owner held
	Expired     = "lease-expired" // the mover of a hold was not heard of in time
	Asked       = "where-asked"   // a mover was asked where an owner is
	Unanswered  = "unanswered"    // and none knew
	Registered  = "registered"    // the entry point, at its start or anew
	Unknown     = "unregistered"  // writes are let in before it could register
	Unreadable  = "unreadable"    // a request or entry that cannot be decoded
	Silent      = "entry-silent"  // a registered entry point did not answer
	HoldLost    = "hold-lost"     // an entry point holds an owner no more
	Firmed      = "firmed"        // locations was written once more, so that no flip arrives
	Undelivered = "undelivered"   // an entry point was not told how a move ended
	Failed      = "failed"        // something on the bus, to be tried again
)

// Keeper keeps an entry point's writes to an owner waiting while a mover asks for
// it. Its methods are safe for concurrent use.
type Keeper struct {
	o        KeeperOptions
	instance string
	counters *counters
	busy     atomic.Int64 // owners that are held, one more while not open

	mu     sync.RWMutex
	state  state
	opened chan struct{} // closed when it opens
	never  chan struct{} // is not closed: nothing is let in any more
	owners map[string]*owner
	over   ring // ids of holds that are over

	register chan struct{} // taken by who registers the entry point, or takes it out
	mine     bool          // it has registered; its holder's
	grumble  grumble
	ctx      context.Context // of Run: what holds do ends with it
	working  sync.WaitGroup
}

type state int

const (
	starting state = iota
	open
	closed
)

// owner is one whose writes are held.
type owner struct {
	holds map[string]*hold
	over  chan struct{} // closed when none is left
}

// NewKeeper checks the options. Until Run has registered the entry point, Enter
// lets nobody in.
func NewKeeper(o KeeperOptions) (*Keeper, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	k := &Keeper{
		o: o, instance: rand.Text(), counters: newCounters(),
		opened: make(chan struct{}), never: make(chan struct{}), owners: map[string]*owner{},
		register: make(chan struct{}, 1),
	}
	k.busy.Store(1)
	return k, nil
}

// Enter lets a write to an owner's data in: leave must be called, once, when it has
// been answered. Or the owner is held: leave is nil, and held is closed when that is
// over; then ask where the owner is and enter again. It takes some nanoseconds and
// allocates nothing.
func (k *Keeper) Enter(owner string) (leave func(), held <-chan struct{}) {
	s := k.counters.of(owner)
	p := s.enter()
	// Counted first, looked after: a hold looks the other way round.
	if k.busy.Load() == 0 {
		return s.leave[p], nil
	}
	if held = k.holdOf(owner); held != nil {
		s.left(int(p))
		k.o.Count(Waited, 1)
		return nil, held
	}
	return s.leave[p], nil
}

// holdOf is what a write to the owner has to wait for, nil if for nothing.
func (k *Keeper) holdOf(name string) <-chan struct{} {
	k.mu.RLock()
	defer k.mu.RUnlock()
	switch k.state {
	case starting:
		return k.opened
	case closed:
		return k.never
	}
	if o := k.owners[name]; o != nil {
		return o.over
	}
	return nil
}

// Ready is closed once writes are let in.
func (k *Keeper) Ready() <-chan struct{} { return k.opened }

// Holding is the number of owners that are held.
func (k *Keeper) Holding() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.owners)
}

// letIn lets writes in, except to owners that are held.
func (k *Keeper) letIn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state != starting {
		return
	}
	k.state = open
	close(k.opened)
	k.busy.Add(-1)
}

// shut lets nothing in from now on.
func (k *Keeper) shut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == open {
		k.busy.Add(1)
	}
	k.state = closed
}

// Run registers the entry point, then answers movers until the context ends (nil).
// It stays registered: movers wait for it to come back, unless Drain was called.
// ErrNameInUse, ErrDisplaced: from then on nothing is let in.
func (k *Keeper) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	k.ctx = ctx
	defer k.working.Wait()
	defer cancel()
	defer k.shut()
	if err := k.alone(ctx); err != nil {
		return err
	}
	stop := k.listen(ctx)
	if stop == nil {
		return nil
	}
	defer stop()
	return k.keep(ctx)
}

// grumble keeps what fails again and again from filling a log.
type grumble struct {
	mu   sync.Mutex
	last time.Time
}

// level is that of a warning, at most once in a while.
func (g *grumble) level(now time.Time) zerolog.Level {
	const every = 10 * time.Second
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.last.IsZero() && now.Sub(g.last) < every {
		return zerolog.DebugLevel
	}
	g.last = now
	return zerolog.WarnLevel
}

// ring remembers the last names that were put into it.
type ring struct {
	names [256]string
	next  int
	has   map[string]bool
}

func (r *ring) put(name string) {
	if r.has == nil {
		r.has = map[string]bool{}
	}
	delete(r.has, r.names[r.next])
	r.names[r.next] = name
	r.has[name] = true
	r.next = (r.next + 1) % len(r.names)
}
