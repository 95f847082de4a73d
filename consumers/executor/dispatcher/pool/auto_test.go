package pool

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestWorkIsToldFromWaiting: of times that are a request's own part and so much for each
// other one there, times the server's factor, the zone's model finds the parts, and each
// server's factor.
func TestWorkIsToldFromWaiting(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(1, 1))
	k := newWork()
	factors := []float64{0.7, 1, 2}
	servers := make([]*server, len(factors))
	for i := range servers {
		servers[i] = &server{m: 8, auto: speed{f: 1}}
	}
	own := func(j *job) float64 {
		w := 0.02 + 1e-6*j.size
		if j.dynamic {
			w += 0.05
		}
		return w
	}
	for range 6000 {
		i := draw.IntN(len(servers))
		j := &job{size: 1e5 * draw.ExpFloat64(), dynamic: draw.IntN(3) == 0, found: draw.IntN(8)}
		k.learn(servers[i], j, factors[i]*(own(j)+0.03*float64(j.found))*math.Exp(0.2*draw.NormFloat64()))
	}
	// Factors are known up to one that all have in common.
	unit := servers[1].auto.f / factors[1]
	for i, s := range servers {
		if got := s.auto.f / unit; math.Abs(got/factors[i]-1) > 0.2 {
			t.Errorf("factor %v, expected %v", got, factors[i])
		}
	}
	for _, j := range []*job{{size: 1e4}, {size: 1e5}, {size: 1e4, dynamic: true}, {size: 3e5, dynamic: true}} {
		if got := k.of(j) * unit; math.Abs(got/own(j)-1) > 0.3 {
			t.Errorf("work of %v bytes, dynamic %v: %v, expected %v", j.size, j.dynamic, got, own(j))
		}
	}
	if got := k.others * unit; math.Abs(got/0.03-1) > 0.2 {
		t.Errorf("each other one adds %v, expected 0.03", got)
	}
}

// TestFactorsStayWhereTheyAre: times that vary as an exponential do have a mean logarithm
// far below the logarithm of their mean. Factors do not follow that, request by request,
// until nothing tells servers apart any more.
func TestFactorsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(2, 2))
	k := newWork()
	servers := []*server{{m: 8, auto: speed{f: 1}}, {m: 8, auto: speed{f: 1}}}
	for range 500_000 {
		i := draw.IntN(2)
		k.learn(servers[i], &job{size: 1e5, found: draw.IntN(8)}, float64(1+2*i)*(0.02+0.01*float64(draw.IntN(8)))*draw.ExpFloat64())
	}
	slow, fast := servers[1].auto.f, servers[0].auto.f
	if middle := math.Sqrt(slow * fast); middle < 0.5 || middle > 2 || slow/fast < 2 || slow/fast > 4.5 {
		t.Errorf("factors %v and %v, expected the second three times the first, around 1", fast, slow)
	}
}

// TestShelves hold what was put in and not taken out, the earliest due first.
func TestShelves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h shelf
		var all []*job
		for id := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(all) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				h.remove(all[i].place)
				all = slices.Delete(all, i, i+1)
			} else {
				j := &job{id: uint64(id), due: rapid.Int64Range(0, 9).Draw(t, "due"), work: 1}
				h.push(j)
				all = append(all, j)
			}
			if len(h.jobs) != len(all) || math.Abs(h.work-float64(len(all))) > 1e-9 {
				t.Fatalf("%d jobs of work %v, expected %d", len(h.jobs), h.work, len(all))
			}
			for i, j := range h.jobs {
				if j.place != i || earlier(j, h.jobs[0]) {
					t.Fatalf("job %d at %d thinks it is at %d; the first is due at %d", j.id, i, j.place, h.jobs[0].due)
				}
			}
		}
	})
}

// TestMarks are a set.
func TestMarks(t *testing.T) {
	t.Parallel()
	var m marks
	for _, l := range []int{191, 0, 64, 63, 100} {
		m.set(l, true)
	}
	m.set(100, false)
	if got := slices.Collect(m.each); !slices.Equal(got, []int{0, 63, 64, 191}) {
		t.Errorf("%v", got)
	}
	for _, c := range []struct {
		penalty, work float64
		want          int
	}{{1, 1, levels / 2}, {2, 1, levels/2 + 8}, {1, 2, levels/2 - 8}, {0, 1, 0}, {1e15, 1e-9, levels - 1}} {
		if got := levelOf(c.penalty, c.work); got != c.want {
			t.Errorf("level of %v/%v: %d, expected %d", c.penalty, c.work, got, c.want)
		}
	}
}

// TestAutoTakesWhatIsMostWorth: of what waits for the zone, a free slot goes to the request
// that costs most to be late, wherever it was queued.
func TestAutoTakesWhatIsMostWorth(t *testing.T) {
	t.Parallel()
	p, err := New(Options{Policy: Auto, Classes: []Class{{Limit: 1, Penalty: 1}, {Limit: 1, Penalty: 8}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.SetServers(0, []Server{{Name: "a", M: 1}, {Name: "b", M: 1}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	running := map[string]uint64{}
	var starts []Start
	for id := uint64(1); id <= 8; id++ {
		class := 0
		if id >= 7 {
			class = 1
		}
		if _, starts, err = p.Arrive(int64(id), Request{ID: id, Class: class, Size: 1000}, nil); err != nil {
			t.Fatal(err)
		}
		for _, s := range starts {
			running[s.Server] = s.ID
		}
	}
	var order []uint64
	for at := int64(second); len(running) > 0; at += second / 10 {
		for _, name := range []string{"a", "b"} {
			id, some := running[name]
			if !some {
				continue
			}
			delete(running, name)
			for _, s := range p.Done(at, id, Outcome{OK: true, Service: 0.1}, nil) {
				running[s.Server] = s.ID
				order = append(order, s.ID)
			}
		}
	}
	if !slices.Equal(order, []uint64{7, 8, 3, 4, 5, 6}) {
		t.Errorf("started in the order %v, expected those of the greater penalty first", order)
	}
}

// TestWorkOfOneKind: where all requests are alike, what their parts have in common can't be
// told apart; it is estimated well all the same, and after a week as after an hour.
func TestWorkOfOneKind(t *testing.T) {
	t.Parallel()
	k, s := newWork(), &server{}
	s.auto.f = 1
	j := &job{size: 1000, dynamic: true, found: 8}
	for n := range 60_000 {
		k.learn(s, j, 0.05*(1+0.4*float64(n*7919%101-50)/50))
		for i := range k.p {
			for l := range k.p {
				if v := k.p[i][l]; !(math.Abs(v) <= mostUnknown) || i == l && v < 0 {
					t.Fatalf("request %d: %v", n, k.p)
				}
			}
		}
	}
	if took := k.time(0, s, k.of(j), j.found); math.Abs(took-0.05) > 0.01 {
		t.Errorf("estimated %v s, expected 0.05", took)
	}
}
