package perceptron

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// server is one whose service times are linear in the size, and twist them if noise is set.
type server struct {
	rnd                     *rand.Rand
	fixed, perByte, dynamic float64 // s, s/byte, s
	speed                   float64 // what times are multiplied by
	noise                   float64 // the time is drawn evenly from 1 ± noise
	static                  float64 // share of static requests
	least, most             float64 // bytes, log-uniform
	size                    float64
	isDynamic               bool
}

// draw makes the next request and returns its expected and its actual time.
func (s *server) draw() (expected, actual float64) {
	s.size = math.Exp(math.Log(s.least) + s.rnd.Float64()*math.Log(s.most/s.least))
	s.isDynamic = s.rnd.Float64() >= s.static
	expected = s.fixed + s.perByte*s.size
	if s.isDynamic {
		expected += s.dynamic
	}
	expected *= s.speed
	return expected, expected * (1 + s.noise*(2*s.rnd.Float64()-1))
}

func (s *server) teach(m *Model, n int) {
	for range n {
		_, t := s.draw()
		m.LearnService(s.size, s.isDynamic, t)
	}
}

// off is the mean relative error of the estimates of requests that are not learned.
func (s *server) off(m *Model) float64 {
	const n = 1000
	sum := 0.0
	for range n {
		expected, _ := s.draw()
		sum += math.Abs(m.Service(s.size, s.isDynamic)-expected) / expected
	}
	return sum / n
}

func drawServer(t *rapid.T) *server {
	seconds := func(name string, low, high float64) float64 {
		return math.Exp(rapid.Float64Range(math.Log(low), math.Log(high)).Draw(t, name))
	}
	return &server{
		rnd:   rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)),
		fixed: seconds("fixed", 1e-3, 0.1), perByte: seconds("per byte", 1e-10, 1e-6), dynamic: seconds("dynamic", 1e-3, 0.5),
		speed: 1, static: rapid.Float64Range(0.1, 0.9).Draw(t, "static"), least: 200, most: 8 << 20,
	}
}

// drawStart is a weight from where the default rule starts: sane, 0, below 0, or absurd.
func drawStart(t *rapid.T, name string) float64 {
	w := math.Exp(rapid.Float64Range(math.Log(1e-6), math.Log(1e6)).Draw(t, name))
	return w * float64(rapid.IntRange(-1, 1).Draw(t, name+" sign"))
}

func newModel(t testing.TB, o Options) *Model {
	t.Helper()
	m, err := New(o, Prior{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestErrorBelowFivePercentFromAnyStart is Must show 4: linear times over all size classes
// are learned within 500 requests wherever the weights start, also below 0, where the
// paper's rule would stay for ever; and a step in speed is followed within 200.
func TestErrorBelowFivePercentFromAnyStart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := drawServer(r)
		m := newModel(t, Options{})
		for c := range m.service {
			m.service[c].start(&m.o, [3]float64{drawStart(r, "w1"), drawStart(r, "w2"), drawStart(r, "w3")}, blind)
		}
		s.teach(m, 500)
		if off := s.off(m); off > 0.05 {
			r.Fatalf("mean error %.1f %% after 500 requests", 100*off)
		}
		s.speed = math.Exp(rapid.Float64Range(math.Log(0.1), math.Log(10)).Draw(r, "step"))
		s.teach(m, 200)
		if off := s.off(m); off > 0.05 {
			r.Fatalf("mean error %.1f %% 200 requests after speed %.2f", 100*off, s.speed)
		}
	})
}

// TestErrorWithNoise is the same over twenty servers whose times vary by ±20 %, which are
// themselves off by 10 % on average; what is learned of them is nearer.
func TestErrorWithNoise(t *testing.T) {
	t.Parallel()
	const runs = 20
	before, after := 0.0, 0.0
	for seed := range uint64(runs) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		s := &server{
			rnd: rnd, fixed: 0.01 * rnd.Float64(), perByte: 1e-7 * rnd.Float64(), dynamic: 0.1 * rnd.Float64(),
			speed: 1, noise: 0.2, static: 0.7, least: 200, most: 8 << 20,
		}
		m := newModel(t, Options{})
		s.teach(m, 500)
		before += s.off(m) / runs
		s.speed = []float64{0.2, 0.5, 2, 10}[seed%4]
		s.teach(m, 200)
		after += s.off(m) / runs
	}
	t.Logf("mean error %.1f %% after 500 requests, %.1f %% 200 after a step", 100*before, 100*after)
	if before > 0.05 || after > 0.07 {
		t.Errorf("mean error %.1f %% after 500 requests, %.1f %% 200 after a step", 100*before, 100*after)
	}
}

