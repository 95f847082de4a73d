package jetstream

import (
	"fmt"
	"strings"
	"testing"

	"penstock/consumers/executor/coder/chunks/chunkstest"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
)

func BenchmarkStore(b *testing.B) { chunkstest.Bench(b, open(b, connect(b))) }

// BenchmarkSynced is over a bus that syncs before it acknowledges, as by default.
func BenchmarkSynced(b *testing.B) {
	synced := bustest.Start(b, func(o *bus.Options) { o.Sync = bus.SyncAlways })
	chunkstest.Bench(b, open(b, bustest.Client(b, synced).JS))
}

// BenchmarkList is all of 20,000 blobs by pages of 1,000, and the 78 below one of the
// prefixes that a coder lists by.
func BenchmarkList(b *testing.B) {
	s := open(b, connect(b))
	for i := range 20_000 {
		if err := s.Put(b.Context(), fmt.Sprintf("coder/b/%02x/%d", i%256, i), strings.NewReader("x"), 1); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		prefix string
		want   int
	}{{"coder/b/", 20_000}, {"coder/b/ff/", 78}} {
		b.Run(c.prefix, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				found := 0
				for after, more := "", true; more; {
					l, err := s.List(b.Context(), c.prefix, after, 1000)
					if err != nil {
						b.Fatal(err)
					}
					if found, more = found+len(l), len(l) == 1000; more {
						after = l[len(l)-1].Key
					}
				}
				if found != c.want {
					b.Fatal(found)
				}
			}
		})
	}
}
