package placement

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// emptyNorth is a window in which every owner is at north and belongs to south.
func emptyNorth(owners []string) (Config, decider.Input) {
	c := Config{Alpha: 1, Sites: []Site{{Name: "north", Lat: 60, Capacity: 1 << 40}, {Name: "south", Lat: -60, Capacity: 1 << 40}}}
	traffic, places := window.NewTable(window.Traffic), window.NewTable(window.Places)
	for _, o := range owners {
		traffic.Append(hour(1), []string{o, "north"}, []int64{1, 1, 0, 10, 5})
		places.Append(hour(1), []string{o}, placeRow(hour(1), -60, 0, 1))
	}
	return c, decider.Input{
		Window:   control.Window{Start: time.UnixMicro(hour(1)).UTC(), End: time.UnixMicro(hour(2)).UTC()},
		Tables:   map[string]*window.Table{"traffic": window.Merge(window.Traffic, traffic), "places": window.Merge(window.Places, places)},
		Operator: control.Operator{Mode: control.Act},
	}
}

func TestCommandsAreCut(t *testing.T) {
	for _, c := range []struct {
		name    string
		owner   func(i int) string
		n, most int
	}{
		{"at 1,000 moves", func(i int) string { return fmt.Sprintf("o%05d", i) }, 2500, 1000},
		{"at 512 KB", func(i int) string { return strings.Repeat("x", 1000) + fmt.Sprint(i+1000) }, 1000, 600},
		{"at 512 KB of escaped text", func(i int) string { return strings.Repeat("\x01", 200) + fmt.Sprint(i+1000) }, 1000, 600},
	} {
		t.Run(c.name, func(t *testing.T) {
			var owners []string
			for i := range c.n {
				owners = append(owners, c.owner(i))
			}
			config, in := emptyNorth(owners)
			p, err := New(config)
			if err != nil {
				t.Fatal(err)
			}
			last, total, full := "", 0, 0
			for _, command := range p.Decide(in).Commands {
				command.Version, command.Kind, command.TTL, command.Mode = 1, control.Placement, "24h0m0s", control.Act
				command.Window, command.Epoch = in.Window, 1
				body, err := control.Encode(command)
				if err != nil {
					t.Fatal(err)
				}
				if len(body) > 512<<10 || len(command.Placement.Moves) > control.MaxMoves || command.Scope != "south" {
					t.Errorf("a command of %s has %d B and %d moves", command.Scope, len(body), len(command.Placement.Moves))
				}
				if len(body) > 400<<10 || len(command.Placement.Moves) == control.MaxMoves {
					full++
				}
				if _, err := control.DecodeCommand(body); err != nil {
					t.Error(err)
				}
				for _, m := range command.Placement.Moves {
					if m.Owner <= last {
						t.Fatalf("%q comes after %q", m.Owner, last)
					}
					last = m.Owner
				}
				total += len(command.Placement.Moves)
			}
			if total != c.n || full == 0 {
				t.Errorf("%d moves of %d, %d full commands", total, c.n, full)
			}
		})
	}
}

func TestOutcomesNobodyWaitsForChangeNothing(t *testing.T) {
	config, in := emptyNorth([]string{"a", "b"})
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	p.Decide(in)
	send := func(owner string, move uint64, status control.Status) {
		p.Apply(&control.Outcome{Owner: owner, Move: move, Status: status})
	}
	send("a", 1, control.Done)
	before := p.Digest()
	send("a", 1, control.Done)
	send("a", 1, control.Failed)
	send("b", 2, control.Done)
	send("c", 1, control.Done)
	send("b", 1, "odd")
	if p.Digest() != before {
		t.Error("an outcome that nobody waits for changed the state")
	}
}

