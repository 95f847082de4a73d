package line

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// long is a line and its plain form with n items, made from the seed.
func long(t *testing.T, d Discipline, n int, r *rand.Rand) (l *Line, p *Plain, now int64, id uint64) {
	t.Helper()
	l, p, now = New(d), NewPlain(d), 1_790_000_000_000_000_000
	for range n {
		id++
		it := some(r, id, now, int64(n)*ms)
		if got, want := l.Insert(now, it), p.Insert(now, it); got.Index != want.Index {
			t.Fatalf("%d goes to %d, plainly %d", id, got.Index, want.Index)
		}
		now += r.Int64N(2 * ms)
	}
	return l, p, now, id
}

func some(r *rand.Rand, id uint64, now, span int64) Item {
	it := Item{
		ID: id, Arrived: now, Deadline: now + r.Int64N(span),
		Penalty: []float64{0.1, 1, 7}[r.IntN(3)], Service: r.ExpFloat64() / 1000,
	}
	if size := 10_000 * r.ExpFloat64(); r.IntN(3) == 0 {
		it.Dynamic = size
	} else {
		it.Static = size
	}
	return it
}

// TestLong: lines of thousands, whose blocks are split, joined and of other limits,
// say what the plain ones say, while they grow and while they shrink.
func TestLong(t *testing.T) {
	t.Parallel()
	for _, d := range disciplines {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(d), 7))
			l, p, now, id := long(t, d, 2000, r)
			w := Wait{Bias: 0.002, PerStatic: 1e-7, PerDynamic: 1.5e-7}
			same := func() {
				for range 3 * patience {
					it := some(r, id+1, now, 2000*ms)
					after, before := l.Increase(now, it, w)
					wantAfter, wantBefore := p.Increase(now, it, w)
					near(t, "after", after, wantAfter, wantAfter)
					near(t, "before", before, wantBefore, wantBefore)
					near(t, "spread", l.Spread(now, it), p.Spread(now, it), 0)
				}
				potential := p.Potential(now, w)
				near(t, "potential", l.Potential(now, w), potential, potential)
			}
			same()
			for l.Len() > 0 {
				got, _ := l.Pop(now)
				if want, _ := p.Pop(now); got != want {
					t.Fatalf("took %v, plainly %v", got, want)
				}
				now += r.Int64N(2 * ms)
				if l.Len() > 200 && r.IntN(3) == 0 {
					k := p.items[r.IntN(len(p.items))].ID
					if got, ok := l.Remove(k); !ok || got.ID != k {
						t.Fatalf("removed %v for %d", got, k)
					}
					p.Remove(k)
				}
				if l.Len()%500 == 0 {
					w.PerStatic *= 1.03
					same()
				}
			}
			if static, dynamic, service, a, b := l.Sums(); static != 0 || dynamic != 0 || service != 0 || a+b != 0 {
				t.Errorf("nobody waits, and they are %v, %v, %v, %d, %d", static, dynamic, service, a, b)
			}
		})
	}
}

// TestAges: a line that never empties is as exact after many requests as at first,
// though their bytes are no whole numbers.
func TestAges(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	l, p, now, id := long(t, Deadline, 300, r)
	for range 20_000 {
		id++
		it := some(r, id, now, 300*ms)
		it.Static *= math.Pow(10, float64(r.IntN(9)-4))
		l.Insert(now, it)
		l.Pop(now)
		now += ms
		l.Spread(now, it)
	}
	p.items = nil
	l.Each(func(it Item) bool { p.items = append(p.items, it); return true })
	w := Wait{Bias: -0.001, PerStatic: 1e-7, PerDynamic: 1.5e-7}
	it := some(r, id+1, now, 300*ms)
	after, before := l.Increase(now, it, w)
	wantAfter, wantBefore := p.Increase(now, it, w)
	static, dynamic, service, _, _ := l.Sums()
	wantStatic, wantDynamic, wantService, _, _ := p.Sums()
	for what, x := range map[string][2]float64{
		"after": {after, wantAfter}, "before": {before, wantBefore},
		"static": {static, wantStatic}, "dynamic": {dynamic, wantDynamic}, "service": {service, wantService},
		"spread": {l.Spread(now, it), p.Spread(now, it)},
	} {
		if math.Abs(x[0]-x[1]) > 1e-12*math.Abs(x[1]) {
			t.Errorf("%s is %v, plainly %v", what, x[0], x[1])
		}
	}
}

