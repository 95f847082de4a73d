package perceptron

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPapersRule holds Gradient to the paper by hand: z = 0.2·0.5 + 0.1·1 = 0.2, t = 0.3,
// so w1 grows by 0.05·2·0.1·0.5 and w2 by twice that; and a neuron that starts below 0 is
// dead.
func TestPapersRule(t *testing.T) {
	t.Parallel()
	o := Options{Rule: Gradient, NoBias: true}
	n, err := NewNeuron(o, [3]float64{0.2, 0.1, 7})
	if err != nil {
		t.Fatal(err)
	}
	n.Learn(0.5, 1, 0.3)
	if w := n.Weights(); math.Abs(w[0]-0.205) > 1e-15 || math.Abs(w[1]-0.11) > 1e-15 || w[2] != 0 {
		t.Errorf("got %v, expected 0.205, 0.11 and no bias", w)
	}
	dead, err := NewNeuron(o, [3]float64{-1, -1})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		dead.Learn(0.5, 1, 0.3)
	}
	if w := dead.Weights(); w != [3]float64{-1, -1} || dead.Estimate(0.5, 1) != 0 {
		t.Errorf("a dead neuron learned %v", w)
	}
}

// TestNormalisedRule by hand: the first request is met in full, by the shortest step.
func TestNormalisedRule(t *testing.T) {
	t.Parallel()
	n, err := NewNeuron(Options{Rule: Normalised}, [3]float64{0, 0, 0.1})
	if err != nil {
		t.Fatal(err)
	}
	n.Learn(1, 1, 0.4) // e = 0.3 over |x|² = 3
	for i, want := range []float64{0.1, 0.1, 0.2} {
		if got := n.Weights()[i]; math.Abs(got-want) > 1e-9 {
			t.Errorf("w%d is %v, expected %v", i+1, got, want)
		}
	}
}

// TestTimeoutMovesLittle: one request of 30 s among thousands of 10 ms is an outlier.
func TestTimeoutMovesLittle(t *testing.T) {
	t.Parallel()
	m := newModel(t, Options{})
	for i := range 1000 {
		m.LearnService(float64(1000+i%7*1000), i%3 == 0, 0.01)
	}
	m.LearnService(4000, false, 30)
	if got := m.Service(4000, false); got > 0.015 {
		t.Errorf("after one timeout the estimate is %v s", got)
	}
	for range 20 {
		m.LearnService(4000, false, 0.01)
	}
	if got := m.Service(4000, false); math.Abs(got-0.01) > 0.001 {
		t.Errorf("20 requests later it is %v s", got)
	}
}

// TestExponentialTimes: with the most usual spread the mean is learned, and no change of
// pace is seen where there is none.
func TestExponentialTimes(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 1))
	m := newModel(t, Options{})
	sum := 0.0
	const warm, n = 1000, 20000
	for i := range warm + n {
		size := 200 * math.Exp(rnd.Float64()*10)
		mean := 0.005 + size*1e-8
		if i >= warm {
			sum += m.Service(size, false) / mean / n
		}
		m.LearnService(size, false, mean*rnd.ExpFloat64())
	}
	if math.Abs(sum-1) > 0.05 {
		t.Errorf("estimates are %.3f of the truth on average", sum)
	}
	if service, _ := m.Error(); service < 0.5 || service > 1.1 {
		t.Errorf("the mean error is %v, expected about 0.74, that of the best guess", service)
	}
}

// TestClassesThatHaveNotLearned: a class goes by the nearest one, held between no growth and
// growth by the size, and a kind that a class hasn't seen by the class that has.
func TestClassesThatHaveNotLearned(t *testing.T) {
	t.Parallel()
	m := newModel(t, Options{})
	if got := m.Service(500, true); got != 0.01 {
		t.Errorf("of what knows nothing: %v", got)
	}
	for i := range 400 {
		size := float64(300 + i%700)
		m.LearnService(size, i%2 == 0, 0.001+size*1e-6+float64((i+1)%2)*0.05)
	}
	if got, want := m.Service(3000, false), 0.004; math.Abs(got-want) > 1e-4 {
		t.Errorf("static in the next class: %v, expected %v", got, want)
	}
	if got, want := m.Service(3000, true), 0.054; math.Abs(got-want) > 5e-4 {
		t.Errorf("dynamic in the next class: %v, expected %v", got, want)
	}
	for i := range 50 {
		size := float64(20000 + i*500)
		m.LearnService(size, false, 0.001+size*1e-6)
	}
	if got, want := m.Service(30000, true), 0.081; math.Abs(got-want) > 1e-3 {
		t.Errorf("dynamic where only static ones were: %v, expected %v", got, want)
	}
	m.LearnService(30000, true, 0.081)
	if got, want := m.Service(30000, false), 0.031; math.Abs(got-want) > 1e-3 {
		t.Errorf("static after the first dynamic one: %v, expected %v", got, want)
	}
}

