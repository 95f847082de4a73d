package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"penstock/consumers/executor/coder/catalog"
)

// BenchmarkDiskSync is what one sync of the disk costs: bbolt needs two a commit.
func BenchmarkDiskSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	must(b, err)
	defer func() { must(b, f.Close()) }()
	page := make([]byte, 4096)
	for i := 0; b.Loop(); i++ {
		_, err := f.WriteAt(page, int64(i%1000)*4096)
		must(b, err)
		must(b, f.Sync())
	}
}

// BenchmarkPut is a write as the catalog sees it, synced: the intent, then the commit over a
// key that is there. It reports writes a second of all writers together.
func BenchmarkPut(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			c, err := catalog.Open(filepath.Join(b.TempDir(), "catalog"), catalog.Options{Coder: "objects"})
			must(b, err)
			defer func() { must(b, c.Close()) }()
			put := bucket(b, c)
			before := c.Commits()
			b.ReportAllocs()
			b.ResetTimer()
			var next atomic.Int64
			var group sync.WaitGroup
			for range writers {
				group.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						if err := put(fmt.Sprintf("key-%04d", i%10_000), fmt.Sprintf("v%08d", i)); err != nil {
							b.Error(err)
						}
						c.Shipped(c.Seq())
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
			b.ReportMetric(float64(c.Commits()-before)/float64(b.N), "commits/put")
		})
	}
}

// filled is a catalog of n objects, not synced.
func filled(b *testing.B, n int) *catalog.Catalog {
	b.Helper()
	c, err := catalog.Open(filepath.Join(b.TempDir(), "catalog"), catalog.Options{Coder: "objects", NoSync: true, NoLog: true})
	must(b, err)
	b.Cleanup(func() { must(b, c.Close()) })
	put := bucket(b, c)
	var next atomic.Int64
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := put(fmt.Sprintf("d%03d/%06d", i%100, i), fmt.Sprintf("v%08d", i)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	return c
}

func BenchmarkRead(b *testing.B) {
	c := filled(b, 50_000)
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_, err := c.Get("b", fmt.Sprintf("d%03d/%06d", (1+i%50_000)%100, 1+i%50_000))
			must(b, err)
		}
	})
	b.Run("hold+version", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			held, err := c.Hold("b", fmt.Sprintf("d%03d/%06d", (1+i%50_000)%100, 1+i%50_000))
			must(b, err)
			_, _, err = c.Version(held.Record.Parts[0].Version)
			must(b, err)
			held.Release()
		}
	})
	b.Run("list/1000 keys", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			page, err := c.List(catalog.ListInput{Bucket: "b", After: "d050", Max: 1000})
			must(b, err)
			if len(page.Records) != 1000 {
				b.Fatal(len(page.Records))
			}
		}
	})
	b.Run("list/100 prefixes of 500", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			page, err := c.List(catalog.ListInput{Bucket: "b", Delimiter: "/", Max: 1000})
			must(b, err)
			if len(page.Prefixes) != 100 {
				b.Fatal(len(page.Prefixes))
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			report, err := c.Check(b.Context())
			must(b, err)
			if report.Found > 0 {
				b.Fatal(report.Problems)
			}
		}
	})
}
