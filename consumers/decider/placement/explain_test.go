package placement

import (
	"testing"

	"penstock/consumers/decider"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// TestThePriceOfASiteTellsWhoMayBeThere: three owners of equal traffic belong
// east, which has room for two. Who has a friend west loses least by going: the
// price of east is above what it would gain there and below what the others do.
func TestThePriceOfASiteTellsWhoMayBeThere(t *testing.T) {
	p, err := New(Config{
		Policy: Optimal, Place: Latest, Alpha: 0.6, Beta: 0.4, Friends: []Friend{{Owner: "c", User: "w"}},
		Sites: []Site{{Name: "east", Lon: 10, Capacity: 20}, {Name: "west", Capacity: 100}},
	})
	if err != nil {
		t.Fatal(err)
	}
	traffic, places := window.NewTable(window.Traffic), window.NewTable(window.Places)
	for _, owner := range []string{"a", "b", "c"} {
		traffic.Append(hour(1), []string{owner, "east"}, []int64{1, 1, 0, 10, 5})
		places.Append(hour(1), []string{owner}, placeRow(hour(1), 0, 9, 1))
	}
	places.Append(hour(1), []string{"w"}, placeRow(hour(1), 0, 1, 1))
	out := p.Decide(decider.Input{
		Tables:   map[string]*window.Table{"traffic": window.Merge(window.Traffic, traffic), "places": window.Merge(window.Places, places)},
		Operator: control.Operator{Mode: control.Advise},
	})
	if moves := movesOf(out); len(moves) != 1 || moves[0].Owner != "c" {
		t.Fatalf("moves %v, want c's", moves)
	}
	for _, owner := range []string{"a", "b", "c"} {
		v, _ := p.Explain(owner)
		sites := v.(Explanation).Sites
		east, west := sites[0].Terms, sites[1].Terms
		if east.Price < 0.2 || east.Price > 0.6+0.02 || west.Price != 0 {
			t.Errorf("%s: the price of east is %v, of west %v; want 0.2 to 0.62, and 0", owner, east.Price, west.Price)
		}
		if east.Cost != sites[0].Weight+east.Moving+east.Price || west.Cost != sites[1].Weight+west.Moving {
			t.Errorf("%s: terms %+v and %+v don't add up", owner, *east, *west)
		}
		if c := owner == "c"; c != (west.Cost-west.Moving < east.Cost) {
			t.Errorf("%s: east costs %v, west %v", owner, east.Cost, west.Cost)
		}
	}
}
