package routertest

import (
	"context"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/router"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/infra/shares"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// Bus is a bus with commands of kind split, and what is answered to them.
type Bus struct {
	t        *testing.T
	client   *bus.Client
	outcomes *bus.Reader
}

// StartBus starts a bus of the test's own.
func StartBus(t *testing.T) *Bus {
	t.Helper()
	b := &Bus{t: t, client: bustest.Client(t, bustest.Start(t))}
	var err error
	if b.outcomes, err = b.client.Read(t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf("split")}, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.outcomes.Close)
	return b
}

// Send sends the command of a table, for 10 min.
func (b *Bus) Send(table shares.Table, mode control.Mode) {
	b.t.Helper()
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	body, err := control.Encode(&control.Command{
		Version: 1, Kind: control.Split, Scope: table.From, Epoch: table.Epoch, Mode: mode, TTL: "10m",
		Window: control.Window{Start: end.Add(-10 * time.Second), End: end}, Reason: control.Reason{Code: "LowerDelay"},
		Split: &control.SplitTable{Table: table.Rows},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.client.Publish(b.t.Context(), bus.Msg{Subject: subject.Commands("split", table.From), Data: body}); err != nil {
		b.t.Fatal(err)
	}
}

// Outcome waits for the next answer.
func (b *Bus) Outcome() *control.Outcome {
	b.t.Helper()
	o, err := control.DecodeOutcome(bustest.Take(b.t, b.outcomes, 1)[0].Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return o
}

// Follow keeps a target at the tables of the bus, by an executor of its own, and
// returns when it is ready. It goes on until stop, or the end of the test.
func (b *Bus) Follow(target router.Target, role string) (stop func()) {
	b.t.Helper()
	k, err := router.NewKeeper(router.KeeperOptions{Target: target, History: router.History(b.client)})
	if err != nil {
		b.t.Fatal(err)
	}
	// A machine that stands still is no reason to send a command again.
	x, err := executor.New(executor.Options{Client: b.client, Target: k, Role: role, Own: true, AckWait: time.Minute})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 2)
	go func() { done <- x.Run(ctx) }()
	go func() { done <- k.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				b.t.Error(err)
			}
		}
	}
	b.t.Cleanup(stop)
	for !x.Ready() {
		if err := clock.System().Sleep(b.t.Context(), time.Millisecond); err != nil {
			b.t.Fatal(err)
		}
	}
	return stop
}
