package directory

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
)

// TestABusThatComesLater: a directory that starts before its bus knows nothing and
// is not ready, or knows what the snapshot says and is; then it follows the bus.
func TestABusThatComesLater(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	ok(t, err)
	address := l.Addr().String()
	ok(t, l.Close())
	patient, err := bus.Open(t.Context(), bus.Options{URL: "nats://" + address, Patient: true, Logger: zerolog.Nop(), Prefix: "P"})
	ok(t, err)
	t.Cleanup(func() { ok(t, patient.Close()) })
	file := filepath.Join(t.TempDir(), "directory")
	w := &world{t: t}
	w.run(Options{Client: bustest.Client(t, patient), Snapshot: file})
	select {
	case <-w.d.Ready():
		t.Error("ready without anything")
	default:
	}
	if _, connected := w.d.Freshness(); connected {
		t.Error("connected to nothing")
	}
	w.bus = bustest.Start(t, prefixed, func(o *bus.Options) { o.Listen = address })
	w.c = bustest.Client(t, w.bus)
	w.kv, err = locations.Open(context.Background(), w.c)
	ok(t, err)
	w.set("x", at("a", 1))
	w.follows("an entry")
	w.stop()

	w.bus.Suspend()
	again, err := bus.Open(t.Context(), bus.Options{URL: "nats://" + address, Patient: true, Logger: zerolog.Nop(), Prefix: "P"})
	ok(t, err)
	t.Cleanup(func() { ok(t, again.Close()) })
	w.run(Options{Client: bustest.Client(t, again), Snapshot: file})
	ready(t, w.d)
	if site, _, known := w.d.Locate("x"); site != "a" || !known {
		t.Error("the snapshot is not used")
	}
	if since, connected := w.d.Freshness(); connected || since == 0 {
		t.Errorf("%v old, connected %v", since, connected)
	}
	ok(t, w.bus.Resume())
	w.set("x", at("b", 2))
	w.follows("a change afterwards")
}
