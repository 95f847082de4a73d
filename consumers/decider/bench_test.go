package decider

import (
	"testing"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/subject"
)

// BenchmarkWindow measures deciding small windows that are on the bus already,
// 12 owners each and no commands, with the disk synced for every record.
func BenchmarkWindow(b *testing.B) {
	w := newWorldOn(b, bustest.Start(b, func(o *bus.Options) {
		o.Partitions, o.Purpose, o.Sync = 1, bus.Replay, bus.SyncAlways
	}))
	for n := range b.N {
		w.close(n, traffic(n)...)
	}
	b.ReportAllocs()
	b.ResetTimer()
	r := w.start(func(o *Options) {
		c := baseConfig
		c.Least = 1 << 40
		o.Config, o.SnapshotEvery = c.bytes(), 256
	})
	for range b.N {
		w.next()
	}
	b.StopTimer()
	r.stop()
}

// BenchmarkSend is the yardstick for BenchmarkWindow: one synced message.
func BenchmarkSend(b *testing.B) {
	w := newWorldOn(b, bustest.Start(b, func(o *bus.Options) { o.Purpose, o.Sync = bus.Replay, bus.SyncAlways }))
	body := make([]byte, 400)
	last := uint64(0)
	for b.Loop() {
		seq, err := w.client.PublishFenced(w.ctx, []bus.Msg{{Subject: subject.Decisions("placement"), Data: body}}, last)
		w.ok(err)
		last = seq
	}
}
