package shipping_test

import (
	"path/filepath"
	"testing"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/shipping"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/dir"
)

// BenchmarkRebuild is of 20,000 objects, in a folder, from a log of 40,000 changes and from
// a snapshot.
func BenchmarkRebuild(b *testing.B) {
	for name, snapshot := range map[string]int64{"log": 1 << 40, "snapshot": 16 << 20} {
		b.Run(name, func(b *testing.B) {
			store := folder(b)
			c := fresh(b)
			o := quick(c, 1, []chunks.Store{store})
			o.Snapshot = snapshot
			s, stop := ship(b, o)
			put(b, c, 0, 20_000)
			must(b, s.Sync(b.Context()))
			must(b, stop())
			b.ResetTimer()
			for b.Loop() {
				path := filepath.Join(b.TempDir(), "rebuilt")
				report, err := shipping.Rebuild(b.Context(), shipping.RebuildOptions{Coder: "objects", Path: path, Stores: o.Stores})
				must(b, err)
				if report.Seq != c.Seq() {
					b.Fatalf("%+v", report)
				}
			}
			b.ReportMetric(float64(20_000*b.N)/b.Elapsed().Seconds(), "objects/s")
		})
	}
}

func folder(b *testing.B) *dir.Store {
	b.Helper()
	store, err := dir.Open("s0", b.TempDir())
	must(b, err)
	b.Cleanup(func() { must(b, store.Close()) })
	return store
}

// BenchmarkSync is a put that waits until its change is in a folder.
func BenchmarkSync(b *testing.B) {
	store := folder(b)
	c, err := catalog.Open(filepath.Join(b.TempDir(), "catalog"), catalog.Options{Coder: "objects"})
	must(b, err)
	defer func() { must(b, c.Close()) }()
	s, stop := ship(b, shipping.Options{Catalog: c, Stores: []chunks.Store{store}})
	for i := 0; b.Loop(); i++ {
		put(b, c, i, 1)
		must(b, s.Sync(b.Context()))
	}
	must(b, stop())
}
