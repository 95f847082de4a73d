package coder

import (
	"context"
	"errors"
	"io"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/shipping"
	"penstock/consumers/executor/coder/chunks"
)

// duties are what is known of the work that goes on behind requests.
type duties struct {
	wake    []chan struct{}    // of mends, and of the deletions from each store
	claimed map[string]bool    // versions that somebody mends
	busy    map[string]int     // versions whose blobs may still be written
	later   map[string]failure // versions whose mending failed
}

// failure is when mending may be tried again, and how often it has failed.
type failure struct {
	at    time.Time
	times int
}

// kick wakes the background: something is left to do.
func (c *Coder) kick() {
	for _, wake := range c.duties.wake {
		select {
		case wake <- struct{}{}:
		default: // it will look anyway
		}
	}
}

// claim takes the mending of a version; false if somebody has it.
func (c *Coder) claim(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.duties.claimed[id] {
		return false
	}
	c.duties.claimed[id] = true
	return true
}

func (c *Coder) unclaim(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.duties.claimed, id)
}

// occupy keeps the blobs of a version, or of an intent of this name, from being deleted
// while a task may still write them.
func (c *Coder) occupy(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.duties.busy[id]++
}

func (c *Coder) vacate(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.duties.busy[id]--; c.duties.busy[id] <= 0 {
		delete(c.duties.busy, id)
	}
}

func (c *Coder) occupied(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.duties.busy[id] > 0
}

// abandon ends an intent whose write failed; its blobs are deleted. Nothing writes them
// any more. The empty one is none.
func (c *Coder) abandon(intent string) {
	if intent == "" {
		return
	}
	err := c.catalog.Abandon(context.WithoutCancel(c.ctx), intent)
	if err != nil && !errors.Is(err, catalog.ErrClosed) {
		c.retried("intent", intent, err) // the next start abandons it
	}
	c.kick()
}

// lack notes blobs that a read has found damaged.
func (c *Coder) lack(id string, blobs []int) {
	c.start(func() {
		err := c.catalog.Lack(c.ctx, id, blobs...)
		if err != nil && !errors.Is(err, catalog.ErrNoVersion) && c.ctx.Err() == nil {
			c.retried("lack", id, err) // the next read of it finds it again
		}
		c.kick()
	})
}

// retried counts background work that failed and is tried again later.
func (c *Coder) retried(what, id string, err error) {
	c.count(EventRetried, what, 1)
	c.log.Debug().Str("what", what).Str("id", id).Err(err).Msg("to be tried again")
}

// mends looks for versions with something left to do until ctx ends.
func (c *Coder) mends(ctx context.Context) {
	slots := make(chan struct{}, max(1, c.o.Background))
	for {
		began := c.o.Clock.Now()
		c.mendAll(ctx, slots)
		// Every write wakes it: where much waits for a store that is dead, looking
		// through it must not be all that is done.
		took := c.o.Clock.Now().Sub(began)
		if !c.pause(ctx, nil, min(lookShare*took, c.o.Retry)) || !c.pause(ctx, c.duties.wake[0], c.o.Retry) {
			break
		}
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
}

// lookShare is for how many times as long as it took to look through the journal the
// background rests before it looks again.
const lookShare = 10

// pause waits for a signal, or so long; false when ctx has ended.
func (c *Coder) pause(ctx context.Context, wake <-chan struct{}, d time.Duration) bool {
	t := c.o.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-t.C():
	}
	return ctx.Err() == nil
}

// page is how many rows of the journal are looked at in one transaction.
const page = 256

func (c *Coder) mendAll(ctx context.Context, slots chan struct{}) {
	seen := 0
	for after := ""; ctx.Err() == nil; {
		list, err := c.catalog.Rests(after, page)
		if err != nil {
			c.retried("journal", "", err)
			return
		}
		for _, r := range list {
			after = r.Version
			if !c.due(r.Version) || !c.claim(r.Version) {
				continue
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				c.unclaim(r.Version)
				return
			}
			c.start(func() {
				defer func() { <-slots }()
				c.mendOne(ctx, r.Version)
			})
		}
		if seen += len(list); len(list) < page {
			c.forget(seen)
			return
		}
	}
}

// forget drops what is known of failures when most are of versions that are gone.
func (c *Coder) forget(rests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.duties.later) > 2*rests+page {
		clear(c.duties.later)
	}
}

// mendOne mends a version that was claimed.
func (c *Coder) mendOne(ctx context.Context, id string) {
	left, err := c.mend(ctx, id, "found")
	c.unclaim(id)
	c.kick() // its old blobs may go now
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.duties.later[id]
	delete(c.duties.later, id)
	if (left || err != nil) && ctx.Err() == nil {
		f.at = c.o.Clock.Now().Add(min(c.o.Retry<<min(f.times, 16), maxRetry))
		f.times++
		c.duties.later[id] = f
		c.count(EventRetried, "mend", 1)
		if err != nil {
			c.log.Debug().Str("version", id).Err(err).Msg("could not be mended yet")
		}
	}
}

// due tells whether a version's mending may be tried.
func (c *Coder) due(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, failed := c.duties.later[id]
	return !failed || !c.o.Clock.Now().Before(f.at)
}

// maxRetry is the longest pause between two attempts to mend a version; a store that
// comes back ends it.
const maxRetry = 5 * time.Minute

// probes looks at a store when it is in trouble and nothing was heard of it, so that it is
// found when it has come back, and if it is slow asked again sooner.
func (c *Coder) probes(ctx context.Context, s *store) {
	for c.pause(ctx, s.suspect, probing) {
		if s.suspected.Swap(false) || s.doubtful(c.o.Clock.Now(), probing) {
			c.probe(ctx, s)
		}
	}
}

func (c *Coder) probe(ctx context.Context, s *store) {
	limited, cancel := c.limited(ctx)
	defer cancel()
	began := c.o.Clock.Now()
	was := s.isDead()
	_, err := s.Get(limited, s.marker, 0, 1, io.Discard)
	if err == nil && !s.isMarked() || errors.Is(err, chunks.ErrNotFound) {
		if err = c.shipper.Look(limited, s); errors.Is(err, shipping.ErrBare) {
			return // which is noted
		}
	}
	switch now := c.o.Clock.Now(); {
	case err == nil:
		s.probed(now, now.Sub(began))
		if was {
			c.states.Add(1)
			c.forgive()
		}
	case ctx.Err() == nil:
		c.note(limited, s, began, 0, err)
	}
}

// forgive lets all that failed be tried at once: a store has come back.
func (c *Coder) forgive() {
	c.mu.Lock()
	clear(c.duties.later)
	c.mu.Unlock()
	c.kick()
}
