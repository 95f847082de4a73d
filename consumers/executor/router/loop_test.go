package router_test

import (
	"context"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/routertest"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/shares"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// TestOverTheBus sends commands over a bus to a router, kills its process by
// stopping all of it, and starts another: the table is in force before the
// executor is ready, and each epoch has one outcome.
func TestOverTheBus(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	outcomes, err := c.Read(t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf("split")}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer outcomes.Close()
	send := func(epoch uint64, mode control.Mode, parts ...float64) {
		t.Helper()
		table := routertest.Table(epoch, parts...)
		end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		body, err := control.Encode(&control.Command{
			Version: 1, Kind: control.Split, Scope: table.From, Epoch: epoch, Mode: mode, TTL: "10m", Supersedes: epoch - 1,
			Window: control.Window{Start: end.Add(-10 * time.Second), End: end}, Reason: control.Reason{Code: "LowerDelay"},
			Split: &control.SplitTable{Table: table.Rows},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Publish(t.Context(), bus.Msg{Subject: subject.Commands("split", table.From), Data: body}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(r *shares.Router, epoch uint64, status control.Status, target, site string) {
		t.Helper()
		for _, m := range bustest.Take(t, outcomes, 1) {
			o, err := control.DecodeOutcome(m.Data)
			if err != nil || o.Scope != routertest.Frontend || o.Epoch != epoch || o.Status != status || o.Target != target {
				t.Errorf("outcome %+v, %v", o, err)
			}
		}
		if got := r.Pick(routertest.Link, "").Site; got != site {
			t.Errorf("epoch %d: requests go to %s, not %s", epoch, got, site)
		}
	}
	run := func() (*shares.Router, *executor.Executor, func()) {
		r := shares.New(shares.Options{Sites: routertest.Sites})
		k, err := router.NewKeeper(router.KeeperOptions{Target: router.Local(r), History: router.History(c)})
		if err != nil {
			t.Fatal(err)
		}
		x, err := executor.New(executor.Options{Client: c, Target: k, Role: "router-entry-1"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- x.Run(ctx) }()
		go func() { done <- k.Run(ctx) }()
		return r, x, func() {
			cancel()
			for range 2 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		}
	}
	r, _, stop := run()
	send(1, control.Act, 0, 1, 0)
	expect(r, 1, control.Done, "router", "north")
	send(2, control.Advise, 0, 0, 1)
	expect(r, 2, control.Advised, "", "north")
	send(3, control.Act, 0, 0, 1)
	expect(r, 3, control.Done, "router", "west")
	stop()
	r, x, stop := run()
	defer stop()
	for !x.Ready() {
		time.Sleep(time.Millisecond)
	}
	if got := r.Pick(routertest.Link, ""); got.Site != "west" || got.Epoch != 3 {
		t.Errorf("after a restart requests go to %+v", got)
	}
	send(3, control.Act, 1, 0, 0) // done, which the bus knows
	send(3, control.Act, 1, 0, 0)
	expect(r, 3, control.AlreadyApplied, "", "west")
	send(2, control.Act, 1, 0, 0)
	expect(r, 2, control.Refused, "", "west")
}
