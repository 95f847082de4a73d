package haproxy

import (
	"math"
	"testing"
	"time"

	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/routertest"
	"penstock/infra/shares"
	"penstock/schemas/control"
)

// TestFromTheBus sends commands over a bus: each is in force at HAProxy within a
// second, and answered; one that HAProxy can't follow is answered failed and changes
// nothing.
func TestFromTheBus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := routertest.StartBus(t)
	b.Follow(w.target, "router-haproxy")
	quickest := time.Hour // one may take longer where the machine stands still
	for epoch, split := range [][]float64{{1, 0, 0}, {0.25, 0.25, 0.5}, {0, 1, 0}} {
		sent := time.Now()
		b.Send(routertest.Table(uint64(epoch+1), split...), control.Act)
		o := b.Outcome()
		took := time.Since(sent)
		t.Logf("epoch %d is in force and answered after %v", o.Epoch, took.Round(time.Millisecond))
		if o.Epoch != uint64(epoch+1) || o.Status != control.Done || o.Target != "haproxy" {
			t.Errorf("after %v: %+v", took, o)
		}
		quickest = min(quickest, took)
		got := w.send(routertest.Link, 40)
		for i, site := range routertest.Sites {
			if off := math.Abs(float64(got[site]) - 40*split[i]); off > 2 || (got[site] == 0) != (split[i] == 0) { // turns don't begin anew
				t.Errorf("epoch %d: %v", o.Epoch, got)
			}
		}
	}
	if quickest > time.Second {
		t.Errorf("no table was in force and answered before %v", quickest)
	}
	bad := routertest.Table(4, 0.5, 0.5)
	bad.Rows[0].Ratios[1].Site = routertest.Absent
	b.Send(bad, control.Act)
	if o := b.Outcome(); o.Epoch != 4 || o.Status != control.Failed || o.Reason == "" {
		t.Errorf("%+v", o)
	}
	if got := w.send(routertest.Link, 10); got["north"] != 10 {
		t.Errorf("after a table that can't be followed: %v", got)
	}
}

// TestTwoTargetsOfABus: a HAProxy and a router of a process follow the same commands.
// Of a scope that HAProxy has no backend for it says that it is not concerned, which
// is no refusal; the other has its table in force. After a restart both are the same.
func TestTwoTargetsOfABus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := routertest.StartBus(t)
	local := shares.New(shares.Options{Name: "entry"})
	all := []func(){b.Follow(w.target, "router-haproxy"), b.Follow(router.Local(local), "router-entry")}
	foreign := w.foreign()
	others := routertest.Table(1, 0, 0, 1)
	others.From = "batch"
	mixed := routertest.Table(1, 0, 1, 0)
	mixed.Rows = append(mixed.Rows, shares.Row{FromSite: routertest.Absent, To: "far off", Ratios: []shares.Ratio{{Site: routertest.Absent, Share: 1}}})
	expect := func(haproxy control.Status, reason string) {
		t.Helper()
		for range all {
			o := b.Outcome()
			if o.Target == "haproxy" && (o.Status != haproxy || o.Reason != reason) || o.Target == "entry" && o.Status != control.Done {
				t.Errorf("%+v", o)
			}
		}
	}
	b.Send(others, control.Act)
	expect(control.Advised, control.NotConcerned)
	b.Send(mixed, control.Act)
	expect(control.Done, "")
	check := func() {
		t.Helper()
		link := routertest.Link
		if got := w.send(link, 10); got["north"] != 10 || local.Pick(link, "").Site != "north" {
			t.Errorf("calls of %+v: %v", link, got)
		}
		link.From = others.From
		if w.foreign() != foreign || local.Pick(link, "").Site != "west" {
			t.Errorf("calls of %+v go to %s; HAProxy has\n%s", link, local.Pick(link, "").Site, w.foreign())
		}
	}
	check()
	for _, stop := range all {
		stop()
	}
	local = shares.New(shares.Options{Name: "entry"})
	b.Follow(w.target, "router-haproxy")
	b.Follow(router.Local(local), "router-entry")
	check()
}
