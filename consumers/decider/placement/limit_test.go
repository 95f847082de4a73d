package placement

import (
	"math/rand/v2"
	"testing"

	"penstock/consumers/decider/assign"
)

// TestADroppedPlanKeepsToTheLimits: a solution that is worse than to move nobody
// is dropped but for those who must leave their site, and these are under the
// limits like any.
func TestADroppedPlanKeepsToTheLimits(t *testing.T) {
	const owners, most = 12, 3
	p, err := New(Config{
		Policy: Optimal, Place: Latest, Alpha: 1, Limits: Limits{Moves: most},
		Sites: []Site{
			{Name: "east", Lon: 10, Capacity: 1 << 40}, {Name: "west", Capacity: 1 << 40}, {Name: "north", Lat: 60, Lon: 5, Capacity: 1 << 40},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	site := map[string]string{}
	for i := range owners {
		site[string([]byte{'o', '0' + byte(i/10), '0' + byte(i%10)})] = []string{"east", "north"}[i%2]
	}
	in := swing(1, owners, "square", site, rand.New(rand.NewPCG(1, 2)))
	p.learn(in.Tables)
	s := p.state
	s.now = in.Window.End.UnixMicro()
	plan := &plan{t: p, in: &in, reasons: &reasons{optimal: true}}
	plan.evacuate([]string{"north"})
	plan.classify()
	p.want = extend(p.want, s.names.len(), 0)
	o := &optimiser{p: plan}
	o.sort()
	o.solve()
	// Everybody far away from where they ask, as no search would leave it.
	o.solution.Exact, o.solution.Method = false, assign.MethodFlow
	for i := range o.solution.Site {
		o.solution.Site[i] = p.siteIndex["west"] - 1
	}
	o.adopt()
	o.keepWithinRoom()
	o.guard()
	if len(plan.picks) != most {
		t.Errorf("%d moves, the limit is %d", len(plan.picks), most)
	}
	for _, m := range plan.picks {
		if s.siteName(s.site[m.id]) != "north" || m.why != Evacuating {
			t.Errorf("%s is moved: %s", s.names.at(m.id), m.why)
		}
	}
	held := 0
	for id := range s.why {
		if s.why[id] == MoveLimit {
			held++
		}
	}
	if held != owners/2-most {
		t.Errorf("%d held by the limit, expected %d", held, owners/2-most)
	}
}
