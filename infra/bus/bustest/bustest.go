// Package bustest runs a real bus for tests: an embedded server over a
// temporary folder, with everything made, closed at the end of the test.
//
// It syncs at intervals, for speed; a test of what survives a power cut asks
// for sync always itself.
package bustest

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
)

// Timeout bounds each step of the helpers and is a fair bound for tests.
const Timeout = time.Minute

// Option changes the options of the bus before it is opened.
type Option = func(*bus.Options)

// Start opens a bus over a temporary folder and makes its streams.
func Start(t testing.TB, opts ...Option) *bus.Bus {
	t.Helper()
	o := bus.Options{Dir: t.TempDir(), Sync: bus.SyncInterval, Logger: zerolog.Nop(), Name: "test"}
	for _, f := range opts {
		f(&o)
	}
	return open(t, o)
}

// Reopen closes a bus and opens another over the same folder, as a process
// that starts again does. Clients of the old one are closed.
func Reopen(t testing.TB, b *bus.Bus, opts ...Option) *bus.Bus {
	t.Helper()
	o := b.Options()
	for _, f := range opts {
		f(&o)
	}
	if err := b.Close(); err != nil {
		t.Fatalf("close the bus: %v", err)
	}
	return open(t, o)
}

func open(t testing.TB, o bus.Options) *bus.Bus {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	b, err := bus.Open(ctx, o)
	if err != nil {
		t.Fatalf("open a bus: %v", err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close the bus: %v", err)
		}
	})
	if err := b.Init(ctx); err != nil {
		t.Fatalf("make the streams: %v", err)
	}
	return b
}

// Client connects to a bus for the length of the test.
func Client(t testing.TB, b *bus.Bus) *bus.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	c, err := b.Client(ctx, t.Name())
	if err != nil {
		t.Fatalf("connect to the bus: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// Restart takes the embedded server of a bus down and up again under its
// clients, who reconnect.
func Restart(t testing.TB, b *bus.Bus) {
	t.Helper()
	b.Suspend()
	if err := b.Resume(); err != nil {
		t.Fatalf("restart the server: %v", err)
	}
}

// Take receives n messages from a reader, or fails the test.
func Take(t testing.TB, r *bus.Reader, n int) []bus.Msg {
	t.Helper()
	var out []bus.Msg
	deadline := clock.System().NewTimer(Timeout)
	defer deadline.Stop()
	for len(out) < n {
		select {
		case m, ok := <-r.C():
			if !ok {
				t.Fatalf("the reader ended after %d of %d messages: %v", len(out), n, r.Err())
			}
			out = append(out, m)
		case <-deadline.C():
			t.Fatalf("%d of %d messages after %v", len(out), n, Timeout)
		}
	}
	return out
}