func TestOldHistoryIsForgotten(t *testing.T) {
	config, in := emptyNorth([]string{"a"})
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	p.Decide(in)
	p.Apply(&control.Outcome{Owner: "a", Move: 1, Status: control.Done})
	back := time.UnixMicro(hour(1)).UTC()
	at := func(n int) decider.Output {
		return p.Decide(decider.Input{
			Window:   control.Window{Start: time.UnixMicro(hour(n)).UTC(), End: time.UnixMicro(hour(n + 1)).UTC()},
			Operator: control.Operator{Mode: control.Advise, Rollback: &back},
		})
	}
	if out := at(1 + historyWindows); len(out.Commands) != 1 {
		t.Errorf("within the history: %v", printed(out))
	}
	out := at(2 + historyWindows)
	if len(out.Commands) != 0 || !strings.Contains(printed(out), "HistoryGone") {
		t.Errorf("beyond the history: %v", printed(out))
	}
	before := p.state.digest.set
	if p.state.recount(2); p.state.digest.set != before {
		t.Errorf("digest %v, counted anew %v", before, p.state.digest.set)
	}
}

func TestManyUnknownSitesAreSummedUp(t *testing.T) {
	config, in := emptyNorth([]string{"a"})
	traffic := window.NewTable(window.Traffic)
	for i := range 25 {
		traffic.Append(hour(1), []string{"a", fmt.Sprintf("elsewhere-%02d", i)}, []int64{1, 1, 0, 1, 1})
	}
	in.Tables["traffic"] = window.Merge(window.Traffic, traffic)
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	named, rest := 0, int64(0)
	for _, r := range p.Decide(in).Reasons {
		if r.Code == "UnknownSite" {
			if r.Scope != "" {
				named++
			} else {
				rest = r.Count
			}
		}
	}
	if named != 20 || rest != 5 {
		t.Errorf("%d sites named, %d requests at others", named, rest)
	}
}

// TestUnusableRowsAreCounted feeds what no aggregator should send.
func TestUnusableRowsAreCounted(t *testing.T) {
	config, in := emptyNorth([]string{"a"})
	traffic, places, asks := window.NewTable(window.Traffic), window.NewTable(window.Places), window.NewTable(window.Interactions)
	traffic.Append(hour(1), []string{"", "north"}, []int64{1, 1, 0, 1, 1})
	traffic.Append(hour(1), []string{"b", "north"}, []int64{1, 1, 0, -1, 1})
	traffic.Append(hour(1), []string{"c", "north"}, []int64{1, 1, 0, 1, 1})
	nan := int64(0x7fc00000)
	places.Append(hour(1), []string{"c"}, []int64{hour(1), nan, 0, 1, 0, 0, 0})
	places.Append(hour(1), []string{"d"}, []int64{window.NullInt, 0, 0, 0, 0, 0, 0})
	places.Append(hour(1), []string{""}, placeRow(hour(1), 0, 0, 1))
	asks.Append(hour(1), []string{"d", "c"}, []int64{-3})
	asks.Append(hour(1), []string{"", "c"}, []int64{3})
	in.Tables = map[string]*window.Table{"traffic": traffic, "places": places, "interactions": asks}
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	out := p.Decide(in)
	var bad int64
	for _, r := range out.Reasons {
		if r.Code == "BadRow" {
			bad += r.Count
		}
	}
	if bad != 6 {
		t.Errorf("%d rows, want 6: %s", bad, printed(out))
	}
}

// TestManyOwnersAndAnyNumberOfWorkers is large enough for blocks of owners,
// partitions of queues and batches of weights.
func TestManyOwnersAndAnyNumberOfWorkers(t *testing.T) {
	const owners = 12_000
	var want []string
	for _, workers := range []int{1, 2, 5} {
		r := rand.New(rand.NewPCG(3, 4))
		c := benchConfig(owners, r)
		c.Limits.Moves = 3000
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		p.SetWorkers(workers)
		var got []string
		for n := 1; n <= 2; n++ {
			out := p.Decide(benchWindow(owners, n, r))
			got = append(got, printed(out), p.Digest())
			for _, command := range out.Commands {
				for _, m := range command.Placement.Moves {
					p.Apply(&control.Outcome{Owner: m.Owner, Move: m.Version, Status: control.Done})
				}
			}
		}
		before := p.state.digest.set
		if p.state.recount(workers); p.state.digest.set != before {
			t.Errorf("%d workers: the digest is not that of the state", workers)
		}
		if want == nil {
			want = got
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%d workers: output %d differs", workers, i)
			}
		}
	}
}
