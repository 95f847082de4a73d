package shipping

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
)

// fewBlobs is how many blobs the log after a snapshot may have whatever their bytes, and
// blobBytes how many bytes of snapshot allow for one more: a quiet coder ships a small
// blob every second, and a rebuild has to ask for each.
const (
	fewBlobs  = 2000
	blobBytes = 16 << 10
	// pruneTime is how long one store may take to delete what is superfluous.
	pruneTime = 10 * time.Minute
)

// snapshots is the loop that takes snapshots when they are due.
func (s *Shipper) snapshots(ctx context.Context) error {
	if from := s.survey(ctx); from > 0 {
		// What a dead process left superfluous.
		s.prune(ctx, name{kind: kindSnapshot, term: s.o.Catalog.Identity().Term, first: from})
	}
	lane := newLane(s)
	defer lane.wait()
	retry := s.o.Clock.NewTicker(s.o.Check)
	defer retry.Stop()
	for ctx.Err() == nil {
		if s.wasEmptied() {
			s.survey(ctx)
		}
		if s.due() {
			switch err := s.snapshot(ctx, lane); {
			case errors.Is(err, ErrReplaced):
				return err
			case err != nil && ctx.Err() == nil:
				return fmt.Errorf("snapshot: %w", err)
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.snaps:
		case <-retry.C():
		}
	}
	return nil
}

// survey finds what the stores have of the catalog's term, so that it is known whether
// its log can stand alone. It gives the snapshot on which it does, 0 for none.
func (s *Shipper) survey(ctx context.Context) (from uint64) {
	id := s.o.Catalog.Identity()
	upTo := s.at() // what is shipped meanwhile may not be listed, and is known to be there
	var stores [][]name
	for _, a := range ask(ctx, s.o.Stores, s.o.Patience, func(ctx context.Context, store chunks.Store) ([]name, error) {
		names, _, err := listing(ctx, store, id.Coder)
		return names, err
	}) {
		if a.err != nil && ctx.Err() == nil {
			s.failed(a.store, "list", a.err)
		}
		stores = append(stores, a.value)
	}
	s.change(func() {
		c := covered(stores, s.o.Need, id.Term, upTo)
		if c.whole {
			from = c.from
		}
		s.based, s.size = c.whole, c.snapshot
		s.since, s.blobs = s.since+c.bytes, s.blobs+c.blobs
	})
	return from
}

// wasEmptied tells whether a store was found bare since it was last asked.
func (s *Shipper) wasEmptied() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.emptied
	s.emptied = false
	return was
}

// due tells whether to take a snapshot.
func (s *Shipper) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.based || s.since >= max(s.o.Snapshot, s.size) || s.blobs >= max(fewBlobs, int(s.size/blobBytes))
}

// snapshot ships the rows, and when they are one state with the changes shipped meanwhile,
// what says so. Then it deletes what nobody needs any more.
func (s *Shipper) snapshot(ctx context.Context, lane *lane) error {
	id := s.o.Catalog.Identity()
	n := name{kind: kindPart, term: id.Term}
	s.mu.Lock()
	since, blobs := s.since, s.blobs
	s.mu.Unlock()
	var sums []byte
	var size int64
	var until uint64
	for spot, end := (catalog.Spot{}), false; !end; n.part++ {
		rows, next, last, seq, err := s.o.Catalog.Scan(spot, s.o.Batch)
		if err != nil {
			return err
		}
		if n.part == 0 {
			n.first = seq
		}
		raw := blob{kind: kindPart, id: id, numbers: [3]uint64{n.first, n.part}, body: rows}.seal()
		if err := lane.put(ctx, n.key(id.Coder), raw); err != nil {
			return err
		}
		sum := sha256.Sum256(raw)
		sums, size = append(sums, sum[:]...), size+int64(len(raw))
		spot, end, until = next, last, seq
	}
	token(s.hurry)
	if err := s.until(ctx, func() bool { return s.shipped >= until }); err != nil {
		return err
	}
	parts := n.part
	n.kind, n.part = kindSnapshot, 0
	raw := blob{kind: kindSnapshot, id: id, numbers: [3]uint64{n.first, until, parts}, body: sums}.seal()
	if err := lane.put(ctx, n.key(id.Coder), raw); err != nil {
		return err
	}
	s.change(func() {
		s.based, s.size = true, size
		s.since, s.blobs = s.since-since, s.blobs-blobs // what came while it was taken
		s.stats.Snapshots++
	})
	s.prune(ctx, n)
	return nil
}

// prune deletes what a snapshot makes superfluous. What fails is counted, and tried again
// after the next snapshot.
func (s *Shipper) prune(ctx context.Context, whole name) {
	coder := s.o.Catalog.Identity().Coder
	for _, a := range ask(ctx, s.o.Stores, pruneTime, func(ctx context.Context, store chunks.Store) (uint64, error) {
		names, _, err := listing(ctx, store, coder)
		var deleted uint64
		for _, n := range names {
			if err == nil && n.superfluous(whole) {
				err = store.Delete(ctx, n.key(coder))
				deleted++
			}
		}
		return deleted, err
	}) {
		s.mu.Lock()
		s.stats.Pruned += a.value
		s.mu.Unlock()
		if a.err != nil && ctx.Err() == nil {
			s.failed(a.store, "prune", a.err)
		}
	}
}

// superfluous tells whether a blob is of no use beside a whole snapshot.
func (n name) superfluous(whole name) bool {
	switch {
	case n.term != whole.term:
		return n.term < whole.term
	case n.kind == kindLog:
		return n.last <= whole.first
	}
	return n.first < whole.first
}