// TestWait learns a queue's waiting time from any history, also over a queue that grows by
// orders of magnitude, and WaitWeights are what Wait goes by.
func TestWait(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		m := newModel(t, Options{})
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		a := rapid.Float64Range(1e-9, 1e-6).Draw(r, "static")
		b := rapid.Float64Range(1e-9, 1e-6).Draw(r, "dynamic")
		bias := rapid.Float64Range(0, 0.1).Draw(r, "bias")
		for i := range 600 {
			most := 1e4 * math.Exp(float64(i)/100)
			s, d := rnd.Float64()*most, rnd.Float64()*most
			m.LearnWait(s, d, bias+a*s+b*d)
			pa, pb, pc := m.WaitWeights()
			if got, want := m.Wait(s, d), max(0, pc+pa*s+pb*d); math.Abs(got-want) > 1e-9*max(1, want) || pa < 0 || pb < 0 {
				r.Fatalf("Wait is %v, by the weights %v, %v, %v it is %v", got, pa, pb, pc, want)
			}
		}
		off := 0.0
		for range 100 {
			s, d := rnd.Float64()*4e6, rnd.Float64()*4e6
			want := bias + a*s + b*d
			off += math.Abs(m.Wait(s, d)-want) / want / 100
		}
		if off > 0.05 {
			r.Fatalf("mean error %.1f %%", 100*off)
		}
		if _, wait := m.Error(); wait > 0.05 {
			r.Fatalf("it says %.1f %% itself", 100*wait)
		}
	})
}

// TestNothingUnusable: whatever is learned, estimates are finite and not negative, and what
// is no time or size changes nothing.
func TestNothingUnusable(t *testing.T) {
	t.Parallel()
	value := rapid.OneOf(rapid.Float64Range(0, 1e9), rapid.SampledFrom([]float64{0, 1e-300, 1, 1e15, math.Inf(1), math.NaN(), -1}))
	rapid.Check(t, func(r *rapid.T) {
		o := Options{Rule: Rule(rapid.IntRange(0, 2).Draw(r, "rule")), NoBias: rapid.Bool().Draw(r, "no bias")}
		m := newModel(t, o)
		usable := func(v float64) {
			if !(v >= 0) || math.IsInf(v, 1) {
				r.Fatalf("%+v: estimate %v", o, v)
			}
		}
		for range rapid.IntRange(1, 60).Draw(r, "requests") {
			size, at, other := value.Draw(r, "size"), value.Draw(r, "t"), value.Draw(r, "other")
			before := m.Learned()
			m.LearnService(size, rapid.Bool().Draw(r, "dynamic"), at)
			m.LearnWait(size, other, at)
			if learned := m.Learned() - before; (learned == 1) != (at >= 0 && at <= longest) {
				r.Fatalf("learned %d of a time of %v", learned, at)
			}
			usable(m.Service(size, false))
			usable(m.Service(other, true))
			usable(m.Wait(size, other))
			e1, e2 := m.Error()
			usable(e1)
			usable(e2)
		}
	})
}

func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"classes[1]": {Classes: []float64{1000, 1000}},
		"classes[0]": {Classes: []float64{math.NaN()}},
		"rule":       {Rule: 3},
		"clip":       {Clip: -1},
		"eta":        {Rule: Gradient, Eta: 0.5},
		"forget":     {Forget: 1},
		"start":      {Start: math.NaN()},
	} {
		_, err := New(o, Prior{})
		_, also := NewNeuron(o, [3]float64{})
		if !errors.Is(err, ErrOptions) || !errors.Is(also, ErrOptions) || !strings.HasPrefix(err.Error(), want+": got ") {
			t.Errorf("%s: got %v and %v", want, err, also)
		}
	}
}

