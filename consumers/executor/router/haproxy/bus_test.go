package haproxy

import (
	"context"
	"math"
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

// TestFromTheBus sends commands over a bus: each is in force at HAProxy within a
// second, and answered; one that HAProxy can't follow is answered failed and changes
// nothing.
func TestFromTheBus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	outcomes, err := c.Read(t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf("split")}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer outcomes.Close()
	k, err := router.NewKeeper(router.KeeperOptions{Target: w.target, History: router.History(c)})
	if err != nil {
		t.Fatal(err)
	}
	x, err := executor.New(executor.Options{Client: c, Target: k, Role: "router-haproxy"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- x.Run(ctx) }()
	go func() { done <- k.Run(ctx) }()
	defer func() {
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}()
	for !x.Ready() {
		time.Sleep(time.Millisecond)
	}
	send := func(table shares.Table) {
		t.Helper()
		end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		body, err := control.Encode(&control.Command{
			Version: 1, Kind: control.Split, Scope: table.From, Epoch: table.Epoch, Mode: control.Act, TTL: "10m",
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
	outcome := func() *control.Outcome {
		t.Helper()
		o, err := control.DecodeOutcome(bustest.Take(t, outcomes, 1)[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for epoch, split := range [][]float64{{1, 0, 0}, {0.25, 0.25, 0.5}, {0, 1, 0}} {
		sent := time.Now()
		send(routertest.Table(uint64(epoch+1), split...))
		o := outcome()
		took := time.Since(sent)
		t.Logf("epoch %d is in force and answered after %v", o.Epoch, took.Round(time.Millisecond))
		if o.Epoch != uint64(epoch+1) || o.Status != control.Done || o.Target != "haproxy" || took > time.Second {
			t.Errorf("after %v: %+v", took, o)
		}
		got := w.send(routertest.Link, 40)
		for i, site := range routertest.Sites {
			if off := math.Abs(float64(got[site]) - 40*split[i]); off > 2 || (got[site] == 0) != (split[i] == 0) { // turns don't begin anew
				t.Errorf("epoch %d: %v", o.Epoch, got)
			}
		}
	}
	bad := routertest.Table(4, 0.5, 0.5)
	bad.Rows[0].Ratios[1].Site = routertest.Absent
	send(bad)
	if o := outcome(); o.Epoch != 4 || o.Status != control.Failed || o.Reason == "" {
		t.Errorf("%+v", o)
	}
	if got := w.send(routertest.Link, 10); got["north"] != 10 {
		t.Errorf("after a table that can't be followed: %v", got)
	}
}
