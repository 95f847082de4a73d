package whatif

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"penstock/consumers/decider"
	"penstock/consumers/decider/assign"
	"penstock/consumers/decider/placement"
)

// world is a random instance: sites, people, and windows of requests.
type world struct {
	sites    []Site
	capacity []int64
	windows  []Window
	bytes    []int64 // by window
	located  []int64 // requests of located users, by window
}

func drawWorld(t *rapid.T) *world {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	w := &world{}
	for i := range 2 + rng.IntN(3) {
		w.sites = append(w.sites, Site{Name: fmt.Sprintf("site-%d", i), Lat: rng.Float64()*100 - 50, Lon: rng.Float64()*200 - 100})
		w.capacity = append(w.capacity, 20_000+rng.Int64N(100_000))
	}
	people := 3 + rng.IntN(12)
	name := func(i int) string { return fmt.Sprintf("p%02d", i) }
	homes := make([][2]float32, people)
	for i := range homes {
		homes[i] = [2]float32{rng.Float32()*100 - 50, rng.Float32()*200 - 100}
	}
	lost := rng.IntN(people) // nobody knows where this one is
	for n := range 2 + rng.IntN(4) {
		b := newBuilder(n)
		bytes, located := int64(0), int64(0)
		for range 5 + rng.IntN(60) {
			user, owner := rng.IntN(people), rng.IntN(people)
			requests := 1 + rng.Int64N(20)
			writes := int64(0)
			if user == owner {
				writes = rng.Int64N(requests + 1)
			}
			size := requests * (1 + rng.Int64N(2000))
			written := size * writes / requests
			b.ask(name(user), name(owner), w.sites[rng.IntN(len(w.sites))].Name, requests, writes, size, written)
			bytes += size
			if user != lost {
				if rng.IntN(20) == 0 {
					homes[user] = [2]float32{rng.Float32()*100 - 50, rng.Float32()*200 - 100}
				}
				b.place(name(user), homes[user][0], homes[user][1])
				located += requests
			}
		}
		w.windows, w.bytes, w.located = append(w.windows, b.window()), append(w.bytes, bytes), append(w.located, located)
	}
	return w
}

func (w *world) frames() []*Frame {
	r := NewRecording(Options{Sites: w.sites, Weights: true})
	out := make([]*Frame, len(w.windows))
	for i := range w.windows {
		out[i] = r.Frame(w.windows[i])
	}
	return out
}

func (w *world) policy(t *rapid.T, name string) *placement.Policy {
	c := placement.Config{
		Policy: name, Alpha: 0.3, Beta: 0.7, Place: placement.Latest,
		Objective: placement.Objective{Overload: 100, PerGB: 1000, PerUSD: 1, Margin: 0.02},
	}
	for i, s := range w.sites {
		c.Sites = append(c.Sites, placement.Site{Name: s.Name, Lat: s.Lat, Lon: s.Lon, Capacity: w.capacity[i]})
	}
	p, err := placement.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var testObjective = Objective{Alpha: 0.3, Beta: 0.7, Overload: 100, PerGB: 1000, PerUSD: 1, Margin: 0.02}

// noting notes what a policy says its last plan is worth.
type noting struct {
	*placement.Policy
	plans []placement.Plan
}

func (n *noting) Decide(in decider.Input) decider.Output {
	out := n.Policy.Decide(in)
	n.plans = append(n.plans, n.LastPlan())
	return out
}

// TestPoliciesAndWhatIfAgreeOnTheObjective computes what plans are worth apart
// from the policies, and finds that optimal's are least.
func TestPoliciesAndWhatIfAgreeOnTheObjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		frames := w.frames()
		for _, name := range []string{placement.TMatch, placement.Optimal} {
			n := &noting{Policy: w.policy(t, name)}
			p := NewPlayer(NewPolicy(name, n), Play{Capacity: w.capacity, Objective: &testObjective, Least: &assign.Options{}})
			for i, f := range frames {
				m := p.Step(f)
				if !m.Decided || len(n.plans) != i+1 {
					t.Fatalf("%s, window %d: %d plans", name, i, len(n.plans))
				}
				said, got := n.plans[i], m.Value
				for _, c := range []struct {
					what       string
					said, ours float64
				}{
					{"weight", said.Weight, got.Weight},
					{"moving", said.Moving, got.Moving},
					{"overload", said.Overload, got.Over},
				} {
					if math.Abs(c.said-c.ours) > 1e-6*max(1, math.Abs(c.ours)) {
						t.Errorf("%s, window %d: the policy says %s %v, what-if finds %v", name, i, c.what, c.said, c.ours)
					}
				}
				if said.OverBytes != got.OverBytes {
					t.Errorf("%s, window %d: %d bytes over, the policy says %d", name, i, got.OverBytes, said.OverBytes)
				}
				least := float64(m.Least.Cost) / unit
				if !m.Least.Exact {
					t.Errorf("window %d: the least of %d owners is not exact", i, len(f.all))
				}
				if got.Total() < least-1e-6 {
					t.Errorf("%s, window %d: %v is less than the least %v", name, i, got.Total(), least)
				}
				if name == placement.Optimal && said.Exact && got.Total() > least+1e-6*max(1, least) {
					t.Errorf("window %d: optimal's %v is said to be exact, the least is %v", i, got.Total(), least)
				}
			}
		}
	})
}

