package pool

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// TestPeak: it rises at once, falls by e in 10 s if nothing confirms it, and follows lower
// answers by the time that has gone by, as Linkerd's does.
func TestPeak(t *testing.T) {
	t.Parallel()
	var k peak
	near := func(got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("peak %v, expected %v", got, want)
		}
	}
	k.observe(0, 1)
	near(k.now(0), 1)
	near(k.now(10*second), 1/math.E)
	k.observe(5*second, 0.2)
	w := math.Exp(-0.5)
	near(k.now(5*second), w+0.2*(1-w))
	k.observe(5*second, 3)
	near(k.now(5*second), 3)
}

// TestAnswers: a latency is that at the load, or at the nearest that is known.
func TestAnswers(t *testing.T) {
	t.Parallel()
	var a answers
	if a.at(3) != 0 {
		t.Error("something is known of nothing")
	}
	a.add(0, 1)
	a.add(9, 4) // 8 to 15
	a.add(1<<40, 9)
	for load, want := range map[int]float64{-1: 1, 0: 1, 1: 1, 3: 1, 4: 4, 12: 4, 20: 4, 1 << 30: 9} {
		if got := a.at(load); got != want {
			t.Errorf("at %d: %v, expected %v", load, got, want)
		}
	}
	a.add(9, 5)
	if got := a.at(8); math.Abs(got-4.2) > 1e-9 {
		t.Errorf("%v after 4 and 5", got)
	}
}

// many is a pool of servers a0 to a99 with 2 slots each.
func many(t *testing.T, o Options) *world {
	t.Helper()
	w := newWorld(t, o)
	list := make([]Server, 100)
	for i := range list {
		list[i] = Server{Name: fmt.Sprintf("a%02d", i), M: 2}
	}
	w.servers(list...)
	w.service = func(string, int64) float64 { return 1e6 }
	return w
}

// TestDrawnOfFew: when most lines are full the drawn policies still find those that are
// not, and say so only when all are.
func TestDrawnOfFew(t *testing.T) {
	t.Parallel()
	for _, policy := range []Policy{P2C, PeakEWMA, Prequal} {
		w := many(t, Options{Policy: policy, Queue: 1})
		for range 300 {
			if _, err := w.arrive(Request{}); err != nil {
				t.Fatalf("%s: %v", policy, err)
			}
		}
		if _, err := w.arrive(Request{}); err == nil {
			t.Errorf("%s: 301 have a place", policy)
		}
		for name := range w.pool.known {
			w.want(name, 1, 2)
		}
	}
}

// TestSeeds: what is drawn goes by the seed.
func TestSeeds(t *testing.T) {
	t.Parallel()
	for _, policy := range []Policy{P2C, PeakEWMA, Prequal} {
		var went [3]string
		for i, seed := range []uint64{1, 1, 2} {
			w := many(t, Options{Policy: policy, Seed: seed})
			for range 50 {
				p, _ := w.arrive(Request{})
				went[i] += p.Server
			}
		}
		if went[0] != went[1] || went[0] == went[2] {
			t.Errorf("%s: by seeds 1, 1 and 2:\n%s\n%s\n%s", policy, went[0], went[1], went[2])
		}
	}
}

// TestHot: of servers with many requests in flight the fewest decide, of others the
// latency does.
func TestHot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Policy: Prequal})
	w.servers(Server{Name: "a", M: 9}, Server{Name: "b", M: 9})
	teach := func(name string, seconds float64) {
		for load := range 9 {
			w.pool.known[name].answers.add(load, seconds)
		}
	}
	teach("a", 0.1)
	teach("b", 0.2)
	for i, want := range []string{"a", "b", "a", "b"} { // a is hot with one more
		if p, _ := w.arrive(Request{}); p.Server != want {
			t.Errorf("request %d goes to %s", i, p.Server)
		}
	}
}

// TestRemembered: servers that are gone keep their estimates up to a number.
func TestRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Abreast: true, Policy: A2})
	w.servers(Server{Name: "first", M: 1})
	w.load(time.Second, 40)
	known := w.pool.known["first"].model.Service(5000, false)
	w.servers(Server{Name: "other", M: 1})
	w.servers(Server{Name: "first", M: 1})
	if got := w.pool.known["first"].model.Service(5000, false); got != known {
		t.Errorf("estimated at %v, before it went %v", got, known)
	}
	for i := range remembered + 10 {
		w.servers(Server{Name: fmt.Sprint(i), M: 1})
	}
	w.until(w.now + 10*second)
	w.servers()
	if n := len(w.pool.known); n != remembered {
		t.Errorf("%d servers are remembered", n)
	}
}
