package publisher

import (
	"fmt"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// benchRows are distinct rows as the paper's day has them: 2,500 owners and
// users, three sites.
func benchRows() []event.Request {
	rows := make([]event.Request, 1<<16)
	sites := []string{"us-east", "us-central", "us-west"}
	for i := range rows {
		r := event.NewRequest(1_700_000_000_000_000 + int64(i)*21_000)
		r.Owner = fmt.Sprintf("u%d", i*7919%2500)
		r.User = fmt.Sprintf("u%d", i*104729%2500)
		r.Lat, r.Lon = 30+float32(i%100)/10, -100+float32(i%77)/10
		r.FromComponent, r.ToComponent, r.ToSite = "browser", "web", sites[i%3]
		r.Bytes, r.Status = 1000, 200
		r.Wait, r.Service, r.Network = int64(i%100), int64(1000+i%1000), int64(20_000+i%5000)
		rows[i] = r
	}
	return rows
}

func benchmarkSend(b *testing.B, sync bus.Sync) {
	c := bustest.Client(b, bustest.Start(b, func(o *bus.Options) { o.Sync, o.Purpose = sync, bus.Replay }))
	p := newReplay(b, c)
	rows := benchRows()
	ctx := b.Context()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r := &rows[i%len(rows)]
		p.Horizon(r.Time)
		if err := p.Send(ctx, r); err != nil {
			b.Fatal(err)
		}
		if i++; i%(1<<22) == 0 { // as a replay does, so that the disk stays small
			st, err := c.State(ctx, subject.EventsStream)
			if err != nil {
				b.Fatal(err)
			}
			if err := c.Trim(ctx, subject.EventsStream, st.LastSeq); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := p.Barrier(ctx, rows[0].Time); err != nil {
		b.Fatal(err)
	}
	s := p.Stats()
	b.ReportMetric(float64(s.Sent)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(s.Bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
	b.ReportMetric(float64(s.Bytes)/float64(s.Sent), "B/row")
}

func BenchmarkSendSynced(b *testing.B)   { benchmarkSend(b, bus.SyncAlways) }
func BenchmarkSendUnsynced(b *testing.B) { benchmarkSend(b, bus.SyncInterval) }

// BenchmarkPublish is what a live caller pays a row, spool included.
func BenchmarkPublish(b *testing.B) {
	c := bustest.Client(b, bustest.Start(b))
	p := open(b, Options{
		Client: c, Entry: "web", Logger: zerolog.Nop(), MaxAge: 1e8, SpoolDir: b.TempDir(),
	}, nil)
	rows := benchRows()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		p.Publish(&rows[i%len(rows)])
		i++
	}
	s := p.Stats()
	b.ReportMetric(float64(s.DroppedBatches), "dropped-batches")
}
