package split

import (
	"math"
	"testing"
)

// A window's mean that differs by chance moves the level a fifth of the way; one
// beyond chance, all of it.
func TestLevelsFollowWhatIsBeyondChance(t *testing.T) {
	p, err := New(Config{Sites: []Site{{Name: "east"}, {Name: "west"}}, Components: []Component{{Name: "cart"}}})
	if err != nil {
		t.Fatal(err)
	}
	s := p.state
	rep := &s.replicas[s.index["cart"]][0]
	see := func(window int64, us float64) float64 {
		s.windows = append([]int64{window}, s.windows[:min(len(s.windows), 4)]...)
		rep.history.push(sample{window: window, requests: 100, count: 100, sum: int64(100 * us)}, 5)
		rep.capacity.learn(10, us, 100, 30)
		p.levels()
		return rep.level
	}
	window := int64(0)
	for ; window < 20; window++ {
		see(window, 10_000*(1+0.1*float64(window%3-1)))
	}
	if got := see(window, 12_500); math.Abs(got-10_000) > 600 {
		t.Errorf("after one window of 12.5 ms among 9 to 11 ms: %v µs", got)
	}
	if got := see(window+1, 300_000); got < 50_000 {
		t.Errorf("after a window of 300 ms: %v µs", got)
	}
}

// What a replica is known to take is seen in three of six windows at least, and slow
// ones don't count.
func TestProvenLoad(t *testing.T) {
	c := newCapacity()
	for i, load := range []float64{12, 40, 41, 40, 42, 39} {
		if got := c.proven(); got != 0 {
			t.Errorf("after %d windows: %v", i, got)
		}
		c.learn(load, 10_000, 100, 30)
	}
	c.learn(90, 11_000, 100, 30)  // a burst
	c.learn(95, 500_000, 100, 30) // slow
	if got := c.proven(); got != 41 {
		t.Errorf("of 12 to 42, a burst of 90 and a slow one: %v", got)
	}
}

// A replica gets part of its room in one window, or half of its load more where no limit
// is known; a tenth of all calls at least; and any number if another is hopeless.
func TestRooms(t *testing.T) {
	p, err := New(Config{Sites: []Site{{Name: "east"}, {Name: "west"}, {Name: "north"}}, Components: []Component{{Name: "cart"}}})
	if err != nil {
		t.Fatal(err)
	}
	inf := math.Inf(1)
	j := 3 * p.state.index["cart"]
	e := &estimates{load: make([]float64, j+3), limit: make([]float64, j+3), service: make([]float64, j+3), known: make([]bool, j+3)}
	copy(e.load[j:], []float64{100, 60, 0})
	copy(e.limit[j:], []float64{inf, 100, inf})
	copy(e.service[j:], []float64{30_000, 10_000, 10_000})
	copy(e.known[j:], []bool{true, true, true})
	if got := p.rooms(e)[j:]; got[0] != 50 || got[1] != 16 || got[2] != 16 {
		t.Errorf("rooms %v, expected 50, 16 (a tenth of all: more than a quarter of 40) and 16", got)
	}
	e.service[j] = 310_000
	for n, room := range p.rooms(e)[j:] {
		if !math.IsInf(room, 1) {
			t.Errorf("site %d, beside a hopeless one: %v", n, room)
		}
	}
}
