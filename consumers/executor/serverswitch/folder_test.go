package serverswitch

import (
	"context"
	"errors"
	"testing"
	"time"

	"penstock/infra/clock"
)

// TestClaim: a folder is one process's; one that was killed is waited for, another is not.
func TestClaim(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := clock.NewManual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	first, err := Claim(t.Context(), c, folder)
	if err != nil {
		t.Fatal(err)
	}
	type claimed struct {
		folder *Folder
		err    error
	}
	claims := make(chan claimed, 1)
	second := func() {
		f, err := Claim(t.Context(), c, folder)
		claims <- claimed{f, err}
	}
	go second()
	if err := c.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c.Advance(lockWait)
	if got := wait1(t, claims); !errors.Is(got.err, ErrInUse) {
		t.Fatalf("a second one: %+v", got)
	}
	go second()
	if err := c.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c.Advance(lockLook)
	got := wait1(t, claims)
	if got.err != nil {
		t.Fatalf("a second one, once the first is gone: %v", got.err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Claim(ended, c, folder); !errors.Is(err, ErrInUse) {
		t.Errorf("one that is being stopped: %v", err)
	}
	if err := got.folder.Close(); err != nil {
		t.Fatal(err)
	}
}
