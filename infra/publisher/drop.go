package publisher

import "penstock/schemas/event"

// dropNow gives a batch up. It takes the lock.
func (o *outbox) dropNow(e *entry, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(e, reason)
}

// drop gives a batch up, counts it by reason and notes what has to be
// announced: its own rows, and what it would have announced itself. Nobody
// waits for a batch, so there is nothing to call afterwards.
func (o *outbox) drop(e *entry, reason string) {
	o.land(e)
	o.unload(e)
	if e.header != nil {
		for _, d := range e.header.Dropped {
			o.announce(e.partition, d)
		}
		e.header = nil
	}
	d := event.Dropped{
		Partition: e.partition, First: e.seq, Last: e.seq, Rows: int64(e.rows), From: e.from, To: e.to,
	}
	if e.old != nil {
		e.old.Dropped = addDrop(e.old.Dropped, d)
	} else {
		o.announce(e.partition, d)
		o.unsaid = append(o.unsaid, d)
	}
	o.count.drop(reason, 1, e.rows)
	o.finish(e, nil)
	wake(o.packWake)
}

func (c *counters) drop(reason string, batches, rows int) {
	c.droppedBatches.Add(uint64(batches))
	c.batches.WithLabelValues("dropped", reason).Add(float64(batches))
	c.rows.WithLabelValues("dropped", reason).Add(float64(rows))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped == nil {
		c.dropped = map[string]uint64{}
	}
	c.dropped[reason] += uint64(rows)
}

// announce notes a drop of a partition, joined with its neighbour. A time range
// of no rows says nothing.
func (o *outbox) announce(partition int, d event.Dropped) {
	o.drops[partition] = join(o.drops[partition], d)
}

func join(ds []event.Dropped, d event.Dropped) []event.Dropped {
	if n := len(ds); n > 0 && ds[n-1].Last+1 == d.First {
		l := &ds[n-1]
		switch {
		case l.Rows == 0:
			l.From, l.To = d.From, d.To
		case d.Rows > 0:
			l.From, l.To = min(l.From, d.From), max(l.To, d.To)
		}
		l.Last, l.Rows = d.Last, l.Rows+d.Rows
		return ds
	}
	return append(ds, d)
}

// takeDrops returns what a batch of the partition has to announce; dropping
// that batch gives it back. It takes the lock.
func (o *outbox) takeDrops(partition int) []event.Dropped {
	o.mu.Lock()
	defer o.mu.Unlock()
	ds := o.drops[partition]
	o.drops[partition] = nil
	return ds
}

// peekDrops returns what a mark has to announce. It stays until told. It takes
// the lock.
func (o *outbox) peekDrops() []event.Dropped {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []event.Dropped
	for p, ds := range o.drops {
		for _, d := range ds {
			if len(all) == mostTold {
				return all // the rest with the next mark
			}
			d.Partition = p
			all = append(all, d)
		}
	}
	return all
}

// mostTold is how many drops one mark announces, so that its headers stay small.
const mostTold = 1000

// told forgets drops that a mark has announced. One that has grown since is
// announced again, which changes nothing for who has heard of it. It takes the
// lock.
func (o *outbox) told(ds []event.Dropped) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range ds {
		kept := o.drops[d.Partition][:0]
		for _, have := range o.drops[d.Partition] {
			if have.First != d.First || have.Last != d.Last {
				kept = append(kept, have)
			}
		}
		o.drops[d.Partition] = kept
	}
}

// unnoted returns the drops that the spool does not know of yet. It takes the
// lock.
func (o *outbox) unnoted() []event.Dropped {
	o.mu.Lock()
	defer o.mu.Unlock()
	ds := o.unsaid
	o.unsaid = nil
	return ds
}
