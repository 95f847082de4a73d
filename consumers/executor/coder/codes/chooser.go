package codes

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"penstock/consumers/decider/coding/threshold"
	"penstock/consumers/executor/coder/queue"
	"penstock/infra/clock"
	"penstock/schemas/control"
)

// Over is the time over which a coder averages its backlog: about that of 16 requests of
// 3 MB, one after another (PAPERS §3.2), so that near capacity the average rests on two
// hundred of them.
const Over = 2 * time.Second

// Options of a Chooser.
type Options struct {
	// Default is in force until there is another table, and after a ttl is over. Its
	// epoch is 0. Needed.
	Default control.CodingTable
	// Over is the time over which the backlog is averaged, as Clock tells it: see the
	// package's documentation. 0: arrivals are averaged, by Smoothing.
	Over time.Duration
	// Clock defaults to the machine's.
	Clock clock.Clock
	// Smoothing is the weight of the newest backlog that an arrival found in the moving
	// average, above 0 and at most 1. Defaults to threshold.Smoothing, 0.01.
	Smoothing float64
}

// Chooser picks codes by the table in force. It is safe for concurrent use.
type Chooser struct {
	byDefault *table
	weight    float64
	force     atomic.Pointer[table]
	backlog   atomic.Uint64 // the smoothed backlog, as bits of a float64

	over  time.Duration // 0: arrivals are averaged
	clock clock.Clock
	mu    sync.Mutex // held while what follows changes, and backlog by it
	since time.Time  // backlog is as of then; zero: nothing has waited yet
	waits int        // requests, from then on
}

var (
	_ queue.Chooser  = (*Chooser)(nil)
	_ queue.Follower = (*Chooser)(nil)
)

// New returns a chooser with its default in force and a backlog of 0. ErrOptions, and
// ErrTable for a default that can't be.
func New(o Options) (*Chooser, error) {
	o.Smoothing = cmp.Or(o.Smoothing, threshold.Smoothing)
	if !(o.Smoothing > 0 && o.Smoothing <= 1) {
		return nil, fmt.Errorf("smoothing: got %v, expected above 0, at most 1: %w", o.Smoothing, ErrOptions)
	}
	if o.Over < 0 {
		return nil, fmt.Errorf("over: got %v, expected 0 or more: %w", o.Over, ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	t, err := newTable(&o.Default, 0, time.Time{})
	if err != nil {
		return nil, fmt.Errorf("default: %w", err)
	}
	c := &Chooser{byDefault: t, weight: o.Smoothing, over: o.Over, clock: o.Clock}
	c.force.Store(t)
	return c, nil
}

// Arrived smooths the backlog that a request found, if arrivals are averaged.
func (c *Chooser) Arrived(backlog int) {
	for c.over == 0 {
		was := c.backlog.Load()
		q := math.Float64frombits(was)
		// The conversion keeps the products from being fused: the same arrivals give
		// the same backlog on any machine.
		next := math.Float64bits(float64(c.weight*float64(backlog)) + float64((1-c.weight)*q))
		if c.backlog.CompareAndSwap(was, next) {
			return
		}
	}
}

// Follows takes in for how long as many requests waited as did, if time is averaged.
func (c *Chooser) Follows(waiting int) {
	if c.over == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.backlog.Store(math.Float64bits(c.average(now)))
	c.since, c.waits = now, waiting
}

// average is the average as of a time; the lock is held. The step is that of
// q̄' = (q − q̄)/over by the implicit Euler rule: never beyond q, and the same on any
// machine, which an exponential function isn't.
func (c *Chooser) average(now time.Time) float64 {
	was := math.Float64frombits(c.backlog.Load())
	d := now.Sub(c.since)
	if c.since.IsZero() || d <= 0 {
		return was
	}
	part := float64(d) / float64(d+c.over)
	return was + float64(part*(float64(c.waits)-was))
}

// Choose is the code that a request of an operation gets now.
func (c *Chooser) Choose(op queue.Op, idle int) queue.Code {
	return c.force.Load().ops[op].code(math.Float64frombits(c.backlog.Load()), idle)
}

// Sized is what a code that was chosen is for a request of so many bytes. Thresholds are
// for one size. At the same price of a connection's time the k that is best rises as the
// square root of the size (PAPERS §3.3: the condition for k is J/k² = a constant but for
// r): a chunk of a small object is nearly all constant delay, and to cut it would only
// cost requests. n goes with k.
func (c *Chooser) Sized(op queue.Op, code queue.Code, bytes int64) queue.Code {
	return c.force.Load().ops[op].sized(code, bytes)
}

// Set brings a table into force, all of it at once, until a time. ErrTable if it can't
// be; what is in force stays then.
func (c *Chooser) Set(t *control.CodingTable, epoch uint64, until time.Time) error {
	next, err := newTable(t, epoch, until)
	if err != nil {
		return err
	}
	c.force.Store(next)
	return nil
}

// Expire puts the default in the place of a table whose time is over, and says whether
// there was one.
func (c *Chooser) Expire(now time.Time) bool {
	t := c.force.Load()
	return !t.until.IsZero() && !t.until.After(now) && c.force.CompareAndSwap(t, c.byDefault)
}

// giveWay puts the default in the place of whatever is in force.
func (c *Chooser) giveWay() { c.force.Store(c.byDefault) }

// State is what a chooser goes by.
type State struct {
	// Table is in force. It must not be changed.
	Table control.CodingTable
	// Epoch is its; 0 for the default.
	Epoch uint64
	// Until is when its ttl is over; zero for the default.
	Until time.Time
	// Backlog is the smoothed number of waiting requests.
	Backlog float64

	table *table
}

// Choose is the code that a request of an operation would get, with so many connections
// idle.
func (s *State) Choose(op queue.Op, idle int) queue.Code {
	return s.table.ops[op].code(s.Backlog, idle)
}

// State is what the chooser goes by now. To look changes nothing.
func (c *Chooser) State() State {
	t := c.force.Load()
	s := State{Table: t.coding, Epoch: t.epoch, Until: t.until, table: t}
	if c.over == 0 {
		s.Backlog = math.Float64frombits(c.backlog.Load())
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Backlog = c.average(c.clock.Now())
	return s
}
