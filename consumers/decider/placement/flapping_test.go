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
// cooldown, never goes back inside one, and has at most one move unanswered.
func TestLoadThatSwingsMovesNobodyTwice(t *testing.T) {
	const owners, windows, delay = 40, 60, 3
	for _, wave := range []string{"square", "noisy"} {
		for _, cooldown := range []int{0, 2, 6} {
			t.Run(fmt.Sprintf("%s, cooldown %dh", wave, cooldown), func(t *testing.T) {
				r := rand.New(rand.NewPCG(11, uint64(cooldown)))
				p, err := New(Config{
					Sites: []Site{
						{Name: "east", Lon: 10, Capacity: 4000}, {Name: "west", Capacity: 4000}, {Name: "north", Lat: 30, Lon: 5, Capacity: 9000},
					},
					Alpha: 1, Cooldown: time.Duration(cooldown) * time.Hour,
				})
				if err != nil {
					t.Fatal(err)
				}
				site, changed, under := map[string]string{}, map[string]int{}, map[string]control.Move{}
				type answer struct {
					at   int
					move control.Move
				}
				var answers []answer
				changes := 0
				for n := 1; n <= windows; n++ {
					for len(answers) > 0 && answers[0].at == n {
						m := answers[0].move
						answers = answers[1:]
						p.Apply(&control.Outcome{Owner: m.Owner, Move: m.Version, Status: control.Done})
						delete(under, m.Owner)
						if was, ok := changed[m.Owner]; ok && n-was < cooldown {
							t.Errorf("window %d: %s changes again after %d windows", n, m.Owner, n-was)
						}
						site[m.Owner], changed[m.Owner] = m.To, n
						changes++
					}
					out := p.Decide(swing(n, owners, wave, site, r))
					for _, c := range out.Commands {
						for _, m := range c.Placement.Moves {
							if u, ok := under[m.Owner]; ok {
								t.Errorf("window %d: %v while %v has no outcome", n, m, u)
							}
							under[m.Owner] = m
							answers = append(answers, answer{n + delay, m})
						}
					}
				}
				if changes == 0 {
					t.Error("nothing ever moved")
				}
			})
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
