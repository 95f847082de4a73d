package shipping

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
)

// lane puts one blob after another into the stores. A store that is still at an earlier
// blob is passed over, so that one slow store holds neither the others nor memory up.
type lane struct {
	s    *Shipper
	mu   sync.Mutex
	busy []bool
	puts sync.WaitGroup
}

func newLane(s *Shipper) *lane { return &lane{s: s, busy: make([]bool, len(s.o.Stores))} }

// landed is what became of a blob in a store.
type landed struct {
	store int
	err   error
	by    catalog.Identity // who has taken over, if somebody has
}

// put returns nil when Need stores have the blob and are ours; the others may go on. It
// tries again until ctx ends, and returns ErrReplaced.
func (l *lane) put(ctx context.Context, key string, raw []byte) error {
	o := &l.s.o
	have := make([]bool, len(o.Stores))
	for count := 0; ; {
		answers := make(chan landed, len(o.Stores))
		started := 0
		for i, store := range o.Stores {
			if have[i] {
				continue
			}
			if !l.take(i) {
				l.s.passed(store)
				continue
			}
			started++
			l.puts.Go(func() { answers <- l.one(ctx, i, key, raw) })
		}
		for ; started > 0 && count < o.Need; started-- {
			a := <-answers
			store := o.Stores[a.store]
			switch {
			case a.by != (catalog.Identity{}):
				return l.s.replaced(store, a.by)
			case a.err == nil:
				have[a.store] = true
				count++
			}
		}
		if count >= o.Need {
			return nil
		}
		if err := o.Clock.Sleep(ctx, o.Interval); err != nil {
			return fmt.Errorf("ship %s: %d of %d stores: %w", key, count, o.Need, err)
		}
	}
}

// take makes a store busy, unless it is.
func (l *lane) take(i int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.busy[i]
	l.busy[i] = true
	return !was
}

// one puts the blob into one store and looks whose the store is after that.
func (l *lane) one(ctx context.Context, i int, key string, raw []byte) landed {
	o := &l.s.o
	a, store, ours := landed{store: i}, o.Stores[i], o.Catalog.Identity()
	bare := false
	a.err = patient(ctx, o.Patience, func(ctx context.Context) error {
		if err := store.Put(ctx, key, bytes.NewReader(raw), int64(len(raw))); err != nil {
			return err
		}
		marker, err := owner(ctx, store, ours.Coder)
		switch {
		case err != nil:
		case supersedes(marker, ours):
			a.by = marker
		case marker == (catalog.Identity{}):
			bare = true
		default:
			o.marked(store)
		}
		return err
	})
	if bare {
		a.err = l.s.bare(ctx, store)
	}
	l.mu.Lock()
	l.busy[i] = false
	l.mu.Unlock()
	if a.err != nil && ctx.Err() == nil {
		l.s.failed(store, "put", a.err)
	}
	return a
}

// wait returns when no store is busy any more.
func (l *lane) wait() { l.puts.Wait() }

// passed counts a blob that a store didn't get because it was busy.
func (s *Shipper) passed(store chunks.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stores[store.Name()].Passed++
}
