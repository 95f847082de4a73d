package entry_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock/stall"
	"penstock/infra/publisher"
	"penstock/producers/entry"
)

// The bus is gone for a while: requests are answered as before, and every one is
// a row on the bus afterwards.
func TestALostBusDelaysAndLosesNothing(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Listen = "127.0.0.1:0" })
	proxy := bustest.NewProxy(t, b.URL())
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Timeout)
	defer cancel()
	far, err := bus.Open(ctx, bus.Options{URL: proxy.URL, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	events, err := publisher.New(ctx, publisher.Options{
		Client: bustest.Client(t, far), Entry: "web-1", MaxAge: 20 * time.Millisecond, AckTimeout: 200 * time.Millisecond, SpoolDir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	p := run(t, []string{service(t, headersOf)}, func(o *entry.Options) { o.Publisher = events })
	const each = 200
	c := client(t)
	slowest := time.Duration(0)
	meter := stall.Start(t.Context())
	ask := func() {
		for range each {
			began := time.Now()
			resp, err := c.Get(p.url + "/u/ada/x")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if slowest = max(slowest, time.Since(began)); resp.StatusCode != http.StatusOK {
				t.Fatalf("got %d", resp.StatusCode)
			}
		}
	}
	ask()
	proxy.Deaf(true)
	proxy.Cut()
	ask()
	time.Sleep(300 * time.Millisecond) // longer than the time-out of an acknowledgement
	ask()
	if s := events.Stats(); s.Sent >= 3*each || s.Waiting == 0 {
		t.Errorf("the bus was there all the time: %+v", s)
	}
	proxy.Deaf(false)
	proxy.Cut()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if err := events.Close(ctx); err != nil {
		t.Error(err)
	}
	if s := events.Stats(); s.Sent != 3*each || len(s.Dropped) > 0 || s.Invalid > 0 {
		t.Errorf("afterwards: %+v", s)
	}
	// The publisher's waits are of seconds, a request's none of them.
	if stalled := meter.Longest(); slowest > 2*time.Second+stalled {
		t.Errorf("a request took %v, and the machine stood still for no more than %v", slowest, stalled)
	}
}
