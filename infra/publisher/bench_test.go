package publisher

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// benchSource makes distinct rows as the paper's day has them: 2,500 owners and
// users, three sites. Like other producers it interns names and fills one row
// again and again.
type benchSource struct {
	names [2500]string
	sites [3]string
	row   event.Request
	n     int
}

func newBenchSource() *benchSource {
	s := &benchSource{sites: [3]string{"us-east", "us-central", "us-west"}, row: event.NewRequest(0)}
	for i := range s.names {
		s.names[i] = fmt.Sprintf("u%d", i)
	}
	s.row.FromComponent, s.row.ToComponent, s.row.Bytes, s.row.Status = "browser", "web", 1000, 200
	return s
}

func (s *benchSource) next() *event.Request {
	r, i := &s.row, s.n
	s.n++
	r.Time = 1_700_000_000_000_000 + int64(i)*21_000
	r.Owner, r.User = s.names[i*7919%len(s.names)], s.names[i*104729%len(s.names)]
	r.Lat, r.Lon, r.ToSite = 30+float32(i%100)/10, -100+float32(i%77)/10, s.sites[i%3]
	r.Wait, r.Service, r.Network = int64(i%100), int64(1000+i%1000), int64(20_000+i%5000)
	return r
}

func benchmarkSend(b *testing.B, sync bus.Sync) {
	c := bustest.Client(b, bustest.Start(b, func(o *bus.Options) { o.Sync, o.Purpose = sync, bus.Replay }))
	p := newReplay(b, c)
	rows := newBenchSource()
	ctx := b.Context()
	b.ReportAllocs()
	i, from := 0, cpuTime()
	for b.Loop() {
		r := rows.next()
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
	if err := p.Barrier(ctx, rows.row.Time); err != nil {
		b.Fatal(err)
	}
	s := p.Stats()
	b.ReportMetric(float64(s.Sent)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(s.Bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
	b.ReportMetric(float64(s.Bytes)/float64(s.Sent), "B/row")
	b.ReportMetric(float64(cpuTime()-from)/float64(s.Sent), "cpu-ns/row")
}

func BenchmarkSendSynced(b *testing.B)   { benchmarkSend(b, bus.SyncAlways) }
func BenchmarkSendUnsynced(b *testing.B) { benchmarkSend(b, bus.SyncInterval) }

// BenchmarkPublish is what a live caller pays a row, spool included.
func BenchmarkPublish(b *testing.B) {
	c := bustest.Client(b, bustest.Start(b))
	p := open(b, Options{
		Client: c, Entry: "web", Logger: zerolog.Nop(), MaxAge: 1e8, SpoolDir: b.TempDir(),
	}, nil)
	rows := newBenchSource()
	b.ReportAllocs()
	i, from := 0, cpuTime()
	for b.Loop() {
		p.Publish(rows.next())
		i++
	}
	s := p.Stats()
	b.ReportMetric(float64(s.DroppedBatches), "dropped-batches")
	b.ReportMetric(float64(cpuTime()-from)/float64(i), "cpu-ns/row")
}

// BenchmarkAppend is the part of Send that fills columns: rows of one partition
// of eight, cut at the usual size.
func BenchmarkAppend(b *testing.B) {
	source := newBenchSource()
	var rows []event.Request
	for len(rows) < 1000 {
		if r := source.next(); event.Partition(r.Owner, r.User, r.Trace, 8) == 3 {
			rows = append(rows, *r)
		}
	}
	var batch event.Requests
	b.ReportAllocs()
	i := 0
	from := cpuTime()
	for b.Loop() {
		if batch.Append(&rows[i%len(rows)]); batch.Len() == event.MaxRows || batch.Size() >= event.MaxBytes {
			batch.Reset()
		}
		i++
	}
	b.ReportMetric(float64(cpuTime()-from)/float64(i), "cpu-ns/op")
}

// cpuTime is what this process has used, which a busy machine changes less than
// the time that passes.
func cpuTime() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkCommit sends rows of an input with positions, 5,000 a group, each
// group on disk before it is sent. ns/op is for a row.
func BenchmarkCommit(b *testing.B) {
	for _, sync := range []bool{true, false} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) {
			c := bustest.Client(b, bustest.Start(b))
			p := newGrouped(b, c, func(o *Options) { o.NoSync, o.MaxRows = !sync, 0 })
			rows := newBenchSource()
			ctx := b.Context()
			b.ReportAllocs()
			from := cpuTime()
			for i := 0; b.Loop(); i++ {
				if err := p.Send(ctx, rows.next()); err != nil {
					b.Fatal(err)
				}
				if i%5000 == 4999 {
					if err := p.Commit(ctx, at(i)); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := p.Commit(ctx, at(0)); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(cpuTime()-from)/float64(b.N), "cpu-ns/row")
			b.ReportMetric(float64(p.Stats().Commits), "commits")
		})
	}
}
