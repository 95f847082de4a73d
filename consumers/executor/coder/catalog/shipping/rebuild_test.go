package shipping_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/catalogtest"
	"penstock/consumers/executor/coder/catalog/shipping"
)

// TestRebuildGivesTheCatalog makes random changes while batches and snapshots are shipped to
// three stores that fail now and then, takes one store away, and compares what the other
// two give with the original.
func TestRebuildGivesTheCatalog(t *testing.T) {
	t.Parallel()
	var snapshots uint64
	rapid.Check(t, func(rt *rapid.T) {
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		dir, err := os.MkdirTemp("", "rebuild")
		must(t, err)
		defer func() { _ = os.RemoveAll(dir) }()
		path := filepath.Join(dir, "catalog")
		o := catalog.Options{Coder: "objects", NoSync: true}
		c, err := catalog.Open(path, o)
		must(t, err)
		flakies, list := stores(3)
		var mu sync.Mutex
		failures := rand.New(rand.NewPCG(chance.Uint64(), 0))
		for _, f := range flakies {
			f.set(func(op, _ string) error {
				mu.Lock()
				defer mu.Unlock()
				if op == "put" && failures.IntN(6) == 0 {
					return errAway
				}
				return nil
			})
		}
		options := quick(c, 2, list)
		options.Batch, options.Snapshot = 1+chance.IntN(3000), int64(1+chance.IntN(40_000))
		s, err := shipping.New(options)
		must(t, err)
		for s.Claim(t.Context()) != nil { // which a store's failure may refuse
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		d := catalogtest.NewDriver(c, chance.IntN)
		for range rapid.IntRange(40, 150).Draw(rt, "steps") {
			must(rt, d.Step(t.Context()))
			if chance.IntN(30) == 0 {
				must(rt, s.Sync(t.Context()))
			}
		}
		must(rt, s.Sync(t.Context()))
		for n := 0; snapshots+s.Stats().Snapshots == 0; n++ { // At least one is to go in.
			if n == 10_000 {
				rt.Fatal("no snapshot is ever taken")
			}
			must(rt, d.Step(t.Context()))
			must(rt, s.Sync(t.Context()))
		}
		cancel()
		must(rt, <-done)
		snapshots += s.Stats().Snapshots
		must(rt, c.Close())
		for _, f := range flakies {
			f.set(nil)
		}
		flakies[chance.IntN(3)].set(away)
		again := filepath.Join(dir, "again")
		report, err := shipping.Rebuild(t.Context(), shipping.RebuildOptions{Coder: "objects", Need: 2, Path: again, Stores: list})
		must(rt, err)
		if len(report.Silent) != 1 || report.Lost != 0 || report.Identity.Term != 2 {
			rt.Fatalf("report %+v", report)
		}
		compare(rt, path, again)
	})
}

// compare opens both, which ends the intents of both in the same way.
func compare(t failer, path, again string) {
	a, err := catalog.Open(path, catalog.Options{Coder: "objects", NoSync: true})
	must(t, err)
	b, err := catalog.Open(again, catalog.Options{Coder: "objects", NoSync: true})
	must(t, err)
	must(t, catalog.Compare(a, b))
	report, err := b.Check(context.Background())
	must(t, err)
	if report.Found > 0 {
		t.Fatalf("rebuilt: %v", report.Problems)
	}
	must(t, a.Close())
	must(t, b.Close())
}

// TestRebuildTakesTheHighestOfAll leaves the last batches in one store only.
func TestRebuildTakesTheHighestOfAll(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	flakies, list := stores(3)
	s, stop := ship(t, quick(c, 1, list))
	put(t, c, 0, 5)
	must(t, s.Sync(t.Context()))
	flakies[0].set(away)
	flakies[1].set(away)
	put(t, c, 5, 5)
	must(t, s.Sync(t.Context()))
	must(t, stop())
	flakies[0].set(nil)
	flakies[1].set(nil)
	again, report := rebuilt(t, 1, list)
	must(t, catalog.Compare(c, again))
	if report.Seq != c.Seq() || len(report.Silent)+len(report.Torn) > 0 {
		t.Errorf("report %+v", report)
	}
}

// TestRebuildRefusesWhatIsTorn damages a batch: where another store has it whole that is
// taken and told, where none has, the blob is named and the old instance keeps the
// stores.
func TestRebuildRefusesWhatIsTorn(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	flakies, list := stores(2)
	s, stop := ship(t, quick(c, 2, list))
	for i := range 5 {
		put(t, c, i, 1)
		must(t, s.Sync(t.Context()))
	}
	must(t, stop())
	keys := flakies[0].keys(t)
	key := keys[len(keys)/2]
	whole := flakies[0].read(t, key)
	for i := 0; i < len(whole); i += 7 {
		torn := bytes.Clone(whole)
		torn[i] ^= 0x20
		flakies[0].write(t, key, torn)
		flakies[1].write(t, key, torn)
		o := shipping.RebuildOptions{Coder: "objects", Need: 2, Path: filepath.Join(t.TempDir(), "no"), Stores: list}
		_, err := shipping.Rebuild(t.Context(), o)
		wants(t, err, shipping.ErrTorn)
		if !strings.Contains(err.Error(), key) {
			t.Fatalf("error doesn't name the blob: %v", err)
		}
		if _, err := os.Stat(o.Path); err == nil {
			t.Fatal("a file was made")
		}
		if i%98 != 0 {
			continue
		}
		o.Partial = true
		report, err := shipping.Rebuild(t.Context(), o)
		must(t, err)
		if report.Lost == 0 || report.Seq != report.Lost-1 {
			t.Fatalf("partial: %+v", report)
		}
		flakies[0].write(t, "objects/owner", flakies[0].read(t, "objects/owner")) // as it is
	}
	flakies[1].write(t, key, whole)
	again, report := rebuilt(t, 2, list)
	must(t, catalog.Compare(c, again))
	if !slices.Equal(report.Torn, []string{"s0:" + key}) {
		t.Errorf("torn %v, want %s", report.Torn, key)
	}
}

// TestTornSnapshot damages a part of the only snapshot, and what says that it is whole: the
// log before it is gone, so that nothing is made of the rest, not even partly.
func TestTornSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, tornSnapshot)
}

