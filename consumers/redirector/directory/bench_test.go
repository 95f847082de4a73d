package directory

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// benchOwners is DIRECTORY_OWNERS, 1 million by default.
func benchOwners(b *testing.B) int {
	b.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("DIRECTORY_OWNERS"), "1000000"))
	ok(b, err)
	return n
}

func benchID(i int) string { return fmt.Sprintf("user-%d", i) }

// filled is a directory of n owners in 20 sites, without a bus.
func filled(n int) *Directory {
	var sites []string
	for i := range 20 {
		sites = append(sites, fmt.Sprint("site-", i))
	}
	d := &Directory{opts: Options{Sites: sites}, hints: newTable(hintShards)}
	d.forget()
	since := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	for i := range n {
		d.table.put(benchID(i), place{site: uint32(i % 20), version: uint64(i % 300), since: since.Add(time.Duration(i%100) * time.Hour)})
	}
	return d
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkLocate looks owners up, one and two goroutines, while nothing and while
// 10,000 entries a second change. p99 is of single lookups, the clock's own time
// (some 40 ns) included.
func BenchmarkLocate(b *testing.B) {
	n := benchOwners(b)
	before := heap()
	began := time.Now()
	d := filled(n)
	took := time.Since(began)
	after := heap()
	ids := make([]string, 1<<20)
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range ids {
		ids[i] = benchID(rnd.IntN(n))
	}
	for _, c := range []struct {
		name     string
		readers  int
		changing bool
	}{{"readers=1", 1, false}, {"readers=2", 2, false}, {"readers=1/changing", 1, true}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			stop := changing(d, n, c.changing)
			defer stop()
			var missing atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for r := range c.readers {
				wg.Go(func() {
					miss := 0
					for i := range b.N / c.readers {
						if _, _, known := d.Locate(ids[(i+r*77777)&(len(ids)-1)]); !known {
							miss++
						}
					}
					missing.Add(int64(miss))
				})
			}
			wg.Wait()
			b.StopTimer()
			if missing.Load() > 0 {
				b.Fatalf("%d owners are missing", missing.Load())
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lookups/s")
			b.ReportMetric(p99(d, ids), "p99-ns")
			b.ReportMetric(float64(after-before)/float64(n), "heap-B/owner")
			b.ReportMetric(float64(d.table.bytes.Load())/float64(n), "table-B/owner")
			b.ReportMetric(float64(took.Nanoseconds())/float64(n), "ns/put")
		})
	}
	runtime.KeepAlive(d)
}

// p99 is the 99th percentile of 200,000 single lookups, in ns.
func p99(d *Directory, ids []string) float64 {
	took := make([]time.Duration, 200_000)
	for i := range took {
		t := time.Now()
		d.Locate(ids[i])
		took[i] = time.Since(t)
	}
	slices.Sort(took)
	return float64(took[len(took)*99/100])
}

// changing changes 10,000 entries a second until stop.
func changing(d *Directory, n int, on bool) (stop func()) {
	if !on {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for v := uint64(1); ; v++ {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			for i := range 100 {
				d.table.put(benchID(int(v*100+uint64(i))*7919%n), place{site: uint32(v % 20), version: v + 300})
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// BenchmarkLoad reads all owners from a bus with a file store: what a start
// without a snapshot takes, and one with.
func BenchmarkLoad(b *testing.B) {
	n := benchOwners(b)
	server := bustest.Start(b)
	c := bustest.Client(b, server)
	write(b, c, n)
	file := b.TempDir() + "/directory"
	for _, name := range []string{"bus", "snapshot"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				began := time.Now()
				d, err := New(Options{Client: c, Snapshot: file})
				ok(b, err)
				ctx, cancel := context.WithCancel(b.Context())
				ended := make(chan error, 1)
				if name == "bus" {
					go func() { ended <- d.Run(ctx) }()
					<-d.Ready()
				} else {
					<-d.Ready()
					go func() { ended <- d.Run(ctx) }()
				}
				took := time.Since(began)
				if d.Len() != n {
					b.Fatalf("%d owners", d.Len())
				}
				b.ReportMetric(took.Seconds(), "s/load")
				b.ReportMetric(float64(n)/took.Seconds(), "owners/s")
				cancel()
				ok(b, <-ended)
				if name == "bus" {
					info, err := os.Stat(file)
					ok(b, err)
					b.ReportMetric(float64(info.Size())/float64(n), "file-B/owner")
					b.StopTimer()
					if b.N > 1 {
						ok(b, os.Remove(file))
					}
					b.StartTimer()
				}
			}
		})
		if _, err := os.Stat(file); err != nil {
			d, err := New(Options{Client: c, Snapshot: file})
			ok(b, err)
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- d.Run(ctx) }()
			<-d.Ready()
			cancel()
			ok(b, <-ended)
		}
	}
}

// write puts n entries on the bus, in batches.
func write(b *testing.B, c *bus.Client, n int) {
	b.Helper()
	prefix := c.KeyPrefix(subject.LocationsKV)
	for from := 0; from < n; from += bus.MaxBatch {
		var msgs []*nats.Msg
		for i := from; i < min(n, from+bus.MaxBatch); i++ {
			body, err := control.Encode(control.Location{
				Site: fmt.Sprint("site-", i%20), Version: uint64(i % 300), State: control.Live,
				Since: time.Date(2026, 11, 30, i%24, 0, 0, 0, time.UTC),
			})
			ok(b, err)
			m := nats.NewMsg(prefix + benchID(i))
			m.Data = body
			msgs = append(msgs, m)
		}
		_, err := c.PublishTogether(b.Context(), msgs)
		ok(b, err)
	}
}
