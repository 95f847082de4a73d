package bus_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
)

// openWithin opens a bus that must be refused, and fails the test if that takes
// longer than anybody would wait.
func openWithin(t *testing.T, ctx context.Context, o bus.Options) error {
	t.Helper()
	o.Logger = zerolog.Nop()
	done := make(chan error, 1)
	go func() {
		b, err := bus.Open(ctx, o)
		if err == nil {
			err = errors.Join(errors.New("it was opened"), b.Close())
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-testContext(t).Done():
		t.Fatal("the start neither fails nor ends")
		return nil
	}
}

// TestAStartThatFails says why, at once, and leaves the folder to the next.
func TestAStartThatFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := l.Addr().String()
	err = openWithin(t, t.Context(), bus.Options{Dir: dir, Listen: taken})
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "cannot listen at "+taken+": ") || strings.Count(err.Error(), taken) != 1 {
		t.Errorf("a port that is taken: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(t.Context(), bus.Options{Dir: dir, Listen: taken, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatalf("the port is free again: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}

	// What the server itself gives up for.
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "jetstream"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := openWithin(t, t.Context(), bus.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "Can't start JetStream") {
		t.Errorf("a store that is a file: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := openWithin(t, ctx, bus.Options{Dir: t.TempDir(), Listen: taken}); !errors.Is(err, context.Canceled) {
		t.Errorf("told to stop: %v", err)
	}
}