// TestNothingIsLost: every byte and every located request is served by
// somebody under every strategy, and bytes are stored where they were written.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		frames := w.frames()
		play := Play{Capacity: w.capacity, Objective: &testObjective}
		for _, s := range []Strategy{
			AsServed(), NewPolicy("tmatch", w.policy(t, placement.TMatch)), NewClairvoyant(&testObjective, w.capacity, assign.Options{}),
		} {
			p := NewPlayer(s, play)
			for i, f := range frames {
				w.account(t, s.Name(), i, p.Step(f))
			}
		}
		others := NewOthers(w.sites, false, play)
		for i, f := range frames {
			for j, m := range others.Step(f) {
				w.account(t, others.Strategies()[j].Name(), i, m)
			}
		}
	})
}

func (w *world) account(t *rapid.T, name string, i int, m Measured) {
	sum := m.Unplaced
	for _, b := range m.Traffic {
		sum += b
	}
	if sum != w.bytes[i] {
		t.Errorf("%s, window %d: %d bytes, expected %d", name, i, sum, w.bytes[i])
	}
	if m.Located != w.located[i] {
		t.Errorf("%s, window %d: %d requests have a delay, %d users are located", name, i, m.Located, w.located[i])
	}
}

// TestWiderWindowsAreDecidedAtTheirEnds plays a policy whose window is three
// frames, of which one frame is missing.
func TestWiderWindowsAreDecidedAtTheirEnds(t *testing.T) {
	c := placement.Config{
		Sites:  []placement.Site{{Name: "east", Capacity: 9000}, {Name: "west", Lon: 18, Capacity: 9000}},
		Window: 3 * 3600e9,
	}
	policy, err := placement.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecording(Options{Sites: twoSites})
	p := NewPlayer(NewPolicy("tmatch", policy), Play{Capacity: []int64{3000, 3000}})
	var decided []int
	for _, n := range []int{0, 1, 2, 3, 4, 6, 7, 8} {
		m := p.Step(r.Frame(newBuilder(n).place("ann", 0, 1).ask("ann", "ann", "east", 1, 0, 1000, 0).window()))
		if m.Decided {
			decided = append(decided, n)
			if m.Case != "minimal" {
				t.Errorf("frame %d: case %q", n, m.Case)
			}
		}
	}
	// The window of frames 3 to 5 ends with 5, which is missing: it is decided
	// before frame 6 is served, which is told with no frame.
	if fmt.Sprint(decided) != "[2 8]" {
		t.Errorf("decided after frames %v, expected 2 and 8", decided)
	}
	if policy.Digest() == "" {
		t.Error("no digest")
	}
}
