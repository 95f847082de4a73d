package directory

import (
	"context"
	"errors"
	"testing"
)

// TestSync writes entries and looks them up at once behind a Sync.
func TestSync(t *testing.T) {
	w := begin(t, Options{})
	for i, owner := range []string{"ann", "bob", "cid"} {
		w.set(owner, at("east", uint64(i+1)))
		if err := w.d.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, v, known := w.d.Locate(owner); !known || v != uint64(i+1) {
			t.Errorf("%s: version %d, known %v, right behind Sync", owner, v, known)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.d.Sync(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a Sync whose context has ended: %v", err)
	}
}
