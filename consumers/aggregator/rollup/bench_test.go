package rollup

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"penstock/consumers/aggregator/ledger"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

func people(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("user-%07d", i)
	}
	return names
}

// day returns a batch of requests as the paper's day has them: 100 reads a
// write, one of three sites an owner, users with places.
func day(rng *rand.Rand, names []string, rows int, start int64) (*event.Requests, []ledger.Class) {
	zipf := rand.NewZipf(rng, 1.0001, 1, uint64(len(names)-1))
	pick := func() int {
		if len(names) > 10_000 {
			return int(zipf.Uint64())
		}
		return rng.IntN(len(names))
	}
	sites := []string{"us-east", "us-central", "us-west"}
	var b event.Requests
	for i := range rows {
		owner, user := pick(), pick()
		r := event.NewRequest(start + int64(i)*20_000)
		r.Owner, r.User = names[owner], names[user]
		r.ToSite, r.FromSite = sites[owner%3], sites[user%3]
		r.FromComponent, r.ToComponent = "app", "store"
		r.Lat, r.Lon = float32(30+user%20), -float32(70+user%50)
		r.Bytes, r.Status = 1000, 200
		r.Wait, r.Service, r.Network = int64(rng.IntN(500)), int64(1000+rng.ExpFloat64()*5000), int64(5000+rng.ExpFloat64()*20_000)
		if i%101 == 0 {
			r.Op = event.Write
		}
		b.Append(&r)
	}
	return &b, make([]ledger.Class, rows)
}

// tasks returns a batch of chunk tasks: reads and writes under six codes to two stores.
func tasks(rng *rand.Rand, rows int) (*event.Requests, []ledger.Class) {
	var b event.Requests
	for i := range rows {
		r := event.NewRequest(int64(i) * 100)
		k := uint8(1 + rng.IntN(6))
		r.ToComponent, r.ToSite, r.ToServer = "objects", "us-east", [...]string{"east-1", "east-2"}[rng.IntN(2)]
		r.Op = event.Op(rng.IntN(2))
		r.N, r.K, r.Bytes = 2*k, k, 3_000_000/int64(k)
		r.Wait, r.Service = int64(rng.IntN(500)), int64(20_000+rng.ExpFloat64()*30_000)
		r.Outcome = [...]string{"done", "cancelled"}[rng.IntN(2)]
		b.Append(&r)
	}
	return &b, make([]ledger.Class, rows)
}

// served returns a batch of requests of two classes at four servers.
func served(rng *rand.Rand, rows int) (*event.Requests, []ledger.Class) {
	var b event.Requests
	for i := range rows {
		r := event.NewRequest(int64(i) * 100)
		r.ToComponent, r.ToSite, r.ToServer = "shop", "us-east", [...]string{"web-1", "web-2", "web-3", "web-4"}[rng.IntN(4)]
		r.Class, r.Status, r.Bytes = [...]string{"static", "dynamic"}[rng.IntN(2)], 200, 1000
		r.Wait, r.Service = int64(rng.IntN(500)), int64(20_000+rng.ExpFloat64()*30_000)
		r.Overdue = max(0, r.Wait+r.Service-50_000)
		b.Append(&r)
	}
	return &b, make([]ledger.Class, rows)
}

// BenchmarkAddServed adds batches of 8,192 requests at servers and takes the tables once
// in 40.
func BenchmarkAddServed(b *testing.B) {
	s, err := New(window.Fast, window.Widths{})
	if err != nil {
		b.Fatal(err)
	}
	batch, class := served(rand.New(rand.NewPCG(1, 1)), event.MaxRows)
	b.ReportAllocs()
	for i := range b.N {
		s.Add(batch, class)
		if i%40 == 39 {
			s.Tables()
		}
	}
	b.ReportMetric(float64(b.N*batch.Len())/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// BenchmarkAddTasks adds batches of 8,192 chunk tasks and takes the tables once in 40.
func BenchmarkAddTasks(b *testing.B) {
	s, err := New(window.Fast, window.Widths{})
	if err != nil {
		b.Fatal(err)
	}
	batch, class := tasks(rand.New(rand.NewPCG(1, 1)), event.MaxRows)
	b.ReportAllocs()
	for i := range b.N {
		s.Add(batch, class)
		if i%40 == 39 {
			s.Tables()
		}
	}
	b.ReportMetric(float64(b.N*batch.Len())/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// BenchmarkAdd adds batches of 8,192 rows and takes the tables at 64 MB or once
// an hour of event time, as an aggregator does; rows/s is the figure.
func BenchmarkAdd(b *testing.B) {
	for _, c := range []struct {
		name   string
		people int
	}{{"day", 2500}, {"zipf1M", 1_000_000}} {
		for _, group := range window.Groups {
			b.Run(c.name+"/"+group, func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 1))
				names := people(c.people)
				var batches []*event.Requests
				var class []ledger.Class
				const rows = 8192
				for i := range 40 {
					var r *event.Requests
					r, class = day(rng, names, rows, int64(i)*rows*20_000)
					batches = append(batches, r)
				}
				s, err := New(group, window.Widths{})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				flushes := 0
				for i := range b.N {
					s.Add(batches[i%len(batches)], class)
					if s.Size() > 64<<20 || i%len(batches) == len(batches)-1 {
						s.Tables()
						flushes++
					}
				}
				b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds()/1e6, "Mrows/s")
				b.ReportMetric(float64(flushes), "flushes")
			})
		}
	}
}
