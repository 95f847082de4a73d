package publisher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"penstock/schemas/event"
)

// groupMax bounds the encoded bytes of a group, which are held in memory.
const groupMax = 64 << 20

// group is what was cut since the last Commit, and what that one said. Its lock
// is taken with slots' locks held, never the other way round.
type group struct {
	mu      sync.Mutex
	cut     int // batches of the group; some may not be encoded yet
	batches []*entry
	bytes   int64
	changed chan struct{} // closed when a batch is encoded

	// Of the last Commit, for heartbeats.
	horizon int64
	upto    []uint64
}

func newGroup(partitions int) *group {
	return &group{changed: make(chan struct{}), horizon: earliest, upto: make([]uint64, partitions)}
}

func (g *group) cutOne() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut++
}

// add takes an encoded batch.
func (g *group) add(e *entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.batches = append(g.batches, e)
	g.bytes += int64(e.size)
	close(g.changed)
	g.changed = make(chan struct{})
}

// whole is the group's batches if all are encoded, else what to wait for.
func (g *group) whole() (batches []*entry, wait <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.batches) < g.cut {
		return nil, g.changed
	}
	return slices.Clone(g.batches), nil
}

// committed opens the next group.
func (g *group) committed(horizon int64, upto []uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut, g.batches, g.bytes = 0, g.batches[:0], 0
	g.horizon, g.upto = horizon, upto
}

// groupTakes reports whether the group may become larger.
func (p *Publisher) groupTakes() error {
	select {
	case <-p.failure:
		return p.err
	default:
	}
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	if p.group.bytes >= groupMax {
		return fmt.Errorf("publisher: %d bytes: %w", p.group.bytes, ErrGroup)
	}
	return nil
}

// Position is the position of the last group that is there as a whole: where
// reading goes on. Nil if there has been none. It must not be changed.
func (p *Publisher) Position() []byte {
	if p.group == nil {
		return nil
	}
	return p.spool.lastCommit().position
}

// Commit makes the rows since the last Commit, the malformed lines and the
// position behind them one group: it is in the spool as a whole or not at all,
// on disk (unless NoSync) before its batches are first sent. A start after a
// crash sends the batches of whole groups under their old run and sequences, and
// Position is that of the last one; rows of a torn group were never sent, and are
// read again.
//
// It waits while the spool is full. After the context's error, or one of the
// disk, everything stays as it is, and Commit can be called again, with a later
// position after more rows too. Commit and Send must come from one goroutine. A
// group of nothing and an unchanged position writes nothing; heartbeats say the
// new horizon.
func (p *Publisher) Commit(ctx context.Context, position []byte) error {
	if p.group == nil {
		return fmt.Errorf("publisher: commit without positions: %w", ErrNotReplay)
	}
	select {
	case <-p.failure:
		return p.err
	default:
	}
	horizon, upto, err := p.cutGroup()
	if err != nil {
		return err
	}
	p.o.at("cut")
	batches, err := p.awaitGroup(ctx)
	if err != nil {
		return err
	}
	last := p.spool.lastCommit()
	if len(batches) > 0 || last.number == 0 || !bytes.Equal(position, last.position) {
		if err := p.writeGroup(ctx, batches, position); err != nil {
			return err
		}
		p.count.commits.Add(1)
		p.count.groups.Inc()
	}
	p.group.committed(horizon, upto)
	for _, e := range batches {
		if len(e.header.Dropped) == 0 {
			e.header = nil // many may wait while the bus is away
		}
		p.out.push(e)
	}
	p.o.at("sent")
	return nil
}

// cutGroup cuts all partitions at one point of the input.
func (p *Publisher) cutGroup() (horizon int64, upto []uint64, err error) {
	p.lockAll()
	defer p.unlockAll()
	if p.ended.Load() {
		return 0, nil, ErrClosed
	}
	for i := range p.slots {
		p.cut(i, &p.slots[i])
	}
	return p.horizon.Load(), p.sequences(), nil
}

// awaitGroup waits until all that is cut is encoded.
func (p *Publisher) awaitGroup(ctx context.Context) ([]*entry, error) {
	for {
		batches, wait := p.group.whole()
		if wait == nil {
			return batches, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.failure:
			return nil, p.err
		}
	}
}

// writeGroup puts a group into the spool as soon as there is room.
func (p *Publisher) writeGroup(ctx context.Context, batches []*entry, position []byte) error {
	for {
		p.out.mu.Lock()
		room := p.out.room
		p.out.mu.Unlock()
		err := p.spool.commit(batches, position)
		switch {
		case errors.Is(err, ErrSync):
			// A second try could succeed without having written anything.
			p.fail(err)
			return p.err
		case !errors.Is(err, errFull):
			return err
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

// allCommitted reports whether no row and no malformed line waits for Commit. The
// slots' locks are held.
func (p *Publisher) allCommitted() bool {
	for i := range p.slots {
		if b := p.slots[i].open; b != nil && b.Len() > 0 {
			return false
		}
	}
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	return p.group.cut == 0 && p.malformed.Load() == 0
}

// beatCommitted sends a heartbeat that says what the last Commit said, unless the
// last one has no answer yet; it reports whether it did.
func (p *Publisher) beatCommitted() bool {
	if p.ended.Load() || !p.beating.CompareAndSwap(false, true) {
		return false
	}
	p.group.mu.Lock()
	m := &event.Mark{
		Kind: event.Heartbeat, Run: p.o.Run, Upto: p.group.upto,
		Watermark: p.tide(p.o.Clock.Now(), p.group.horizon),
	}
	p.group.mu.Unlock()
	p.out.add(p.heartbeat(m))
	return true
}

// settle sees to it, before a run's end is told, that the disk knows what of it
// is acknowledged: should the folder come back from a power cut, nothing of an
// ended run is sent again.
func (p *Publisher) settle(m *event.Mark) {
	if p.group == nil || m.Kind != event.End {
		return
	}
	if err := p.spool.syncRun(m.Run); err != nil {
		p.o.Logger.Warn().Err(err).Str("run", m.Run).Msg("spool cannot be synced; batches may be sent again after a power cut")
	}
}

// forget ends the batches that were not committed, and counts their rows. It
// takes the lock.
func (o *outbox) forget() (rows int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.raw = nil
	for _, e := range slices.Clone(o.undone) {
		if e.seq > 0 && e.place == nil && !e.done {
			rows += e.rows
			o.finish(e, nil)
		}
	}
	return rows
}

// stir wakes all who wait for room. It takes the lock.
func (o *outbox) stir() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.makeRoom()
}

func (c *counters) forgotten(rows int) {
	c.uncommitted.Add(uint64(rows))
	c.rows.WithLabelValues("uncommitted", "").Add(float64(rows))
}
