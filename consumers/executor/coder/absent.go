package coder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
)

// markState is what is known of the owner marker of a store. A store that has it is the one
// that was written to; a folder under a disk that isn't mounted, or a bucket that was made
// anew, is not, and would take all that is written to it, and lose it when the disk is back.
type markState uint8

const (
	markUnknown markState = iota // nobody has seen it yet
	markOurs                     // it is there, and ours
	markGone                     // it is not, though the catalog says that blobs are there
)

var (
	errUnmarked = errors.New("the store has not answered since the start")
	errAbsent   = errors.New("the store has no owner marker, though chunks are in it")
)

// admits tells whether a blob may be asked of the store: before its marker was seen, the
// marker only.
func (s *store) admits(key string) error {
	if key == s.marker {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.mark {
	case markOurs:
		return nil
	case markGone:
		return errAbsent
	}
	return errUnmarked
}

func (s *store) isMarked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mark == markOurs
}

// Put implements chunks.Store, as the other methods do: of a store that has its marker.
func (s *store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := s.admits(key); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, r, size)
}

// Get implements chunks.Store.
func (s *store) Get(ctx context.Context, key string, off, n int64, w io.Writer) (int64, error) {
	if err := s.admits(key); err != nil {
		return 0, err
	}
	return s.Store.Get(ctx, key, off, n, w)
}

// Delete implements chunks.Store.
func (s *store) Delete(ctx context.Context, key string) error {
	if err := s.admits(key); err != nil {
		return err
	}
	return s.Store.Delete(ctx, key)
}

// List implements chunks.Store.
func (s *store) List(ctx context.Context, prefix, after string, limit int) ([]chunks.Entry, error) {
	if !s.isMarked() && !strings.HasPrefix(prefix, s.log) {
		return nil, s.admits("")
	}
	return s.Store.List(ctx, prefix, after, limit)
}

// suspectNow has the store looked at soon.
func (s *store) suspectNow() {
	s.suspected.Store(true)
	select {
	case s.suspect <- struct{}{}:
	default:
	}
}

// seen is the shipper's Marked: the store has our marker.
func (c *Coder) seen(of chunks.Store) {
	s := c.named[of.Name()]
	now := c.o.Clock.Now()
	s.mu.Lock()
	was, since := s.mark, s.gone
	s.mark, s.marked = markOurs, now
	if was != markOurs {
		s.failures, s.dead, s.seen, s.gone = 0, false, now, time.Time{}
	}
	s.mu.Unlock()
	if was == markOurs {
		return
	}
	c.states.Add(1)
	c.forgive()
	if was == markGone {
		c.log.Warn().Str("store", s.Name()).Msg("store has its owner marker, and is used again")
	}
	if !since.IsZero() {
		c.start(func() { c.lackSince(s, since) })
	}
}

// bare is the shipper's Bare: whether a store without a marker is a new one. It isn't if
// the catalog says that blobs are there.
func (c *Coder) bare(of chunks.Store) bool {
	s := c.named[of.Name()]
	holds, err := c.holds(s.Name())
	if err != nil {
		c.retried("marker", s.Name(), err)
		return false
	}
	if !holds {
		return true
	}
	s.mu.Lock()
	was := s.mark
	if s.mark = markGone; was == markOurs {
		s.gone = s.marked
	}
	s.mu.Unlock()
	if was != markGone {
		c.states.Add(1)
		c.count(EventAbsent, s.Name(), 1)
		c.log.Error().Str("store", s.Name()).Msg("store has no owner marker, though chunks are in it: it is taken for absent, nothing is read from it or written to it. " +
			"Is its disk mounted, its address right? If what it held is lost for good: penstock coder store-is-new " + s.Name())
	}
	return false
}

// holds tells whether the catalog says that blobs are in a store.
func (c *Coder) holds(name string) (bool, error) {
	for after := ""; ; {
		ids, err := c.catalog.Versions(after, page)
		if err != nil {
			return false, err
		}
		for _, id := range ids {
			after = id
			v, rest, err := c.catalog.Version(id)
			if errors.Is(err, catalog.ErrNoVersion) {
				continue
			}
			if err != nil {
				return false, err
			}
			if len(blobsIn(v, rest, name)) > 0 {
				return true, nil
			}
		}
		if len(ids) < page {
			return false, nil
		}
	}
}

// blobsIn are the blobs of a version that are in a store, but for those that lack.
func blobsIn(v *object.Version, rest catalog.Rest, name string) (blobs []int) {
	for i, p := range v.Places {
		if p.Store == name && v.Landed(i) && !slices.Contains(rest.Lacking, i) {
			blobs = append(blobs, i)
		}
	}
	return blobs
}

