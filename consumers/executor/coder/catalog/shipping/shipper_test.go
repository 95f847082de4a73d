package shipping_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/shipping"
)

// TestWithinASecond ships what nobody waits for when a second has passed, and at once when
// there is enough.
func TestWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		_, list := stores(1)
		s, stop := ship(t, shipping.Options{Catalog: c, Stores: list, Changes: 100})
		synctest.Wait()
		put(t, c, 0, 3)
		time.Sleep(time.Second - time.Millisecond)
		synctest.Wait()
		if got := s.Stats(); got.Pending != 7 || got.Shipped != 0 {
			t.Errorf("before a second has passed: %+v", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := s.Stats(); got.Pending != 0 || got.Shipped != 7 || got.Batches != 1 {
			t.Errorf("after a second: %+v", got)
		}
		put(t, c, 3, 50)
		synctest.Wait()
		if got := s.Stats(); got.Shipped < 100 {
			t.Errorf("after 100 changes at once: %+v", got)
		}
		// Await hurries nobody, Sync does.
		put(t, c, 53, 1)
		begun := time.Now()
		must(t, s.Await(t.Context(), c.Seq()))
		if waited := time.Since(begun); waited == 0 || waited > time.Second {
			t.Errorf("Await took %v", waited)
		}
		put(t, c, 54, 1)
		begun = time.Now()
		must(t, s.Sync(t.Context()))
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("Sync took %v", waited)
		}
		put(t, c, 55, 1)
		must(t, stop())
		if got := s.Stats(); got.Pending != 0 {
			t.Errorf("after the end: %+v", got)
		}
	})
}

// TestSyncWaitsForTheStores has one store too few, and then enough.
func TestSyncWaitsForTheStores(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := fresh(t)
		flakies, list := stores(3)
		s, stop := ship(t, shipping.Options{Catalog: c, Stores: list, Need: 2})
		flakies[0].set(away)
		flakies[1].set(away)
		put(t, c, 0, 1)
		synced := make(chan error, 1)
		go func() { synced <- s.Sync(t.Context()) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case err := <-synced:
			t.Fatalf("Sync returned %v with one store of two", err)
		default:
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wants(t, s.Sync(ctx), context.DeadlineExceeded)
		flakies[1].set(nil)
		must(t, <-synced)
		if got := s.Stats().Stores[1].Failed["put"]; got == 0 {
			t.Error("failed puts weren't counted")
		}
		must(t, stop())
		wants(t, s.Sync(t.Context()), nil) // all is shipped
		put(t, c, 1, 1)
		wants(t, s.Sync(t.Context()), shipping.ErrStopped)
	})
}

// TestSlowStoreHoldsNobodyUp blocks one store's puts: the others go on, what it doesn't get
// is counted, and one blob waits for it, not all.
func TestSlowStoreHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	flakies, list := stores(2)
	s, stop := ship(t, quick(c, 1, list))
	must(t, s.Sync(t.Context()))
	release := make(chan struct{})
	flakies[1].set(func(op, _ string) error {
		if op == "put" {
			<-release
		}
		return nil
	})
	for i := range 20 {
		put(t, c, i, 1)
		must(t, s.Sync(t.Context()))
	}
	if got := s.Stats().Stores[1].Passed; got < 18 {
		t.Errorf("%d blobs were passed over, want all but the first", got)
	}
	close(release)
	must(t, stop())
}

// TestSnapshotsBoundTheLog ships many changes of few keys.
func TestSnapshotsBoundTheLog(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	flakies, list := stores(1)
	o := quick(c, 1, list)
	o.Snapshot, o.Batch = 20_000, 2000
	s, stop := ship(t, o)
	for i := range 200 {
		put(t, c, i, 1)
		_, err := c.Delete(t.Context(), "b", "key-"+"000000"[:6], nil)
		must(t, err)
		if i%4 == 0 {
			must(t, s.Sync(t.Context()))
		}
	}
	must(t, s.Sync(t.Context()))
	must(t, stop())
	stats := s.Stats()
	if stats.Snapshots < 2 || stats.Pruned == 0 {
		t.Errorf("snapshots: %+v", stats)
	}
	var bytes int
	for _, key := range flakies[0].keys(t) {
		bytes += len(flakies[0].read(t, key))
	}
	if uint64(bytes) > 3*stats.Bytes/2 {
		t.Errorf("%d bytes in the store after %d bytes of changes", bytes, stats.Bytes)
	}
	again, report := rebuilt(t, 1, list)
	must(t, catalog.Compare(c, again))
	if report.From == 0 || report.Changes >= c.Seq() {
		t.Errorf("report %+v", report)
	}
}

