package publisher

import (
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
)

// TestLostAnswersAreRepeats throws away acknowledgements for a while: batches
// are sent again, byte for byte (which readAll checks), and none is missing. A
// replay and a live publisher do so side by side.
func TestLostAnswersAreRepeats(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Listen = "127.0.0.1:0" })
	proxy := bustest.NewProxy(t, b.URL())
	far, err := bus.Open(testContext(t), bus.Options{URL: proxy.URL, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = far.Close() }()
	c := bustest.Client(t, far)
	timeout := func(o *Options) { o.AckTimeout, o.MaxRows = 150*time.Millisecond, 50 }
	replayed, live := newReplay(t, c, timeout), newLive(t, c, timeout)
	const n = 2000
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			r := row(i)
			if err := replayed.Send(t.Context(), &r); err != nil {
				t.Error(err)
				return
			}
		}
	})
	wg.Go(func() {
		for i := range n {
			r := liveRow(n+i, time.Now())
			live.Publish(&r)
		}
	})
	proxy.Deaf(true)
	wg.Wait()
	waitFor(t, "batches to be sent again", func() bool {
		return replayed.Stats().Retries > 0 && live.Stats().Retries > 0
	})
	proxy.Deaf(false)
	proxy.Cut()
	for _, p := range []*Publisher{replayed, live} {
		if err := p.End(testContext(t), time.Now().UnixMicro()); err != nil {
			t.Fatal(err)
		}
		if s := p.Stats(); s.Waiting != 0 || s.InFlight != 0 || s.Sent != n {
			t.Errorf("stats %+v", s)
		}
	}
	s := readAll(t, bustest.Client(t, b))
	if len(s.rows) != 2*n || s.repeats == 0 {
		t.Errorf("%d rows, %d repeats", len(s.rows), s.repeats)
	}
}