// lackSince marks what was written to a store after it was last seen to be the one that it
// is: it may have gone to another in its place.
func (c *Coder) lackSince(s *store, since time.Time) {
	n, err := c.lackIn(c.ctx, s.Name(), since)
	if err != nil && c.ctx.Err() == nil {
		c.retried("absent", s.Name(), err) // a read or a scrub finds the rest
	}
	if n > 0 {
		c.log.Warn().Str("store", s.Name()).Int64("versions", n).Msg("chunks that were written while the store was not itself are written anew")
		c.kick()
	}
}

// lackIn marks the blobs in a store as lacking, of versions that are not older than a time,
// and tells of how many versions.
func (c *Coder) lackIn(ctx context.Context, name string, since time.Time) (marked int64, err error) {
	for after := ""; ; {
		ids, err := c.catalog.Versions(after, page)
		if err != nil {
			return marked, err
		}
		var group errgroup.Group // side by side, they share a transaction
		for _, id := range ids {
			after = id
			v, rest, err := c.catalog.Version(id)
			if errors.Is(err, catalog.ErrNoVersion) {
				continue
			}
			if err != nil {
				return marked, errors.Join(err, group.Wait())
			}
			blobs := blobsIn(v, rest, name)
			if len(blobs) == 0 || v.Time.Before(since) {
				continue
			}
			marked++
			group.Go(func() error {
				if err := c.catalog.Lack(ctx, id, blobs...); !errors.Is(err, catalog.ErrNoVersion) {
					return err
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil || len(ids) < page {
			return marked, err
		}
	}
}

// TakeIn says that what an absent store held is lost for good: it is taken for a new one,
// and what it is to hold is written into it anew, from the other stores. It tells of how many
// versions. It returns ErrNoStore, ErrNotAbsent, and what the store and the catalog say;
// then it is absent still.
func (c *Coder) TakeIn(ctx context.Context, name string) (versions int64, err error) {
	leave, err := c.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	s := c.named[name]
	if s == nil {
		return 0, fmt.Errorf("%w: %s", ErrNoStore, name)
	}
	limited, cancel := c.limited(ctx)
	defer cancel()
	err = c.shipper.Look(limited, s)
	s.mu.Lock()
	absent := s.mark == markGone
	s.mu.Unlock()
	switch {
	case absent:
	case err != nil:
		return 0, fmt.Errorf("store %s does not answer: %w", name, err)
	default:
		return 0, fmt.Errorf("%w: %s", ErrNotAbsent, name)
	}
	// Before it has a marker: if this process dies between, it is absent still.
	if versions, err = c.lackIn(ctx, name, time.Time{}); err != nil {
		return versions, catalogError(err)
	}
	s.mu.Lock()
	s.gone = time.Time{}
	s.mu.Unlock()
	if err := c.shipper.TakeIn(limited, s); err != nil {
		return versions, fmt.Errorf("store %s: %w", name, err)
	}
	c.log.Warn().Str("store", name).Int64("versions", versions).Msg("store is taken for a new one, as the operator says; what it is to hold is written anew")
	c.kick()
	return versions, nil
}

// absentStore is a store of which nothing is to be asked.
type absentStore struct{ chunks.Store }

func (absentStore) Put(context.Context, string, io.Reader, int64) error { return errAbsent }

func (absentStore) Get(context.Context, string, int64, int64, io.Writer) (int64, error) {
	return 0, errAbsent
}

func (absentStore) List(context.Context, string, string, int) ([]chunks.Entry, error) {
	return nil, errAbsent
}

// rebuildable are the stores as a rebuild of the catalog is to see them. There is no catalog
// yet to say what is in them; but where some have a marker, those that have nothing at all
// are no better than dead: they are not taken over, and say nothing.
func (c *Coder) rebuildable(ctx context.Context) []chunks.Store {
	list := make([]chunks.Store, len(c.stores))
	bare := make([]bool, len(c.stores))
	var group errgroup.Group
	for i, s := range c.stores {
		list[i] = s.Store
		group.Go(func() error {
			limited, cancel := c.limited(ctx)
			defer cancel()
			found, err := s.Store.List(limited, c.o.Name+"/", "", 1)
			bare[i] = err == nil && len(found) == 0
			return nil
		})
	}
	_ = group.Wait()
	if !slices.Contains(bare, false) {
		return list // a first start
	}
	for i, s := range c.stores {
		if bare[i] {
			list[i] = absentStore{s.Store}
			c.log.Warn().Str("store", s.Name()).Msg("store has nothing of this coder, and is left out of the rebuilding of the catalog")
		}
	}
	return list
}
