package topology

import (
	"context"
	"testing"
	"time"

	"penstock/consumers/executor/router/pull"
	"penstock/infra/shares"
	"penstock/producers/picker"
)

// TestPickersFollowTheSplit: what is put into force at a router reaches applications
// that ask it over HTTP, also over its restart with other servers and an epoch that
// stays.
func TestPickersFollowTheSplit(t *testing.T) {
	t.Parallel()
	table := func(epoch uint64, east, west float64) shares.Table {
		return shares.Table{From: "web", Epoch: epoch, Rows: []shares.Row{{FromSite: "east", To: "cart", Ratios: []shares.Ratio{
			{Site: "east", Share: east}, {Site: "west", Share: west},
		}, WritesAt: "west"}}}
	}
	put := func(r *shares.Router, each shares.Table) {
		t.Helper()
		if _, err := r.Put(t.Context(), each); err != nil {
			t.Fatal(err)
		}
	}
	start := func(r *shares.Router, listen, west string) (address string, stop func()) {
		t.Helper()
		server, err := pull.New(pull.Options{
			Listen: listen, Shares: r, WritesAt: map[string]string{"cart": "west"}, Components: map[string]map[string][]string{"cart": {"east": {"http://e1", "http://e2"}, "west": {west}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- server.Run(ctx) }()
		return server.Addr(), func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	r := shares.New(shares.Options{})
	put(r, table(1, 0.75, 0.25))
	address, stop := start(r, "127.0.0.1:0", "http://w1")
	p, err := picker.Open(t.Context(), picker.Options{URL: "http://" + address, Component: "web", Site: "east", Retry: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Ready(t.Context(), "cart"); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for range 80 {
		got[p.Pick("cart").Server]++
	}
	if got["http://e1"] != 30 || got["http://e2"] != 30 || got["http://w1"] != 20 {
		t.Errorf("picked %v", got)
	}
	if c := p.PickWrite("cart"); c.Server != "http://w1" {
		t.Errorf("a write goes to %+v", c)
	}
	eventually := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what, p.States())
			}
		}
	}
	put(r, table(2, 0, 1))
	eventually("the table does not arrive", func() bool { return p.Pick("cart").Epoch == 2 })
	stop()
	again := shares.New(shares.Options{})
	put(again, table(2, 0, 1))
	_, stop = start(again, address, "http://w2")
	defer stop()
	eventually("the servers do not arrive", func() bool { return p.Pick("cart").Server == "http://w2" })
	put(again, table(3, 1, 0))
	eventually("the next table does not arrive", func() bool { return p.Pick("cart").Epoch == 3 })
	// Without a table calls stay, but for those that write.
	if err := again.Clear(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	// In between it is picked by the old one, which is no longer known.
	eventually("the table stays", func() bool { c := p.Pick("cart"); return !c.Known && c.Epoch == 0 })
	if c := p.PickWrite("cart"); c.Server != "http://w2" || c.Known {
		t.Errorf("a write goes to %+v", c)
	}
	if c := p.Pick("cart"); c.Site != "east" || c.Known || c.Epoch != 0 {
		t.Errorf("a read goes to %+v", c)
	}
}
