package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// TestLoadThatSwingsMovesNobodyTwice is P35: square-wave and noisy load, every
// outcome three windows late. An owner's data changes its site at most once a
// cooldown, never goes back inside one, has at most one move unanswered, and is
// counted where it goes.
func TestLoadThatSwingsMovesNobodyTwice(t *testing.T) {
	for _, policy := range []string{TMatch, Optimal} {
		for _, wave := range []string{"square", "noisy"} {
			for _, cooldown := range []int{0, 2, 6} {
				t.Run(fmt.Sprintf("%s, %s, cooldown %dh", policy, wave, cooldown), func(t *testing.T) {
					swings(t, policy, wave, cooldown)
				})
			}
		}
	}
}

// change is a change of an owner's site.
type change struct {
	window   int
	from, to string
}

func swings(t *testing.T, policy, wave string, cooldown int) {
	const owners, windows, delay = 40, 60, 3
	r := rand.New(rand.NewPCG(11, uint64(cooldown)))
	p, err := New(Config{
		Policy: policy, Place: Latest, Alpha: 1, Cooldown: time.Duration(cooldown) * time.Hour,
		Sites: []Site{
			{Name: "east", Lon: 10, Capacity: 4000}, {Name: "west", Capacity: 4000}, {Name: "north", Lat: 30, Lon: 5, Capacity: 9000},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.nodes = 50 // equal owners and unequal loads: the last per mille would take long
	site, last, under := map[string]string{}, map[string]change{}, map[string]control.Move{}
	type answer struct {
		at   int
		move control.Move
	}
	var answers []answer
	for n := 1; n <= windows; n++ {
		for len(answers) > 0 && answers[0].at == n {
			m := answers[0].move
			answers = answers[1:]
			p.Apply(&control.Outcome{Owner: m.Owner, Move: m.Version, Status: control.Done})
			delete(under, m.Owner)
			if was, ok := last[m.Owner]; ok && n-was.window < cooldown {
				t.Errorf("window %d: %s goes %s → %s after %+v", n, m.Owner, m.From, m.To, was)
			}
			site[m.Owner], last[m.Owner] = m.To, change{n, m.From, m.To}
		}
		out := p.Decide(swing(n, owners, wave, site, r))
		for _, m := range movesOf(out) {
			if u, ok := under[m.Owner]; ok {
				t.Errorf("window %d: %v while %v has no outcome", n, m, u)
			}
			under[m.Owner] = m
			answers = append(answers, answer{n + delay, m})
		}
		if policy == Optimal {
			countedWhereTheyGo(t, p, site, under)
		}
	}
	if len(last) == 0 {
		t.Error("nothing ever moved")
	}
}

// countedWhereTheyGo compares what is expected of sites with the traffic of the
// owners that are there or under way to there.
func countedWhereTheyGo(t *testing.T, p *Policy, site map[string]string, under map[string]control.Move) {
	t.Helper()
	want := map[string]int64{}
	var sites []SiteView
	for owner, at := range site {
		if m, ok := under[owner]; ok {
			at = m.To
		}
		v, _ := p.Explain(owner)
		sites = v.(Explanation).Sites
		want[at] += v.(Explanation).Traffic
	}
	for _, s := range sites {
		if s.Expected != want[s.Site] {
			t.Errorf("%s: %d B expected, owners there and under way have %d", s.Site, s.Expected, want[s.Site])
		}
	}
}

// swing is a window of the given load; owners are served where their data is.
func swing(n, owners int, wave string, site map[string]string, r *rand.Rand) decider.Input {
	traffic, places := window.NewTable(window.Traffic), window.NewTable(window.Places)
	for i := range owners {
		owner := fmt.Sprintf("o%02d", i)
		if site[owner] == "" {
			site[owner] = "east"
		}
		volume := int64(50)
		switch {
		case wave == "noisy":
			volume = 10 + r.Int64N(400)
		case n/4%2 == 0:
			volume = 250
		}
		traffic.Append(hour(n), []string{owner, site[owner]}, []int64{1, 1, 0, volume, 1})
		places.Append(hour(n), []string{owner}, placeRow(hour(n), 0, 8+r.Float64()*4, 1))
	}
	return decider.Input{
		Window:   control.Window{Start: time.UnixMicro(hour(n)).UTC(), End: time.UnixMicro(hour(n + 1)).UTC()},
		Tables:   map[string]*window.Table{"traffic": window.Merge(window.Traffic, traffic), "places": window.Merge(window.Places, places)},
		Operator: control.Operator{Mode: control.Act},
	}
}

// TestAWeekWithoutDataMovesNothing is P34: a week of windows that are empty, or
// too thin, is no traffic of 0. Nothing moves, everybody stays known, and the
// reason is given each time.
func TestAWeekWithoutDataMovesNothing(t *testing.T) {
	for _, policy := range []string{TMatch, Optimal} {
		t.Run(policy, func(t *testing.T) {
			p, err := New(Config{
				Policy: policy, Place: Latest, Alpha: 1, MinRequests: 5,
				Sites: []Site{{Name: "east", Lon: 10, Capacity: 4000}, {Name: "west", Capacity: 4000}, {Name: "north", Lat: 30, Capacity: 9000}},
			})
			if err != nil {
				t.Fatal(err)
			}
			r, site := rand.New(rand.NewPCG(1, 2)), map[string]string{}
			for _, m := range movesOf(p.Decide(swing(4, 40, "square", site, r))) {
				p.Apply(&control.Outcome{Owner: m.Owner, Move: m.Version, Status: control.Done})
			}
			before := p.state.digest.set
			for n := 5; n < 5+7*24; n++ {
				in := swing(n, 0, "square", site, r)
				if n%2 == 0 {
					in.Tables = nil
				}
				out := p.Decide(in)
				if len(out.Commands) > 0 || out.Case != "" || len(out.Reasons) != 1 || out.Reasons[0].Code != "InsufficientSamples" {
					t.Fatalf("window %d\n%s", n, printed(out))
				}
				if p.state.digest.set != before {
					t.Fatalf("window %d: what is known has changed", n)
				}
			}
			thin := swing(200, 4, "square", site, r) // four requests, five are needed
			if out := p.Decide(thin); len(out.Commands) > 0 || out.Reasons[0].Code != "InsufficientSamples" {
				t.Errorf("a thin window\n%s", printed(out))
			}
			if out := p.Decide(swing(201, 40, "square", site, r)); out.Case == "" {
				t.Errorf("data again\n%s", printed(out))
			}
		})
	}
}