// TestNeuronFromAnyStart is a single neuron by the two rules that don't die. Normalised
// needs longer, since x1 and the constant are nearly parallel.
func TestNeuronFromAnyStart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		for _, o := range []Options{{}, {NoBias: true}, {Rule: Normalised, Eta: 1}} {
			n, err := NewNeuron(o, [3]float64{drawStart(r, "w1"), drawStart(r, "w2"), drawStart(r, "w3")})
			if err != nil {
				r.Fatal(err)
			}
			rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
			truth := [3]float64{rapid.Float64Range(0.01, 1).Draw(r, "t1"), rapid.Float64Range(0, 1).Draw(r, "t2"), 0}
			if !o.NoBias {
				truth[2] = rapid.Float64Range(0.01, 1).Draw(r, "t3")
			}
			draw := func() (x1, x2, at float64) {
				x1, x2 = 0.25+0.75*rnd.Float64(), float64(rnd.IntN(2))
				return x1, x2, truth[0]*x1 + truth[1]*x2 + truth[2]
			}
			for range 500 {
				x1, x2, at := draw()
				n.Learn(x1, x2, at)
			}
			off := 0.0
			for range 200 {
				x1, x2, at := draw()
				off += math.Abs(n.Estimate(x1, x2)-at) / at / 200
			}
			if off > 0.05 {
				r.Fatalf("%+v: mean error %.1f %%, weights %v, true ones %v", o, 100*off, n.Weights(), truth)
			}
		}
	})
}

// TestLearnAfresh: a server that was not heard of for long and is found to be ten times
// faster is estimated right at once, for all classes and kinds, and its waits are shorter;
// what is no change by a number above 0 is none, and one that is not known yet just learns.
func TestLearnAfresh(t *testing.T) {
	t.Parallel()
	took := func(size float64, dynamic bool) float64 {
		if dynamic {
			size += 1e5
		}
		return 0.02 + size*1e-6
	}
	known := func() *Model {
		m, err := New(Options{}, Prior{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 400 {
			size := float64(500 + i%7*30_000)
			m.LearnService(size, i%3 == 0, 10*took(size, i%3 == 0))
			m.LearnWait(size, float64(i%5)*1e4, 1e-5*size)
		}
		return m
	}
	m := known()
	wait := m.Wait(1e5, 0)
	m.LearnAfresh(500, false, took(500, false), 0.1)
	for _, size := range []float64{600, 50_000, 180_000} {
		for _, dynamic := range []bool{false, true} {
			if x := m.Service(size, dynamic) / took(size, dynamic); x > 1.1 || x < 1/1.1 {
				t.Errorf("%v bytes, dynamic %v: estimated at %v times what they take", size, dynamic, x)
			}
		}
	}
	if x := wait / m.Wait(1e5, 0); x < 9 || x > 11 {
		t.Errorf("waits are %v times shorter, expected about 10", x)
	}
	for _, by := range []float64{math.NaN(), 0, -1, math.Inf(1)} {
		m, before := known(), known()
		m.LearnAfresh(500, false, took(500, false), by)
		before.LearnService(500, false, took(500, false))
		if x, y := m.Service(600, true), before.Service(600, true); x != y {
			t.Errorf("by %v: estimates %v, expected those of a request like others, %v", by, x, y)
		}
	}
	fresh, err := New(Options{}, Prior{})
	if err != nil {
		t.Fatal(err)
	}
	fresh.LearnAfresh(500, false, 0.3, 0.1)
	fresh.LearnAfresh(500, false, math.NaN(), 0.1)
	if got := fresh.Service(500, false); got < 0.2 || got > 0.4 || fresh.Learned() != 1 {
		t.Errorf("the first request took 0.3 s, estimated at %v after %d", got, fresh.Learned())
	}
}
