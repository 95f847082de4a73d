package coder

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
)

// doubts are the blobs of a store of which it isn't known whether they may yet come: the
// store is asked over a network, and the request to write one was broken off or got no
// answer. Who deletes one of them deletes it once more when it can't come any more. What a
// process that died was writing is not known to the next one, which doubts all that it
// deletes at first.
type doubts struct {
	late time.Duration // that a blob may come after the end of its Put; 0: none does
	news chan struct{} // there is something to delete once more

	mu    sync.Mutex
	all   time.Time            // until then everything is in doubt
	ended map[string]time.Time // when the last Put of a key has ended
	prune int                  // how many there may be before those that are over are dropped
}

// maxDoubts is of how many blobs of a store it is remembered that they are in doubt. When
// there are more all are: their memory is bounded, and some deletions are repeated in vain.
const maxDoubts = 50_000

func newDoubts(late time.Duration) doubts {
	return doubts{late: late, news: make(chan struct{}, 1), ended: make(map[string]time.Time)}
}

// add says that a Put has ended now.
func (d *doubts) add(now time.Time, key string) {
	if d.late == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended[key] = now
	if len(d.ended) <= d.prune {
		return
	}
	for key, at := range d.ended {
		if now.Sub(at) > d.late {
			delete(d.ended, key)
		}
	}
	if len(d.ended) > maxDoubts {
		d.cover(now)
		clear(d.ended)
	}
	d.prune = max(1024, 2*len(d.ended))
}

// cover puts everything in doubt that was written until now.
func (d *doubts) cover(now time.Time) {
	if until := now.Add(d.late); until.After(d.all) {
		d.all = until
	}
}

// took takes out the keys that were deleted while in doubt, and tells which.
func (d *doubts) took(now time.Time, places []object.Place) (sure, doubtful []object.Place) {
	if d.late == 0 {
		return places, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range places {
		at, some := d.ended[p.Key]
		delete(d.ended, p.Key)
		if some && now.Sub(at) <= d.late || !now.After(d.all) {
			doubtful = append(doubtful, p)
		} else {
			sure = append(sure, p)
		}
	}
	return sure, doubtful
}

// restarted puts in doubt what a process before may have been writing, if there was one.
func (c *Coder) restarted() {
	if c.catalog.Seq() == 0 {
		return
	}
	now := c.o.Clock.Now()
	for _, s := range c.stores {
		s.doubts.mu.Lock()
		s.doubts.cover(now)
		s.doubts.mu.Unlock()
	}
}

// putInto puts a blob, and notes if it is in doubt after that.
func (c *Coder) putInto(ctx context.Context, s *store, key string, r io.Reader, size int64) error {
	var doubt atomic.Bool
	if s.doubts.late > 0 {
		ctx = chunks.WithDoubt(ctx, func() { doubt.Store(true) })
	}
	err := s.Put(ctx, key, r, size)
	if doubt.Load() || err != nil && !errors.Is(err, chunks.ErrKey) && !errors.Is(err, chunks.ErrSize) {
		s.doubts.add(c.o.Clock.Now(), key)
	}
	return err
}

// deleted takes blobs out of the queue that were deleted. Those in doubt are to be deleted
// once more: the journal has that, over a crash.
func (c *Coder) deleted(ctx context.Context, s *store, gone []object.Place) error {
	now := c.o.Clock.Now()
	sure, doubtful := s.doubts.took(now, gone)
	if len(doubtful) > 0 {
		if err := c.catalog.Again(ctx, now.Add(s.doubts.late), doubtful...); err != nil {
			for _, p := range doubtful { // still queued
				s.doubts.add(now, p.Key)
			}
			return err
		}
		select {
		case s.doubts.news <- struct{}{}:
		default: // it will look anyway
		}
	}
	if len(sure) == 0 {
		return nil
	}
	return c.catalog.Deleted(ctx, sure...)
}

// repeats deletes once more what may have come since it was deleted, until ctx ends.
func (c *Coder) repeats(ctx context.Context, s *store) {
	for {
		next, err := c.repeatSome(ctx, s)
		news, wait := s.doubts.news, max(c.o.Retry, s.doubts.late)
		switch {
		case err != nil:
			news, wait = nil, c.o.Retry
		case !next.IsZero():
			// What comes from now on is due later than that.
			news, wait = nil, max(next.Sub(c.o.Clock.Now()), repeatEvery)
		}
		if !c.pause(ctx, news, wait) {
			return
		}
	}
}

// repeatEvery is how often second deletions are looked for at most, so that many that are due
// soon after each other are made together.
const repeatEvery = time.Second

// repeatSome deletes once more what is due, and tells when the next one is; zero: there is
// none. Its failures are counted.
func (c *Coder) repeatSome(ctx context.Context, s *store) (next time.Time, err error) {
	if c.catalog.Stats().Repeats == 0 {
		return next, nil
	}
	now := c.o.Clock.Now()
	for after := ""; ; {
		list, more, first, err := c.catalog.Repeats(s.Name(), after, now, page)
		if err != nil {
			c.retried("journal", "", err)
			return next, err
		}
		if next.IsZero() || !first.IsZero() && first.Before(next) {
			next = first
		}
		places := make([]object.Place, len(list))
		for i, r := range list {
			places[i] = r.Place
		}
		gone := c.deleteBlobs(ctx, s, places)
		if len(gone) > 0 {
			if err := c.catalog.Repeated(context.WithoutCancel(ctx), gone...); err != nil {
				c.retried("deleted", "", err)
				return next, err
			}
			c.count(EventDeleted, "again", int64(len(gone)))
		}
		if len(gone) < len(list) {
			return next, errDelete
		}
		if after = more; after == "" {
			return next, nil
		}
	}
}

// dropRepeats gives up the second deletions from a store that isn't configured any more.
func (c *Coder) dropRepeats(ctx context.Context, store string) error {
	const far = 1 << 40 // s: all are due by then
	for after := ""; ; {
		list, next, _, err := c.catalog.Repeats(store, after, time.Unix(far, 0), page)
		if err != nil {
			return err
		}
		places := make([]object.Place, len(list))
		for i, r := range list {
			places[i] = r.Place
		}
		if err := c.catalog.Repeated(ctx, places...); err != nil || next == "" {
			return err
		}
		after = next
	}
}
