package router_test

import (
	"testing"

	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/routertest"
	"penstock/infra/shares"
	"penstock/schemas/control"
)

// TestOverTheBus sends commands over a bus to a router, kills its process by
// stopping all of it, and starts another: the table is in force before the
// executor is ready, and each epoch has one outcome.
func TestOverTheBus(t *testing.T) {
	t.Parallel()
	b := routertest.StartBus(t)
	follow := func() (*shares.Router, func()) {
		r := shares.New(shares.Options{Sites: routertest.Sites})
		return r, b.Follow(router.Local(r), "router-entry-1")
	}
	expect := func(r *shares.Router, epoch uint64, status control.Status, site string) {
		t.Helper()
		if o := b.Outcome(); o.Scope != routertest.Frontend || o.Epoch != epoch || o.Status != status || o.Target != "router" {
			t.Errorf("outcome %+v", o)
		}
		if got := r.Pick(routertest.Link, "").Site; got != site {
			t.Errorf("epoch %d: requests go to %s, not %s", epoch, got, site)
		}
	}
	r, stop := follow()
	b.Send(routertest.Table(1, 0, 1, 0), control.Act)
	expect(r, 1, control.Done, "north")
	b.Send(routertest.Table(2, 0, 0, 1), control.Advise)
	expect(r, 2, control.Advised, "north")
	b.Send(routertest.Table(3, 0, 0, 1), control.Act)
	expect(r, 3, control.Done, "west")
	stop()
	r, _ = follow()
	if got := r.Pick(routertest.Link, ""); got.Site != "west" || got.Epoch != 3 {
		t.Errorf("after a restart requests go to %+v", got)
	}
	b.Send(routertest.Table(3, 1, 0, 0), control.Act) // done, which the bus knows
	b.Send(routertest.Table(3, 1, 0, 0), control.Act)
	expect(r, 3, control.AlreadyApplied, "west")
	b.Send(routertest.Table(2, 1, 0, 0), control.Act)
	expect(r, 2, control.Refused, "west")
}
