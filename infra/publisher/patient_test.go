package publisher

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
)

// TestABusThatComesLater: a live publisher starts without its bus, spools, and
// sends once the bus is there; what it cut for other partitions it keeps to
// itself.
func TestABusThatComesLater(t *testing.T) {
	t.Parallel()
	at := testserver.FreeAddress(t)
	far, err := bus.Open(testContext(t), bus.Options{URL: "nats://" + at, Patient: true, Partitions: 4, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	c := bustest.Client(t, far)
	dir := t.TempDir()
	p := newLive(t, c, func(o *Options) { o.SpoolDir = dir })
	send := func(from, n int) {
		for i := range n {
			r := row(from + i)
			p.Publish(&r)
		}
	}
	send(0, 100)
	waitFor(t, "the spool", func() bool { return len(p.Stats().Dropped) == 0 && p.Stats().SpoolBytes > 0 })

	other := bustest.Start(t, func(o *bus.Options) { o.Listen, o.Partitions = at, 3 })
	var diff *bus.DiffError
	waitFor(t, "the fault", func() bool { return errors.As(c.Fault(), &diff) })
	send(100, 100)
	if s := readAll(t, bustest.Client(t, other)); len(s.bodies)+len(s.marks) > 0 {
		t.Errorf("the wrong bus got %d batches and %d marks", len(s.bodies), len(s.marks))
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	right := bustest.Start(t, func(o *bus.Options) { o.Listen, o.Partitions = at, 4 })
	send(200, 100)
	if err := p.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	s := readAll(t, bustest.Client(t, right))
	if len(s.rows) != 300 || p.Stats().Sent != 300 {
		t.Errorf("%d rows are there, %d sent", len(s.rows), p.Stats().Sent)
	}
}

// TestCloseWithoutTime: whoever has no time to wait for the bus loses nothing that
// was published; the next start has it.
func TestCloseWithoutTime(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	b.Suspend()
	dir := t.TempDir()
	for k := range 20 {
		p := newLive(t, c, func(o *Options) { o.SpoolDir, o.MaxAge = dir, time.Hour })
		for i := range 50 {
			r := row(50*k + i)
			p.Publish(&r)
		}
		none, cancel := context.WithCancel(t.Context())
		cancel()
		_ = p.Close(none) // there is nobody to acknowledge anything
	}
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	p := newLive(t, c, func(o *Options) { o.SpoolDir = dir })
	if err := p.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if s := readAll(t, c); len(s.rows) != 1000 {
		t.Errorf("%d rows are there, 1000 were published", len(s.rows))
	}
}
