package main

import (
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider/placement"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

// TestExplanationForPeople: the objective's terms are there, what holds the owner
// and until when, and no move has another one's reason.
func TestExplanationForPeople(t *testing.T) {
	at := func(h int) time.Time { return time.Date(2026, 3, 1, h, 0, 0, 0, time.UTC) }
	move := func(h int, from, to string, version uint64, n int64, text string) topology.Decided {
		return topology.Decided{
			Window: control.Window{Start: at(h), End: at(h + 1)}, Outcome: control.Done,
			Move: control.Move{Owner: "ann", From: from, To: to, Version: version, Bytes: 12_000}, Reason: control.Reason{Code: "OverCapacity", Count: n, Text: text},
		}
	}
	last, cooldown, held := at(12), at(15), at(14)
	e := &topology.Explained{
		Explanation: placement.Explanation{
			Owner: "ann", Site: "west", Source: "moved", Version: 3, Pinned: true, Stored: 12_000, Traffic: 4_000_000, Case: "minimal",
			Stays: "Cooldown", CooldownUntil: &cooldown, Failures: 2, HeldUntil: &held,
			LastMove: &placement.MoveView{Window: last, Version: 3, Reason: "Improved"},
			Sites: []placement.SiteView{
				{Site: "east", Weight: 0.25, Terms: &placement.Terms{Moving: 0.02, Price: 0.5, Cost: 0.77}},
				{Site: "west", Weight: 0.4, Allowed: true, Terms: &placement.Terms{Price: 0.125, Cost: 0.525}},
				{Site: "north", Weight: 1, Allowed: true, Terms: &placement.Terms{Moving: 0.02, Cost: 1.02}},
			},
		},
		History: []topology.Decided{
			move(8, "east", "north", 1, 1, "1 out of a site over capacity"),
			move(9, "north", "east", 2, 7, "4 out of a site over capacity, 3 to where the plan costs less"),
			move(11, "east", "west", 3, 7, "4 out of a site over capacity, 3 to where the plan costs less"),
		},
	}
	var b strings.Builder
	if err := printExplained(&b, e); err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(b.String())
	text := strings.Join(lines, " ")
	for _, want := range []string{
		"west (moved there, version 3), pinned; 12.0 KB stored, 4.0 MB of traffic",
		"left it there: Cooldown cooldown until 2026-03-01 15:00",
		"last 2 moves failed or expired; no window up to the one that ends at 2026-03-01 14:00 moves it",
		"site E + moving + capacity = cost",
		"east 0.2500 0.0200 0.5000 0.7700 not allowed",
		"west 0.4000 0.0000 0.1250 0.5250 least",
		"north 1.0000 0.0200 0.0000 1.0200 its moves",
		"east → north, version 1, 12.0 KB, OverCapacity: done",
		"north → east, version 2, 12.0 KB, with others: 4 out of a site over capacity, 3 to where the plan costs less: done",
		"east → west, version 3, 12.0 KB, Improved: done",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	for i := range e.Sites {
		e.Sites[i].Terms = nil
	}
	b.Reset()
	if err := printExplained(&b, e); err != nil || strings.Contains(b.String(), "moving") {
		t.Errorf("%v, of tmatch:\n%s", err, b.String())
	}
}
