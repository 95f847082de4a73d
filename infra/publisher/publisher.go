package publisher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"sync/atomic"

	"penstock/schemas/event"
)

// Publisher publishes the rows of one run of one entry point. Publish may be
// called from many goroutines; Send, Horizon, Malformed, Barrier and End of a
// replay must come from one, or its cuts would not follow from its input.
type Publisher struct {
	o     Options
	live  bool
	span  int64 // µs
	count *counters
	out   *outbox
	link  *link
	spool *spool // nil in a replay
	group *group // nil without positions

	slots     []slot
	free      chan *event.Requests
	horizon   atomic.Int64
	malformed atomic.Int64
	ended     atomic.Bool

	stop       context.CancelFunc
	tasks      sync.WaitGroup
	closing    sync.Once
	closed     error
	failOnce   sync.Once
	failure    chan struct{} // closed by fail
	err        error         // set before failure is closed
	complained atomic.Int64  // ms, when last
	beating    atomic.Bool   // a heartbeat has no answer yet
	known      atomic.Bool   // the bus has heard of the run while it waited behind others
	ceiling    atomic.Int64  // µs; what the watermark does not pass
	resending  atomic.Int32  // earlier runs of the spool that are not ended yet
	scratch    []*entry      // the pump's
}

// New opens a run. A live one takes over what the spool holds of earlier runs;
// the bus need not be there for that.
func New(_ context.Context, o Options) (*Publisher, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	count, err := newCounters(o.Registerer, o.Entry)
	if err != nil {
		return nil, err
	}
	p := &Publisher{
		o: o, live: o.MaxAge > 0, span: o.MaxSpan.Microseconds(), count: count,
		slots: make([]slot, o.Partitions), failure: make(chan struct{}),
		free: make(chan *event.Requests, stock),
	}
	p.out = newOutbox(p.live, o.queueMax, o.InFlightMax, o.Partitions, count)
	p.horizon.Store(earliest)
	p.ceiling.Store(math.MaxInt64)
	now := o.Clock.Now()
	for i := range p.slots {
		p.slots[i].lastCut, p.slots[i].horizon = now, earliest
	}
	if o.Positions {
		p.group = newGroup(o.Partitions)
	}
	if o.SpoolDir != "" {
		if err := p.recover(); err != nil {
			return nil, err
		}
	}
	if p.link, err = newLink(o.Client, p.answered); err != nil {
		if p.spool != nil {
			err = errors.Join(err, p.spool.close())
		}
		return nil, err
	}
	p.run()
	return p, nil
}

// run starts the goroutines; Close ends them.
func (p *Publisher) run() {
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	if p.resending.Load() > 0 {
		p.announce()
	}
	p.tasks.Go(func() { p.pack(ctx) })
	p.tasks.Go(func() { p.pump(ctx) })
	if p.live || p.group != nil {
		c := p.newPacer()
		p.tasks.Go(func() { p.pace(ctx, c) })
	}
}

// Run is the name of the run.
func (p *Publisher) Run() string { return p.o.Run }

// Send takes a row of a replay, or of an input with positions. It waits while
// the bus, or the encoder, is behind; it returns the context's error without
// having taken the row, or the error that ended the publisher, or ErrGroup. The
// row must pass Request.Check and have its Mark, and is not kept.
func (p *Publisher) Send(ctx context.Context, r *event.Request) error {
	if p.live {
		return fmt.Errorf("publisher: send on a live publisher: %w", ErrNotReplay)
	}
	if p.ended.Load() {
		return ErrClosed
	}
	if p.group != nil {
		if err := p.groupTakes(); err != nil {
			return err
		}
	}
	if p.out.queued.Load() >= p.o.queueMax {
		if err := p.waitForRoom(ctx); err != nil {
			return err
		}
	}
	n := event.Partition(r.Owner, r.User, r.Trace, len(p.slots))
	s := &p.slots[n]
	s.mu.Lock()
	p.add(n, s, r)
	s.mu.Unlock()
	return nil
}

// waitForRoom waits until the packer has caught up somewhat.
func (p *Publisher) waitForRoom(ctx context.Context) error {
	for {
		p.out.mu.Lock()
		room, full := p.out.room, p.out.queued.Load() >= p.o.queueMax
		p.out.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.failure:
			return p.err
		}
	}
}

// Publish takes a live row and sets its Mark. It never waits and never fails
// its caller: a row that no batch may hold is counted and told as malformed,
// and what cannot be kept is dropped, counted by reason and announced.
func (p *Publisher) Publish(r *event.Request) {
	if err := r.Check(); err != nil {
		p.invalid()
		return
	}
	n := event.Partition(r.Owner, r.User, r.Trace, len(p.slots))
	s := &p.slots[n]
	now := p.o.Clock.Now().UnixMicro()
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.ended.Load() { // under the slot's lock, so that none enters behind End
		p.count.drop(DropClosed, 0, 1)
		return
	}
	r.Mark = Classify(r.Time, s.horizon, now, p.o.MaxSkew.Microseconds())
	p.add(n, s, r)
}

