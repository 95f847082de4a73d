package aggregator

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"penstock/consumers/aggregator/ledger"
	"penstock/consumers/aggregator/rollup"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// encodedDay returns bodies of 8,192 requests each, as the paper's day has
// them, or with owners of Zipf's law.
func encodedDay(b *testing.B, people, batches int) (bodies [][]byte) {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	zipf := rand.NewZipf(rng, 1.0001, 1, uint64(people-1))
	pick := func() int {
		if people > 10_000 {
			return int(zipf.Uint64())
		}
		return rng.IntN(people)
	}
	sites := []string{"us-east", "us-central", "us-west"}
	var enc event.Encoder
	for k := range batches {
		var rows event.Requests
		for i := range event.MaxRows {
			owner, user := pick(), pick()
			r := event.NewRequest(int64(k*event.MaxRows+i) * 10_000)
			r.Owner, r.User = fmt.Sprintf("user-%07d", owner), fmt.Sprintf("user-%07d", user)
			r.ToSite, r.FromSite = sites[owner%3], sites[user%3]
			r.FromComponent, r.ToComponent, r.Class = "app", "store", "dynamic"
			r.Lat, r.Lon = float32(30+user%20), -float32(70+user%50)
			r.Bytes, r.Status = 1000, 200
			r.Wait, r.Service, r.Network = int64(rng.IntN(500)), int64(1000+rng.ExpFloat64()*5000), int64(5000+rng.ExpFloat64()*20_000)
			rows.Append(&r)
		}
		body, err := enc.Encode(nil, &rows)
		if err != nil {
			b.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	return bodies
}

// BenchmarkTake decodes, books and adds up batches, and encodes what a flush of
// an hour sends; all but the bus.
func BenchmarkTake(b *testing.B) {
	for _, people := range []int{2500, 1_000_000} {
		bodies := encodedDay(b, people, 40)
		for _, group := range window.Groups {
			b.Run(fmt.Sprintf("people=%d/%s", people, group), func(b *testing.B) {
				w := &worker{book: ledger.New(ledger.ConfigOf(group, 0, 0, window.Widths{})), newest: window.NullInt}
				w.state, _ = rollup.New(group, window.Widths{})
				w.state.Columns(&w.decoder)
				h := event.Header{Schema: event.RequestSchema, Encoding: event.EncodingS2, Run: "R", Rows: event.MaxRows}
				b.ReportAllocs()
				b.ResetTimer()
				sent := 0
				for i := range b.N {
					h.Seq = uint64(i + 1)
					if err := w.add(ledger.Position{Seq: h.Seq, Time: 1}, &h, bodies[i%len(bodies)]); err != nil {
						b.Fatal(err)
					}
					if w.state.Size() >= DefaultFlushBytes || i%len(bodies) == len(bodies)-1 {
						msgs, err := encode(w.state.Tables(), w.book.Commit(), PaneBytes)
						if err != nil {
							b.Fatal(err)
						}
						for _, m := range msgs {
							sent += len(m.Data)
						}
					}
				}
				b.ReportMetric(float64(b.N*event.MaxRows)/b.Elapsed().Seconds()/1e6, "Mrows/s")
				b.ReportMetric(float64(sent)/float64(b.N*event.MaxRows), "B/row")
			})
		}
	}
}

// BenchmarkTakeTasks is the same of chunk tasks: what one partition takes, on which all
// tasks of a coder are.
func BenchmarkTakeTasks(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	var rows event.Requests
	for i := range event.MaxRows {
		r := event.NewRequest(int64(i) * 500)
		k := uint8(1 + rng.IntN(6))
		r.ToComponent, r.ToSite, r.ToServer = "objects", "us-east", "east-1"
		r.Op, r.N, r.K, r.Bytes = event.Op(rng.IntN(2)), 2*k, k, 3_000_000/int64(k)
		r.Wait, r.Service, r.Outcome = int64(rng.IntN(500)), int64(20_000+rng.ExpFloat64()*30_000), [...]string{"done", "cancelled"}[rng.IntN(2)]
		rows.Append(&r)
	}
	body, err := new(event.Encoder).Encode(nil, &rows)
	if err != nil {
		b.Fatal(err)
	}
	for _, group := range window.Groups {
		b.Run(group, func(b *testing.B) {
			w := &worker{book: ledger.New(ledger.ConfigOf(group, 0, 0, window.Widths{})), newest: window.NullInt}
			w.state, _ = rollup.New(group, window.Widths{})
			w.state.Columns(&w.decoder)
			h := event.Header{Schema: event.RequestSchema, Encoding: event.EncodingS2, Run: "R", Rows: event.MaxRows}
			b.ReportAllocs()
			for i := range b.N {
				h.Seq = uint64(i + 1)
				if err := w.add(ledger.Position{Seq: h.Seq, Time: 1}, &h, body); err != nil {
					b.Fatal(err)
				}
				if i%20 == 19 {
					if _, err := encode(w.state.Tables(), w.book.Commit(), PaneBytes); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N*event.MaxRows)/b.Elapsed().Seconds()/1e6, "Mrows/s")
			b.ReportMetric(float64(len(body))/event.MaxRows, "B/row")
		})
	}
}
