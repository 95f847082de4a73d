package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider/split"
	"penstock/pipeline/report"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

// TestSplitExplainedForPeople: what a row rests on, what holds it and until when, and
// what became of each table.
func TestSplitExplainedForPeople(t *testing.T) {
	at := func(m, s int) time.Time { return time.Date(2026, 3, 1, 10, m, s, 0, time.UTC) }
	window := func(m, s int) control.Window { return control.Window{Start: at(m, s), End: at(m, s+10)} }
	rose, fell, until, limit, over := at(3, 0), at(1, 0), at(4, 0), 120.5, int64(-7)
	ratios := func(east float64) []control.SplitRatio {
		return []control.SplitRatio{{Site: "east", Share: east}, {Site: "west", Share: 1 - east}}
	}
	e := &topology.ExplainedSplit{
		Explanation: split.Explanation{
			Component: "web", Policy: "lp", Epoch: 3, Refused: true, Failed: 2,
			Replicas: []split.ReplicaView{{Site: "east", Allowed: true, ServiceUS: 4200, Samples: 300, Known: true, Load: 6}},
			Calls: []split.RowView{
				{
					FromSite: "east", To: "cart", Rate: 6, Samples: 300, Fast: true, WritesAt: "west",
					Sites: []split.ShareView{
						{Site: "east", Share: 0.3, Target: 0, NetworkUS: 500, Samples: 250, Measured: true, CostUS: 321_000, Rose: &fell, Fell: &rose, HeldUntil: &until},
						{Site: "west", Share: 0.7, Target: 1, NetworkUS: 62_500, CostUS: 83_000, Probe: 0.05, Rose: &rose, Fell: &fell, HeldUntil: &until},
						{Site: "north", NetworkUS: 90_000},
					},
				},
				{FromSite: "east", To: "search", Thin: true, Sites: []split.ShareView{{Site: "east", Share: 1}}},
				{FromSite: "west", To: "cart", Thin: true, Expired: true, Sites: []split.ShareView{{Site: "west", Share: 1, Target: 1}}},
			},
		},
		Window: window(3, 0),
		Callees: map[string][]split.ReplicaView{"cart": {
			{Site: "east", Allowed: true, ServiceUS: 320_500, Samples: 300, Known: true, Load: 6, Errors: 0.125, Capacity: &limit},
			{Site: "west", ServiceUS: 20_500, Load: 2},
		}},
		Table: &report.TableStatus{Scope: "web", Epoch: 3, Mode: control.Act, Window: window(2, 50), TTL: "10m", LeftS: &over, Routers: []report.RouterStatus{
			{By: "proxies", Target: "haproxy", Epoch: 3, Status: control.Failed, Reason: "no such backend"},
		}},
		Unreadable: 1,
	}
	for i := range 25 {
		e.History = append(e.History, topology.TableChange{
			Window: window(0, i), Epoch: uint64(i + 1), Mode: control.Act, Reason: control.Reason{Code: "LowerDelay", Evidence: map[string]any{
				"from": "east", "into": "west", "from_path_us": 321000.0, "into_path_us": 83000.0,
			}},
			Changes: []topology.RowChange{{FromSite: "east", To: "cart", Was: ratios(1), Is: ratios(0.5)}},
		})
	}
	e.History[0].Changes[0].Was = nil
	last := &e.History[24]
	last.Answers = []topology.TableAnswer{{By: "entry-1", Target: "router", Status: control.Done}, {By: "proxies", Status: control.Failed, Reason: "no such backend"}}
	e.History = append(e.History, topology.TableChange{Window: window(1, 0), Epoch: 26, Mode: control.Act, Reason: control.Reason{Code: "Renewed"}})
	show := func() string {
		t.Helper()
		var b strings.Builder
		if err := printExplainedSplit(&b, e); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	text := show()
	for _, want := range []string{
		"web: policy lp, as of the window 2026-03-01 10:03 to 10:03:10; table epoch 3 in mode act, of the window to 2026-03-01 10:03, its ttl of 10m is OVER router proxies (haproxy): epoch 3 failed no such backend",
		"the last table was refused: it is not sent again until it changes the last 2 tables failed or were refused",
		"east → cart: 6.00 calls a second, 300 calls in the windows that count on its way, fast: it leaves what got worse writes go to west, whatever the shares",
		"east 30.00 0.00 0.50 320.50 321.00 250 300 6.00 120.50 12.50 0.00 does not rise until 10:04",
		"west 70.00 100.00 ~62.50 ~20.50 83.00 0 0 2.00 none seen 0.00 5.00 not allowed does not fall until 10:04",
		"north 0.00 0.00 ~90.00 ? ? 0 0 ? ? ? 0.00",
		"east → search: 0.00 calls a second, 0 calls in the windows that count too few samples, or none in the last window: it stays as it is",
		"EXPIRED: too few samples for too long, it went back to its default",
		"network ms service and errors ms with further calls by targets ms of link", "web as a callee: site service and errors ms samples calls/s capacity/s errors % east 4.20 300 6.00 none seen 0.00",
		"its tables, as the bus has them: 26, 24 of them with other shares than the one before, 1 the first of their calls; the last 20 of all these",
		"epoch 25, act, LowerDelay: east 321.00 ms, west 83.00 ms east → cart: east 50 %, west 50 %; before: east 100 % router entry-1 (router): done router proxies: failed no such backend",
		"1 commands or outcomes on the bus cannot be read",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for n, here := range map[int]bool{5: false, 6: true, 26: false} {
		if got := strings.Contains(text, fmt.Sprintf("epoch %d, act, ", n)); got != here {
			t.Errorf("epoch %d is printed: %v, expected %v", n, got, here)
		}
	}
	e.History, e.Table, e.Refused, e.Failed, e.Unreadable = e.History[:1], nil, false, 0, 0
	if text := show(); !strings.Contains(text, "; no table: its calls go as routers send them without one") || !strings.Contains(text, "east 50 %, west 50 %; before: no table") || strings.Contains(text, "refused") {
		t.Errorf("without a table:\n%s", text)
	}
	*e = topology.ExplainedSplit{Explanation: split.Explanation{Component: "idle", Policy: "lp"}, Site: "east", Window: window(0, 0)}
	if text := show(); !strings.HasPrefix(text, "idle at east: policy lp, ") || !strings.HasSuffix(text, "it has neither calls nor replicas yet") {
		t.Errorf("of what is idle:\n%s", text)
	}
}