// TestPrior is P30 for estimates: a new server starts from what the others have in common,
// whatever one of them is like, and they stay what they are bit for bit. One that differs is
// known after its first requests.
func TestPrior(t *testing.T) {
	t.Parallel()
	var others []*Model
	for i, speed := range []float64{1, 1, 1, 50, 1.1} {
		s := &server{
			rnd: rand.New(rand.NewPCG(uint64(i), 1)), fixed: 0.002, perByte: 1e-8, dynamic: 0.03,
			speed: speed, static: 0.6, least: 200, most: 8 << 20,
		}
		m := newModel(t, Options{})
		s.teach(m, 1000)
		for range 200 {
			b, d := s.rnd.Float64()*1e6, s.rnd.Float64()*1e6
			m.LearnWait(b, d, speed*(0.001+1e-8*b+4e-8*d))
		}
		others = append(others, m)
	}
	before := make([]Model, len(others))
	for i, m := range others {
		before[i] = copied(m)
	}
	prior := Pool(others)
	m, err := New(Options{}, prior)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		size    float64
		dynamic bool
		want    float64
	}{{500, false, 0.002}, {500, true, 0.032}, {3e6, false, 0.032}, {3e6, true, 0.062}} {
		if got := m.Service(c.size, c.dynamic); math.Abs(got-c.want) > 0.1*c.want {
			t.Errorf("%v bytes, dynamic %v: starts at %v, expected about %v", c.size, c.dynamic, got, c.want)
		}
	}
	if got, want := m.Wait(1e6, 1e6), 0.051; math.Abs(got-want) > 0.1*want {
		t.Errorf("wait: starts at %v, expected about %v", got, want)
	}
	m.LearnService(500, false, 0.1) // it is fifty times slower
	if got := m.Service(500, false); got < 0.05 {
		t.Errorf("after its first request a slow one is taken to need %v s, not 0.1", got)
	}
	for i, o := range others {
		if now := copied(o); !reflect.DeepEqual(now, before[i]) {
			t.Errorf("model %d was changed", i)
		}
	}
}

// copied is a model with slices of its own.
func copied(m *Model) Model {
	c := *m
	c.service = append([]Neuron(nil), m.service...)
	c.scale = append([]float64(nil), m.scale...)
	c.known = append([]bool(nil), m.known...)
	c.pace.old = append([]Neuron(nil), m.pace.old...)
	c.pace.older = append([]Neuron(nil), m.pace.older...)
	return c
}

// TestPriorOfNobody: without others, with others that know nothing, and with others of other
// classes a model starts by itself.
func TestPriorOfNobody(t *testing.T) {
	t.Parallel()
	known := newModel(t, Options{Classes: []float64{100}})
	known.LearnService(50, false, 3)
	for name, p := range map[string]Prior{
		"none": Pool(nil), "unlearned": Pool([]*Model{newModel(t, Options{})}), "other classes": Pool([]*Model{known}),
	} {
		m, err := New(Options{}, p)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Service(500, false); got != 0.01 {
			t.Errorf("%s: starts at %v", name, got)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	m := newModel(t, Options{})
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		i++
		m.LearnService(float64(i*1000), i%2 == 0, 0.01)
		m.LearnWait(float64(i), float64(i*1000), 0.01)
		_ = m.Service(float64(i*700), i%2 == 1) + m.Wait(1, 2)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkService(b *testing.B) {
	m := newModel(b, Options{})
	for i := range 1000 {
		m.LearnService(float64(i*1000), i%2 == 0, 0.01)
	}
	b.ReportAllocs()
	sum := 0.0
	for i := 0; b.Loop(); i++ {
		sum += m.Service(float64(i&0xfffff), i%2 == 0)
	}
	_ = sum
}

func BenchmarkLearn(b *testing.B) {
	m := newModel(b, Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.LearnService(float64(i&0xfffff), i%2 == 0, 0.01+1e-8*float64(i&0xfffff))
	}
}
