package decider

import (
	"testing"

	"penstock/infra/bus"
	"penstock/schemas/control"
)

// TestKnown: a decider that serves is known before its first window is over, one of a
// replay once it has decided one, and no other kind is by it.
func TestKnown(t *testing.T) {
	known := func(w *world, k control.Kind, want bool) {
		t.Helper()
		if got, err := Known(w.ctx, w.client, k); err != nil || got != want {
			t.Errorf("%s is known: %v, %v; expected %v", k, got, err, want)
		}
	}
	w := newWorld(t, 2, bus.Serve)
	known(w, control.Placement, false)
	r := w.start(func(o *Options) { o.Purpose = bus.Serve })
	<-r.Ready()
	known(w, control.Placement, true)
	known(w, control.Split, false)
	r.stop()

	w = newWorld(t, 1, bus.Replay)
	r = w.start()
	<-r.Ready()
	known(w, control.Placement, false)
	w.close(0, row{0, "regular", 1})
	w.next()
	known(w, control.Placement, true)
	r.stop()
}