// Horizon sets the run's horizon (µs): the watermark of later cuts of a replay.
// It never goes back. With positions it is also what heartbeats say from the
// next Commit on, and not before: rows that are not committed may be read again.
func (p *Publisher) Horizon(us int64) {
	if us > p.horizon.Load() {
		p.horizon.Store(us)
	}
}

// Malformed counts lines of the input that were no rows. The number goes out
// with the next batch of partition 0, an empty one if need be at a barrier.
func (p *Publisher) Malformed(n int64) { p.malformed.Add(n) }

// Sequences are the last cut sequences per partition.
func (p *Publisher) Sequences() []uint64 {
	p.lockAll()
	defer p.unlockAll()
	return p.sequences()
}

func (p *Publisher) sequences() []uint64 {
	seqs := make([]uint64, len(p.slots))
	for i := range p.slots {
		seqs[i] = p.slots[i].seq
	}
	return seqs
}

func (p *Publisher) lockAll() {
	for i := range p.slots {
		p.slots[i].mu.Lock()
	}
}

func (p *Publisher) unlockAll() {
	for i := range p.slots {
		p.slots[i].mu.Unlock()
	}
}

// fail ends a publisher that cannot go on; those who wait get the error.
func (p *Publisher) fail(err error) {
	p.failOnce.Do(func() {
		p.err = fmt.Errorf("publish events of run %s: %w", p.o.Run, err)
		p.o.Logger.Error().Err(p.err).Msg("publisher cannot go on")
		close(p.failure)
	})
}

// Stats are the totals until now.
func (p *Publisher) Stats() Stats {
	c := p.count
	s := Stats{
		Sent: c.sent.Load(), Skipped: c.skipped.Load(), Batches: c.sentBatches.Load(), Bytes: c.sentBytes.Load(),
		Invalid: c.invalid.Load(), DroppedBatches: c.droppedBatches.Load(), Retries: c.retried.Load(),
		RecoveredBatches: c.recovered.Load(), TornBytes: c.torn.Load(), HeartbeatsConfirmed: c.heartbeats.Load(),
		Commits: c.commits.Load(), Uncommitted: c.uncommitted.Load(),
	}
	c.mu.Lock()
	s.Dropped = maps.Clone(c.dropped)
	c.mu.Unlock()
	p.out.mu.Lock()
	s.InFlight, s.Waiting, s.HeldBytes = len(p.out.flight), len(p.out.undone), p.out.held
	p.out.mu.Unlock()
	if p.spool != nil {
		s.SpoolBytes = p.spool.size()
	}
	return s
}

// Close cuts what is open, waits until everything is acknowledged or ctx ends,
// and stops. What a live publisher could not send stays in the spool, as do the
// groups of one with positions; what a replay could not send is an error. A
// replay cuts nothing here: what neither Barrier nor End has cut is not sent. Nor
// is what was not committed. It is safe to call twice.
func (p *Publisher) Close(ctx context.Context) error {
	p.closing.Do(func() {
		p.lockAll()
		for i := range p.slots {
			// A replay that ends in the middle of a batch would give a sequence to
			// rows that the next attempt cuts otherwise.
			if p.live {
				p.cut(i, &p.slots[i])
			}
		}
		p.ended.Store(true)
		p.unlockAll()
		if p.group != nil {
			p.count.forgotten(p.out.forget())
		}
		err := p.drain(ctx)
		p.packed()
		p.stop()
		p.tasks.Wait()
		p.link.close()
		if p.spool != nil {
			// The spool has the rest; the next start sends it.
			err = p.spool.close()
		}
		p.closed = err
	})
	return p.closed
}

// packed waits until the packer has taken up everything that was cut, if there is
// a spool to put it into: that needs no bus and no patience.
func (p *Publisher) packed() {
	for p.spool != nil {
		p.out.mu.Lock()
		room, left := p.out.room, len(p.out.raw)
		p.out.mu.Unlock()
		if left == 0 {
			return
		}
		<-room
	}
}

// drain waits until nothing is undone.
func (p *Publisher) drain(ctx context.Context) error {
	for {
		p.out.mu.Lock()
		room, undone := p.out.room, len(p.out.undone)
		p.out.mu.Unlock()
		if undone == 0 {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return fmt.Errorf("publisher: %d batches are not acknowledged: %w", undone, ctx.Err())
		case <-p.failure:
			return p.err
		}
	}
}
