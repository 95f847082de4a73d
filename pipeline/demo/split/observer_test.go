package split

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"penstock/consumers/panes"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

func command(epoch uint64, end time.Duration, east float64) *control.Command {
	return &control.Command{
		Version: 1, Kind: control.Split, Scope: "web", Epoch: epoch, Mode: control.Act, TTL: "10m0s",
		Window: control.Window{Start: after(end - width), End: after(end)}, Reason: control.Reason{Code: "LowerDelay"},
		Split: &control.SplitTable{
			Table:  []control.SplitRow{{FromSite: "east", To: "quotes", Ratios: []control.SplitRatio{{Site: "east", Share: east}, {Site: "west", Share: 1 - east}}}},
			Probes: []control.Probe{{FromSite: "east", To: "quotes", Site: "east", Share: 0.05}},
		},
	}
}

func TestCommandsAreInForceOnceApplied(t *testing.T) {
	var told []string
	o := newObserver(nil, sites, func(x *order, o *observer) {
		was, known := o.now(row, "east")
		told = append(told, fmt.Sprint(x.epoch, was, known))
	})
	done := func(epoch uint64, by string, status control.Status, at time.Duration) {
		t.Helper()
		o.Outcome(&control.Outcome{Version: 1, Kind: control.Split, Scope: "web", Epoch: epoch, Status: status, By: by, At: after(at)})
	}
	const s = time.Second
	o.Decision(&control.Decision{
		Version: 1, Kind: control.Split, Mode: control.Act, Window: control.Window{Start: t0, End: after(10 * s)},
		Reasons: []control.Reason{{Code: "LowerDelay", Count: 2}, {Code: "MaxStep"}}, Commands: []control.CommandRef{}, Operator: control.Operator{Mode: control.Act},
		Policy: "sha256:" + fmt.Sprintf("%064d", 1), State: "sha256:" + fmt.Sprintf("%064d", 2),
	})
	o.Command(command(1, 10*s, 0.5))
	done(2, "router-entry-east", control.Done, 22*s) // before its command is seen
	done(1, "router-entry-west", control.Done, 11*s) // another site's
	done(1, "router-entry-east", control.Done, 12*s)
	done(1, "router-entry-east", control.AlreadyApplied, 13*s)
	o.Command(command(2, 20*s, 0))
	done(3, "router-entry-east", control.Refused, 31*s)
	o.Command(command(3, 30*s, 1))
	r := o.record("greedy")
	for _, c := range []struct {
		decided, at time.Duration
		share       float64
		since       time.Duration
	}{
		{100 * s, 11 * s, 1, -1},
		{100 * s, 12 * s, 0.5, 12 * s},
		{100 * s, 21 * s, 0.5, 12 * s},
		{100 * s, 22 * s, 0, 22 * s},
		{10 * s, 100 * s, 0.5, 12 * s},
		{9 * s, 100 * s, 1, -1},
		{100 * s, 100 * s, 0, 22 * s},
	} {
		share, since := r.force(row, "east", after(c.decided), after(c.at))
		if share != c.share || c.since >= 0 != !since.IsZero() || c.since >= 0 && !since.Equal(after(c.since)) {
			t.Errorf("decided by %v, at %v: %v since %v, expected %v since %v", c.decided, c.at, share, since, c.share, c.since)
		}
	}
	if want := []string{"1 0 false", "2 0.5 true", "3 0 true"}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
	if o.decisions != 1 || o.reasons["LowerDelay"] != 2 || o.reasons["MaxStep"] != 1 || o.others[control.Refused] != 1 || o.last == nil {
		t.Errorf("%d decisions, reasons %v, other outcomes %v", o.decisions, o.reasons, o.others)
	}
	if p := r.orders[0].probes[row]["east"]; p != 0.05 {
		t.Errorf("probes %v", r.orders[0].probes)
	}
}

func TestWindowsAreReadByLink(t *testing.T) {
	table := window.NewTable(window.Delay)
	add := func(from, fromSite, to, toSite string, n, each int64) {
		var service, network window.Bins
		service.Add(each, n)
		network.Add(100, n)
		table.Append(t0.UnixMicro(), []string{from, fromSite, to, toSite}, []int64{n, 1, n * each, 0, 100 * n, 0}, service, network)
	}
	add("", "east", "web", "east", 10, 4000)
	add("web", "east", "quotes", "east", 3, 300_000)
	add("web", "east", "quotes", "west", 9, 3000)
	add("web", "west", "quotes", "west", 3, 5000)
	table.Sort()
	s := seenOf(&panes.Window{Start: t0.UnixMicro(), End: after(width).UnixMicro(), Tables: map[string]*window.Table{window.Delay.Name: table}})
	if share, ok := s.share(row, "east"); !ok || share != 0.25 {
		t.Errorf("share %v, %v", share, ok)
	}
	if _, ok := s.share(link{"orders", "east", "quotes"}, "east"); ok {
		t.Error("a link without calls has a share")
	}
	if ms, ok := s.replica("quotes", "west"); !ok || ms != 3.5 {
		t.Errorf("quotes at west take %v ms, %v", ms, ok)
	}
	if _, ok := s.replica("ledger", "west"); ok {
		t.Error("a replica without calls takes a time")
	}
	if c := s.calls[link{control.Outside, "east", "web"}]["east"]; c.requests != 10 || c.errors != 1 || c.networkN != 10 || c.network != 1000 || s.incomplete {
		t.Errorf("%+v", s)
	}
	if empty := seenOf(&panes.Window{Start: t0.UnixMicro(), End: after(width).UnixMicro(), Incomplete: []window.Interval{{}}}); len(empty.calls) != 0 || !empty.incomplete || !empty.end.Equal(after(width)) {
		t.Errorf("%+v", empty)
	}
}
