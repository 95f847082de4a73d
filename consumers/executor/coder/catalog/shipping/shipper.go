package shipping

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"penstock/consumers/executor/coder/chunks"
)

// Shipper ships a catalog's changes. Its methods may be called by many goroutines.
type Shipper struct {
	o     Options
	hurry chan struct{} // has a token when somebody waits in Sync
	snaps chan struct{} // has a token when a snapshot may be due

	mu      sync.Mutex
	shipped uint64
	// based tells that the term's log can stand alone: see the package's doc.
	based bool
	// size is how long the last whole snapshot is; since and blobs count the log after
	// it.
	since, size int64
	blobs       int
	// emptied tells that a store was found bare since the log was last surveyed.
	emptied bool
	ended   error         // why Run ended
	told    chan struct{} // closed when any of these change
	stats   Stats
	stores  map[string]*StoreStats
}

// New makes a shipper. It returns ErrOptions.
func New(o Options) (*Shipper, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	s := &Shipper{
		o: o, hurry: make(chan struct{}, 1), snaps: make(chan struct{}, 1), told: make(chan struct{}),
		shipped: o.Catalog.ShippedSeq(), stores: make(map[string]*StoreStats),
	}
	for _, store := range o.Stores {
		s.stores[store.Name()] = &StoreStats{Name: store.Name(), Failed: make(map[string]uint64)}
	}
	return s, nil
}

// flush is how long Run may go on when ctx has ended, to ship what is left.
const flush = 5 * time.Second

// Run ships until ctx ends, then what is left if the stores answer soon, and returns nil.
// It returns ErrReplaced when another instance took over, and failures of the catalog.
// It is called once, after Claim.
func (s *Shipper) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	var snapErr error
	others.Go(func() {
		defer cancel()
		snapErr = s.snapshots(ctx)
	})
	lane := newLane(s)
	err := s.ship(ctx, lane)
	cancel()
	others.Wait()
	if err = errors.Join(err, snapErr); err == nil {
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), flush)
		err = s.drain(last, lane)
		stop()
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			s.o.Logger.Warn().Uint64("changes", s.o.Catalog.Seq()-s.at()).Msg("changes of the catalog wait for the next start to be shipped")
			err = nil
		}
	}
	lane.wait()
	s.change(func() { s.ended = errors.Join(ErrStopped, err) })
	return err
}

// at is up to where all is shipped.
func (s *Shipper) at() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shipped
}

// change changes the state and tells those who wait for it.
func (s *Shipper) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.told)
	s.told = make(chan struct{})
}

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// until waits for a state that f accepts. It returns ctx's error, and why Run ended.
func (s *Shipper) until(ctx context.Context, f func() bool) error {
	for {
		s.mu.Lock()
		done, ended, told := f(), s.ended, s.told
		s.mu.Unlock()
		switch {
		case done:
			return nil
		case ended != nil:
			return ended
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-told:
		}
	}
}

// Sync ships what has been committed so far and returns nil when it is safe: a rebuild finds
// it. It returns ErrStopped when Run ended before, ErrReplaced with it if that is why,
// and ctx's error.
func (s *Shipper) Sync(ctx context.Context) error {
	target := s.o.Catalog.Seq()
	token(s.hurry)
	return s.until(ctx, func() bool { return s.shipped >= target && s.based })
}

// Await is Sync without hurry, up to a change: it waits for the batch that is shipped in
// any case. What may be done only once a rebuild can't undo a change waits here: to delete
// the blobs of a version that was replaced.
func (s *Shipper) Await(ctx context.Context, target uint64) error {
	return s.until(ctx, func() bool { return s.shipped >= target && s.based })
}

// ship is the loop that ships batches.
func (s *Shipper) ship(ctx context.Context, lane *lane) error {
	check := s.o.Clock.NewTicker(s.o.Check)
	defer check.Stop()
	due := s.o.Clock.NewTimer(s.o.Interval)
	defer due.Stop()
	armed := false
	for ctx.Err() == nil {
		news := s.o.Catalog.News()
		switch pending := s.o.Catalog.Seq() - s.at(); {
		case pending == 0:
			armed = false
		case pending >= s.o.Changes:
			token(s.hurry)
		case !armed:
			due.Reset(s.o.Interval)
			armed = true
		}
		var late <-chan time.Time
		if armed {
			late = due.C()
		}
		var err error
		select {
		case <-ctx.Done():
		case <-news:
		case <-check.C():
			err = s.check(ctx)
		case <-late:
			armed, err = false, s.drain(ctx, lane)
		case <-s.hurry:
			armed, err = false, s.drain(ctx, lane)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// drain ships batches until all that was committed when it began is shipped.
func (s *Shipper) drain(ctx context.Context, lane *lane) error {
	for target, at := s.o.Catalog.Seq(), s.at(); at < target; at = s.at() {
		batch, err := s.o.Catalog.ReadLog(at, s.o.Batch)
		if err != nil {
			return fmt.Errorf("ship: %w", err)
		}
		id := s.o.Catalog.Identity()
		b := blob{kind: kindLog, id: id, numbers: [3]uint64{batch.First, batch.Last}, body: batch.Changes}
		n := name{kind: kindLog, term: id.Term, first: batch.First, last: batch.Last}
		if err := lane.put(ctx, n.key(id.Coder), b.seal()); err != nil {
			return err
		}
		s.o.Catalog.Shipped(batch.Last)
		s.change(func() {
			s.shipped = batch.Last
			s.since += int64(len(batch.Changes))
			s.blobs++
			s.stats.Batches++
			s.stats.Changes += batch.Last - at
			s.stats.Bytes += uint64(len(batch.Changes))
		})
		token(s.snaps)
	}
	return nil
}

// failed counts a request that a store failed.
func (s *Shipper) failed(store chunks.Store, what string, err error) {
	s.o.Logger.Warn().Err(err).Str("store", store.Name()).Str("what", what).Msg("store failed a request for the catalog's log")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stores[store.Name()].Failed[what]++
}