// TestOwnership: of two instances one has the stores; a rebuild takes them over, and who had
// them finds that out with the next batch, before it calls it shipped.
func TestOwnership(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	_, list := stores(3)
	o := quick(c, 2, list)
	o.Check = time.Hour
	s, stop := ship(t, o)
	put(t, c, 0, 3)
	must(t, s.Sync(t.Context()))

	other := fresh(t)
	second, err := shipping.New(quick(other, 2, list))
	must(t, err)
	wants(t, second.Claim(t.Context()), shipping.ErrOwned)

	third, _ := rebuilt(t, 2, list)
	heir, err := shipping.New(quick(third, 2, list))
	must(t, err)
	must(t, heir.Claim(t.Context()))
	put(t, c, 3, 1)
	wants(t, s.Sync(t.Context()), shipping.ErrReplaced)
	wants(t, stop(), shipping.ErrReplaced)
	if got := s.Stats(); got.Pending == 0 {
		t.Errorf("changes of a replaced instance count as shipped: %+v", got)
	}
	again, err := shipping.New(quick(c, 2, list))
	must(t, err)
	wants(t, again.Claim(t.Context()), shipping.ErrOwned)

	end := running(t, heir)
	put(t, third, 4, 1)
	must(t, heir.Sync(t.Context()))
	must(t, end())
	fourth, _ := rebuilt(t, 2, list)
	must(t, catalog.Compare(third, fourth))
}

// TestReplacedWhenIdle finds another's marker without shipping anything.
func TestReplacedWhenIdle(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	_, list := stores(1)
	s, stop := ship(t, quick(c, 1, list))
	must(t, s.Sync(t.Context()))
	rebuilt(t, 1, list)
	put(t, c, 0, 1) // for Sync to wait for
	wants(t, s.Sync(t.Context()), shipping.ErrReplaced)
	wants(t, stop(), shipping.ErrReplaced)
}

// TestClaim refuses stores that don't answer or have a log without a marker, and fills in
// markers that are missing or of a term before.
func TestClaim(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	flakies, list := stores(3)
	s, err := shipping.New(quick(c, 2, list))
	must(t, err)
	flakies[0].set(away)
	flakies[1].set(away)
	wants(t, s.Claim(t.Context()), shipping.ErrStores)
	flakies[1].set(nil)
	must(t, s.Claim(t.Context()))
	flakies[0].set(nil)
	must(t, s.Claim(t.Context()))
	for _, f := range flakies {
		if len(f.read(t, "objects/owner")) == 0 {
			t.Errorf("%s has no marker", f.Name())
		}
	}
	marker := flakies[0].read(t, "objects/owner")
	marker[len(marker)-1]++
	flakies[0].write(t, "objects/owner", marker)
	flakies[1].write(t, "objects/owner", marker)
	wants(t, s.Claim(t.Context()), shipping.ErrTorn)

	logs, list := stores(1)
	logs[0].write(t, "objects/log/x", []byte("x"))
	s, err = shipping.New(quick(c, 1, list))
	must(t, err)
	wants(t, s.Claim(t.Context()), shipping.ErrOwned)
}

// TestRestart ships what was committed while nobody shipped, and takes no snapshot for it.
func TestRestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog")
	_, list := stores(1)
	for i := range 3 {
		c, err := catalog.Open(path, catalog.Options{Coder: "objects", NoSync: true})
		must(t, err)
		put(t, c, 10*i, 5)
		s, stop := ship(t, quick(c, 1, list))
		must(t, s.Sync(t.Context()))
		must(t, stop())
		if got := s.Stats().Snapshots; got != 0 {
			t.Errorf("start %d took %d snapshots", i, got)
		}
		put(t, c, 10*i+5, 5)
		must(t, c.Close())
	}
	c := open(t, path)
	s, stop := ship(t, quick(c, 1, list))
	must(t, s.Sync(t.Context()))
	must(t, stop())
	again, _ := rebuilt(t, 1, list)
	must(t, catalog.Compare(c, again))
}

// TestPutBack puts an older file in the place of a catalog's: it would give the numbers of
// changes that were shipped to others.
func TestPutBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog")
	_, list := stores(1)
	o := catalog.Options{Coder: "objects", NoSync: true}
	c, err := catalog.Open(path, o)
	must(t, err)
	put(t, c, 0, 5)
	must(t, c.Close())
	old, err := os.ReadFile(path)
	must(t, err)
	c, err = catalog.Open(path, o)
	must(t, err)
	s, stop := ship(t, quick(c, 1, list))
	put(t, c, 5, 5)
	must(t, s.Sync(t.Context()))
	must(t, stop())
	must(t, c.Close())
	must(t, os.WriteFile(path, old, 0o600))
	s, err = shipping.New(quick(open(t, path), 1, list))
	must(t, err)
	wants(t, s.Claim(t.Context()), shipping.ErrBehind)
	again, _ := rebuilt(t, 1, list)
	if got := again.Stats().Objects; got != 10 {
		t.Errorf("%d objects, want 10", got)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	_, list := stores(2)
	for _, o := range []shipping.Options{
		{Stores: list},
		{Catalog: c},
		{Catalog: c, Stores: list, Need: 3},
		{Catalog: c, Stores: list, Need: -1},
		{Catalog: c, Stores: list, Interval: -1},
	} {
		_, err := shipping.New(o)
		wants(t, err, shipping.ErrOptions)
	}
}
