package perceptron

import (
	"math/rand/v2"
	"testing"
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
