package perceptron

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestWaitsStayWhereTheyWere: whatever queues come and go, and though static and dynamic
// bytes ahead grow together, no wait is estimated to be many times the longest that there
// was.
func TestWaitsStayWhereTheyWere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		draw := rand.New(rand.NewPCG(seed, 1))
		m, err := New(Options{}, Prior{})
		if err != nil {
			t.Fatal(err)
		}
		queue, longest := 0.0, 0.0
		for i := range 4000 {
			// A queue that builds up and is worked off, and is not there for a while. The wait
			// is that of the work ahead and of what is in service, and noise; deadlines let
			// some wait for who comes after them.
			switch (i / 500) % 3 {
			case 0:
				queue += draw.Float64() * 1e5
			case 1:
				queue *= 0.98
			default:
				queue = draw.Float64() * 1e5
			}
			static := queue * (0.6 + 0.05*draw.Float64())
			dynamic := queue - static
			wait := (static+dynamic)*1e-6 + 0.1*draw.Float64()
			if draw.IntN(10) == 0 {
				wait *= 4 * draw.Float64()
			}
			longest = max(longest, wait)
			m.LearnWait(static, dynamic, wait)
			a, b, c := m.WaitWeights()
			if w := c + (a+b)*queue; w > 10*longest {
				t.Fatalf("seed %d, request %d: %v s behind %v bytes, yet no wait was longer than %v s", seed, i, w, queue, longest)
			}
		}
	}
}

// TestWaitsBehindFewBytes: how many bytes there are ahead, or whether there are times
// without any, or many at once, is nothing to the rule. Weights are learned and stay where
// they are, and nothing is made up for by the bias.
func TestWaitsBehindFewBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		most := math.Exp(rapid.Float64Range(math.Log(16), math.Log(64<<20)).Draw(r, "most"))
		perByte := math.Exp(rapid.Float64Range(math.Log(1e-9), math.Log(1e-3)).Draw(r, "per byte"))
		times := rapid.Float64Range(0.2, 5).Draw(r, "dynamic")
		step := math.Exp(rapid.Float64Range(math.Log(0.1), math.Log(10)).Draw(r, "step"))
		m := newModel(t, Options{})
		draw := func() (static, dynamic, wait float64) {
			static, dynamic = most/16*(1+15*rnd.Float64()), most*rnd.Float64()
			return static, dynamic, perByte * (static + times*dynamic)
		}
		check := func(when string) {
			_, _, bias := m.WaitWeights()
			off := 0.0
			for range 100 {
				s, d, wait := draw()
				off += math.Abs(m.Wait(s, d)-wait) / wait / 100
			}
			if least := perByte * most / 16; off > 0.05 || math.Abs(bias) > least {
				r.Fatalf("%s: mean error %.1f %%, bias %v where the shortest wait is %v", when, 100*off, bias, least)
			}
		}
		teach := func(n int) {
			for range n {
				m.LearnWait(draw())
			}
		}
		for i := range 1000 {
			if teach(1); i >= 500 && i%100 == 0 {
				check("learning")
			}
		}
		for range rapid.SampledFrom([]int{0, 20, 20_000}).Draw(r, "without any ahead") {
			m.LearnWait(0, 0, 0)
		}
		check("after none were ahead")
		most *= 30
		teach(50)
		most /= 30
		teach(500) // these no longer outweigh the others
		check("after many were ahead")
		prior := Pool([]*Model{m})
		perByte *= step
		teach(200)
		check("after a step")
		perByte /= step
		m, _ = New(Options{}, prior)
		m.LearnWait(0, 0, 0)
		check("from another's")
	})
}