func tornSnapshot(t *testing.T) {
	c := fresh(t)
	flakies, list := stores(1)
	o := quick(c, 1, list)
	o.Snapshot, o.Batch = 1, 1000
	s, stop := ship(t, o)
	put(t, c, 0, 10)
	must(t, s.Sync(t.Context()))
	synctest.Wait() // for the snapshot, and what is pruned after it
	must(t, stop())
	var snaps []string
	for _, key := range flakies[0].keys(t) {
		if strings.Contains(key, ".snap") {
			snaps = append(snaps, key)
		}
	}
	if len(snaps) < 3 {
		t.Fatalf("no snapshot of several parts: %v", snaps)
	}
	for _, key := range snaps {
		whole := flakies[0].read(t, key)
		torn := bytes.Clone(whole)
		torn[len(torn)/2] ^= 1
		flakies[0].write(t, key, torn)
		for _, partial := range []bool{false, true} {
			_, err := shipping.Rebuild(t.Context(), shipping.RebuildOptions{
				Coder: "objects", Path: filepath.Join(t.TempDir(), "no"), Stores: list, Partial: partial,
			})
			wants(t, err, shipping.ErrTorn)
			if !strings.Contains(err.Error(), key) {
				t.Fatalf("error doesn't name the blob: %v", err)
			}
		}
		flakies[0].write(t, key, whole)
	}
	again, _ := rebuilt(t, 1, list)
	must(t, catalog.Compare(c, again))
}

func TestRebuildRefusesGaps(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	flakies, list := stores(1)
	s, stop := ship(t, quick(c, 1, list))
	for i := range 5 {
		put(t, c, i, 1)
		must(t, s.Sync(t.Context()))
	}
	must(t, stop())
	keys := flakies[0].keys(t)
	must(t, flakies[0].Delete(t.Context(), keys[2]))
	o := shipping.RebuildOptions{Coder: "objects", Path: filepath.Join(t.TempDir(), "no"), Stores: list}
	_, err := shipping.Rebuild(t.Context(), o)
	wants(t, err, shipping.ErrGap)
	o.Partial = true
	report, err := shipping.Rebuild(t.Context(), o)
	must(t, err)
	if report.Lost != report.Seq+1 || report.Lost >= c.Seq() {
		t.Errorf("partial: %+v", report)
	}
	o.Coder, o.Path = "nobody", filepath.Join(t.TempDir(), "no")
	_, err = shipping.Rebuild(t.Context(), o)
	wants(t, err, shipping.ErrNoLog)
	flakies[0].set(away)
	_, err = shipping.Rebuild(t.Context(), o)
	wants(t, err, shipping.ErrStores)
}

// TestRebuildOfRebuilt goes on through several owners: each one's log stands on its own
// snapshot, and a store that slept through an owner or two does no harm.
func TestRebuildOfRebuilt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, rebuildOfRebuilt)
}

func rebuildOfRebuilt(t *testing.T) {
	flakies, list := stores(3)
	c := fresh(t)
	for term := range 5 {
		s, stop := ship(t, quick(c, 2, list))
		flakies[term%3].set(away)
		put(t, c, 10*term, 10)
		must(t, s.Sync(t.Context()))
		synctest.Wait() // for what is pruned after that
		must(t, stop())
		flakies[term%3].set(nil)
		if got := c.Identity().Term; got != uint32(term+1) {
			t.Fatalf("term %d, want %d", got, term+1)
		}
		again, report := rebuilt(t, 2, list)
		must(t, catalog.Compare(c, again))
		if (report.From > 0) != (term > 0) {
			t.Errorf("term %d was rebuilt from snapshot %d", term+1, report.From)
		}
		c = again
	}
	for _, f := range flakies {
		for _, key := range f.keys(t) {
			if strings.HasPrefix(key, "objects/log/00000001") {
				t.Errorf("%s: %s wasn't pruned", f.Name(), key)
			}
		}
	}
}
