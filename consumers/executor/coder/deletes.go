package coder

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// deletes takes from one store what the journal says is to go, until ctx ends.
func (c *Coder) deletes(ctx context.Context, s *store) {
	for {
		more, err := true, error(nil)
		for more && err == nil && ctx.Err() == nil {
			more, err = c.deleteSome(ctx, s)
		}
		if err != nil && !c.pause(ctx, nil, min(c.o.Retry, deleteRetry)) {
			return
		}
		if !c.pause(ctx, c.duties.wake[1+s.index], c.o.Retry) {
			return
		}
	}
}

// deleteRetry is the longest that deletions rest after one that failed, though woken.
const deleteRetry = time.Second

// deleteSome deletes what may be deleted now; it tells whether there is more to do at
// once. An error says that the store is in trouble, or the catalog.
func (c *Coder) deleteSome(ctx context.Context, s *store) (more bool, err error) {
	some := false
	for after := ""; ; {
		list, next, err := c.catalog.Deletes(s.Name(), after, page)
		if err != nil {
			c.retried("journal", "", err)
			return false, err
		}
		list = slices.DeleteFunc(list, func(d catalog.Deletion) bool { return c.occupied(d.Version) })
		// Only what let go of them is waited for: their own deletion is a change, too, and
		// pages that waited for those of before would be one a second.
		last := uint64(0)
		for _, d := range list {
			last = max(last, d.Change())
		}
		if err := c.shipper.Await(ctx, last); err != nil {
			return false, err // else a rebuilt catalog might name what is gone
		}
		gone := c.deleteBlobs(ctx, s, placesIn(list))
		if len(gone) > 0 {
			if err := c.deleted(context.WithoutCancel(ctx), s, gone); err != nil {
				c.retried("deleted", "", err)
				return false, err
			}
			c.count(EventDeleted, "queued", int64(len(gone)))
			some = true
		}
		if len(gone) < len(list) {
			return false, errDelete // the rest waits
		}
		if after = next; after == "" {
			return some, nil
		}
	}
}

// errDelete is the failure of a deletion, which was logged.
var errDelete = errors.New("a blob could not be deleted")

// deletesAtOnce is how many deletions a store is asked for at a time.
const deletesAtOnce = 8

// deleteBlobs deletes blobs, and gives the places of those that are gone.
func (c *Coder) deleteBlobs(ctx context.Context, s *store, places []object.Place) (gone []object.Place) {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(deletesAtOnce)
	failed := false
	for _, p := range places {
		mu.Lock()
		stop := failed
		mu.Unlock()
		if stop {
			break
		}
		group.Go(func() error {
			limited, cancel := c.limited(ctx)
			defer cancel()
			err := s.Delete(limited, p.Key)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				gone = append(gone, p)
				return nil
			}
			failed = true
			if ctx.Err() == nil {
				c.retried("delete", p.Key, err)
			}
			return nil
		})
	}
	_ = group.Wait()
	return gone
}