// TestAnyInput: whatever is put in, a line goes on, serves like the plain one, and
// its answers are numbers; the plain one's, unless what is put in is beyond all
// measure, as a byte that takes 30 million years.
func TestAnyInput(t *testing.T) {
	t.Parallel()
	numbers := []float64{math.NaN(), math.Inf(-1), -1, 0, 1e-300, 0.5, 1, 1e300, math.Inf(1)}
	instants := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 1_790_000_000_000_000_000, math.MaxInt64}
	for _, d := range append(slices.Clone(disciplines), 99) {
		r := rand.New(rand.NewPCG(5, uint64(d)))
		some := len(numbers)
		number := func() float64 { return numbers[r.IntN(some)] }
		instant := func() int64 { return instants[r.IntN(len(instants))] }
		item := func(id uint64) Item {
			return Item{id, instant(), instant(), number(), number(), number(), number()}
		}
		l, p := New(d), NewPlain(min(d, Cost+1)%(Cost+1))
		for _, q := range []queue{l, p} {
			q.SetDecay(math.NaN())
			q.SetAbreast(-3)
		}
		for k := range 3000 {
			measured := k < 1500
			if some = len(numbers); measured {
				some -= 2
			}
			it, now := item(uint64(r.IntN(300))), instant()
			if got, want := l.Insert(now, it), p.Insert(now, it); got.Index != want.Index {
				t.Fatalf("%s: %v at %d goes to %d, plainly %d", d, it, now, got.Index, want.Index)
			}
			if k%4 == 3 {
				now := instant()
				got, ok := l.Pop(now)
				if want, wantOK := p.Pop(now); got != want || ok != wantOK {
					t.Fatalf("%s: took %v, plainly %v", d, got, want)
				}
			}
			x, w, now := item(1000), Wait{number(), number(), number()}, instant()
			if measured {
				w.Bias = max(w.Bias, -1)
			}
			after, before := l.Increase(now, x, w)
			wantAfter, wantBefore := p.Increase(now, x, w)
			for what, v := range map[string][2]float64{
				"after": {after, wantAfter}, "before": {before, wantBefore},
				"potential": {l.Potential(now, w), p.Potential(now, w)},
				"spread":    {l.Spread(now, x), p.Spread(now, x)},
			} {
				if !(v[0] >= 0) || math.IsInf(v[0], 0) || measured && math.Abs(v[0]-v[1]) > 1e-5*(1+v[1]) {
					t.Fatalf("%s: %s is %v, plainly %v", d, what, v[0], v[1])
				}
			}
		}
		if l.Len() != p.Len() || d.String() == "" {
			t.Fatalf("%s: %d wait, plainly %d", d, l.Len(), p.Len())
		}
	}
}

// TestPutInTwice: a request that is put in again is in the line once, at its new place.
func TestPutInTwice(t *testing.T) {
	t.Parallel()
	for _, q := range []queue{New(Deadline), NewPlain(Deadline)} {
		q.Insert(0, Item{ID: 1, Deadline: 10, Static: 5})
		q.Insert(0, Item{ID: 2, Deadline: 20, Static: 3})
		if place := q.Insert(0, Item{ID: 1, Deadline: 20, Static: 7}); place != (Place{1, 3, 0}) {
			t.Errorf("the second time it goes to %v", place)
		}
		if static, _, _, n, _ := q.Sums(); static != 10 || n != 2 {
			t.Errorf("%v bytes of %d", static, n)
		}
		for _, id := range []uint64{2, 1} {
			if it, ok := q.Pop(0); !ok || it.ID != id {
				t.Errorf("took %v, not %d", it, id)
			}
		}
		if _, ok := q.Pop(0); ok {
			t.Error("a request is served twice")
		}
	}
}

// TestNothingAllocated: at a line that stays as long as it is nothing is allocated.
func TestNothingAllocated(t *testing.T) {
	for _, d := range disciplines {
		r := rand.New(rand.NewPCG(8, uint64(d)))
		l, _, now, id := long(t, d, 1000, r)
		w := Wait{Bias: 0.002, PerStatic: 1e-7, PerDynamic: 1.5e-7}
		step := func() {
			id++
			it := some(r, id, now, 1000*ms)
			w.PerStatic = 1e-7 * (1 + r.Float64()/100)
			for range 2 * patience {
				l.Increase(now, it, w)
			}
			l.Potential(now, w)
			l.Spread(now, it)
			l.Insert(now, it)
			l.Pop(now)
			now += ms
		}
		for range 1000 {
			step() // arrays grow to what they ever need
		}
		if n := testing.AllocsPerRun(100, step); n > 0 {
			t.Errorf("%s: %v allocations a request", d, n)
		}
	}
}
