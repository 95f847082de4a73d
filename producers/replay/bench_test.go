package replay

import (
	"context"
	"os"
	"testing"

	"penstock/infra/publisher"
	"penstock/producers/workload"
	"penstock/schemas/event"
)

type generated struct{ *workload.Generator }

func (generated) Close() error { return nil }

// BenchmarkPaperDay sends the paper's day through the real publisher to a bus
// that syncs at intervals, and writes and verifies its 36,000 records.
func BenchmarkPaperDay(b *testing.B) {
	data, err := os.ReadFile("../../infra/examples/paper-day.yaml")
	if err != nil {
		b.Fatal(err)
	}
	p, err := workload.Decode(data, "paper-day.yaml")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for range b.N {
		b.StopTimer()
		w := newWorld(b)
		o := w.options(nil, nil)
		o.NoWait = true
		o.Open = func(func(Bad)) (Source, error) {
			g, err := workload.New(p)
			return generated{g}, err
		}
		o.NewPublisher = func(ctx context.Context, run string, acked []uint64) (Publisher, error) {
			return publisher.New(ctx, publisher.Options{Client: w.client, Entry: "replay", Run: run, Acked: acked})
		}
		b.StartTimer()
		s, err := Run(context.Background(), o)
		if err != nil {
			b.Fatal(err)
		}
		if !s.Verify.OK() {
			b.Fatalf("%+v", s.Verify)
		}
		b.ReportMetric(float64(s.Read)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	}
}

// null takes rows and answers barriers, for benchmarks of the replay's own side.
type null struct{ seq []uint64 }

func (*null) Send(context.Context, *event.Request) error { return nil }
func (*null) Horizon(int64)                              {}
func (*null) Malformed(int64)                            {}
func (*null) Barrier(context.Context, int64) error       { return nil }
func (*null) End(context.Context, int64) error           { return nil }
func (n *null) Sequences() []uint64                      { return n.seq }
func (*null) Close(context.Context) error                { return nil }

func BenchmarkRows(b *testing.B) {
	w := newWorld(b)
	rows := recording(24, max(b.N/24, 1))
	for i := range rows {
		rows[i].Op = event.Read
	}
	o := w.options(rows, nil)
	o.NoWait = true
	o.NewPublisher = func(context.Context, string, []uint64) (Publisher, error) { return &null{make([]uint64, 3)}, nil }
	b.ReportAllocs()
	b.ResetTimer()
	s, err := Run(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(s.Read)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkThinWindows is the replay's own cost of a window's step: five
// thousand windows of four rows, as of check-ins over months.
func BenchmarkThinWindows(b *testing.B) {
	rows := recording(5000, 4)
	for range b.N {
		b.StopTimer()
		w := newWorld(b)
		o := w.options(rows, nil)
		o.NoWait = true
		o.NewPublisher = func(context.Context, string, []uint64) (Publisher, error) { return &null{make([]uint64, 3)}, nil }
		b.StartTimer()
		s, err := Run(context.Background(), o)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(s.Windows)/float64(b.N)*1e3, "ms/window")
	}
}

// BenchmarkWindows is the cost of a window's step with a decider and a bus.
func BenchmarkWindows(b *testing.B) {
	w := newWorld(b)
	w.start(w.decide, w.execute)
	o := w.options(recording(max(b.N, 1), 4), nil)
	b.ResetTimer()
	if _, err := Run(context.Background(), o); err != nil {
		b.Fatal(err)
	}
}
