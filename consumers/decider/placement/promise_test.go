package placement

import (
	"fmt"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// promising is a policy with room for everybody west, and as much east as given.
func promising(t *testing.T, policy string, east int64) *Policy {
	p, err := New(Config{
		Policy: policy, Place: Latest, Alpha: 1, Objective: Objective{PerGB: 1},
		Sites: []Site{{Name: "east", Lon: 10, Capacity: east}, {Name: "west", Capacity: 1000}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// crowd is a window in which each of n owners has 10 B of traffic at a site, and
// is a user at a longitude: 9 is near east, 1 near west.
func crowd(w, first, n int, at string, lon float64, mode control.Mode) decider.Input {
	traffic, places := window.NewTable(window.Traffic), window.NewTable(window.Places)
	for i := range n {
		owner := fmt.Sprintf("o%03d", first+i)
		traffic.Append(hour(w), []string{owner, at}, []int64{1, 1, 0, 10, 1})
		places.Append(hour(w), []string{owner}, placeRow(hour(w), 0, lon, 1))
	}
	return decider.Input{
		Window:   control.Window{Start: time.UnixMicro(hour(w)).UTC(), End: time.UnixMicro(hour(w + 1)).UTC()},
		Tables:   map[string]*window.Table{"traffic": window.Merge(window.Traffic, traffic), "places": window.Merge(window.Places, places)},
		Operator: control.Operator{Mode: mode},
	}
}

// TestMovesThatKeepFailingBreakAPromise: three decided windows in a row in which
// at least ten moves, and more than half, ended badly. Restarts don't matter, and
// windows in which none ended don't either.
func TestMovesThatKeepFailingBreakAPromise(t *testing.T) {
	for _, policy := range []string{TMatch, Optimal} {
		for _, c := range []struct {
			name      string
			bad, done int // of the moves of a window
			broken    bool
		}{
			{"all fail", 10, 0, true}, {"nine fail", 9, 0, false}, {"half fail", 10, 10, false}, {"more than half", 11, 10, true},
		} {
			t.Run(policy+", "+c.name, func(t *testing.T) {
				p := promising(t, policy, 1000)
				var got []int
				for w := 1; w <= 8; w++ {
					// Each window brings new owners, who belong west.
					out := p.Decide(crowd(w, 100*w, 40, "east", 1, control.Act))
					if out.Broken != nil {
						got = append(got, w)
						if out.Broken.Code != "PromisesBroken" || out.Broken.Count != int64(c.bad) {
							t.Errorf("window %d: %+v", w, out.Broken)
						}
					}
					for i, m := range movesOf(out) {
						status := control.Failed
						switch {
						case i >= c.bad+c.done:
							continue
						case i >= c.bad:
							status = control.Done
						}
						p.Apply(&control.Outcome{Owner: m.Owner, Move: m.Version, Status: status})
					}
					p = again(t, p)
				}
				if want := map[bool]string{true: "[4 7]", false: "[]"}[c.broken]; fmt.Sprint(got) != want {
					t.Errorf("broken in windows %v, want %s", got, want)
				}
			})
		}
	}
}

func again(t *testing.T, p *Policy) *Policy {
	script := script{t: t, policy: p}
	script.restart()
	return script.policy
}

// TestASiteThatStaysOverBreaksAPromise: owners are moved out of a site that is
// over, the moves are done, and the site is over all the same.
func TestASiteThatStaysOverBreaksAPromise(t *testing.T) {
	for _, policy := range []string{TMatch, Optimal} {
		for _, c := range []struct {
			name string
			late int // owners that come to east in each window, of 40
			mode control.Mode
			want string
		}{
			// East takes 100 B.
			{"above by more than a fifth", 24, control.Act, "[4 7]"},
			{"above by a fifth", 12, control.Act, "[]"},
			{"advice promises nothing", 24, control.Advise, "[]"},
		} {
			t.Run(policy+", "+c.name, func(t *testing.T) {
				p := promising(t, policy, 100)
				var got []int
				for w := 1; w <= 8; w++ {
					in := crowd(w, 100*w, c.late, "east", 9, c.mode)
					rest := crowd(w, 100*w+50, 40-c.late, "west", 1, c.mode)
					for name, table := range in.Tables {
						in.Tables[name] = window.Merge(table.Rollup, table, rest.Tables[name])
					}
					out := p.Decide(in)
					if out.Broken != nil {
						got = append(got, w)
						if out.Broken.Scope != "east" || out.Reasons[0].Code != "PromisesBroken" {
							t.Errorf("window %d: %+v", w, out.Broken)
						}
					}
					for _, m := range movesOf(out) {
						p.Apply(&control.Outcome{Owner: m.Owner, Move: m.Version, Status: control.Done})
					}
					p = again(t, p)
				}
				if fmt.Sprint(got) != c.want {
					t.Errorf("broken in windows %v, want %s", got, c.want)
				}
			})
		}
	}
}
