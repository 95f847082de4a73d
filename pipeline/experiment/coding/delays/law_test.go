package delays_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"penstock/pipeline/experiment/coding/delays"
)

const samples = 200_000

// draw takes the first task of many requests, sorted.
func draw(l *delays.Law, mb float64) []float64 {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]float64, samples)
	for i := range out {
		out[i] = l.Task(delays.Luck(rng.Uint64()), 0, mb)
	}
	slices.Sort(out)
	return out
}

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func near(got, want, share float64) bool { return math.Abs(got-want) <= share*math.Abs(want) }

// TestLawsAreWhatTheySay: means, medians and tails of draws against formulas, with and
// without correlation, which changes no law of one task.
func TestLawsAreWhatTheySay(t *testing.T) {
	exponential := delays.Law{Kind: delays.Exponential, Delta: 20, DeltaPerMB: 12, Psi: 10, PsiPerMB: 20}
	tail := exponential
	tail.Kind, tail.Shape = delays.Lomax, 2.5
	// S3 Standard GET as PAPERS §3.2 has it: p90 60 ms, p99 114 ms.
	get := delays.Law{Kind: delays.Lognormal, Median: 27, Sigma: 0.62, Floor: 10}
	put := delays.Law{Kind: delays.Lognormal, Median: 60, MedianPerMB: 20, Sigma: 0.29}
	for _, c := range []struct {
		name          string
		law           delays.Law
		mb            float64
		p50, p90, p99 float64
	}{
		{"exponential", exponential, 3, 56 + 70*math.Ln2, 56 + 70*math.Log(10), 56 + 70*math.Log(100)},
		{"small tasks", exponential, 0.5, 26 + 20*math.Ln2, 26 + 20*math.Log(10), 26 + 20*math.Log(100)},
		{"lomax", tail, 3, 56 + 105*(math.Pow(2, 0.4)-1), 56 + 105*(math.Pow(10, 0.4)-1), 56 + 105*(math.Pow(100, 0.4)-1)},
		{"get", get, 3, 27, 59.8, 114.2},
		{"put", put, 2, 100, 100 * math.Exp(0.29*1.28155), 100 * math.Exp(0.29*2.32635)},
	} {
		for _, correlation := range []float64{0, 0.4} {
			c.law.Correlation = correlation
			if err := c.law.Validate(); err != nil {
				t.Fatal(err)
			}
			x := draw(&c.law, c.mb)
			for _, q := range []struct {
				name      string
				got, want float64
				share     float64
			}{
				{"mean", mean(x), c.law.Mean(c.mb), 0.01},
				{"p50", x[samples/2], c.p50, 0.01},
				{"p90", x[samples*9/10], c.p90, 0.015},
				{"p99", x[samples*99/100], c.p99, 0.03},
			} {
				if !near(q.got, q.want, q.share) {
					t.Errorf("%s, correlation %v: %s %.2f, expected %.2f", c.name, correlation, q.name, q.got, q.want)
				}
			}
		}
	}
}

// TestTasksOfARequest: two tasks of a request are as far from each other as the
// correlation says, and a task's luck does not hang on its size.
func TestTasksOfARequest(t *testing.T) {
	for _, correlation := range []float64{0, 0.3, 0.8} {
		// Of a lognormal delay the logarithm is the score.
		l := delays.Law{Kind: delays.Lognormal, Median: 1, Sigma: 1, Correlation: correlation}
		rng := rand.New(rand.NewPCG(3, 4))
		var sum float64
		for range samples {
			luck := delays.Luck(rng.Uint64())
			sum += math.Log(l.Task(luck, 0, 1)) * math.Log(l.Task(luck, 5, 1))
		}
		if got := sum / samples; math.Abs(got-correlation) > 0.02 {
			t.Errorf("correlation %.3f, expected %v", got, correlation)
		}
	}
	l := delays.Law{Kind: delays.Exponential, DeltaPerMB: 1, PsiPerMB: 1}
	if a, b := l.Task(7, 2, 1), l.Task(7, 2, 3); !near(3*a, b, 1e-12) {
		t.Errorf("%v for 1 MB and %v for 3 MB of the same task", a, b)
	}
}

func TestLawsThatAreNone(t *testing.T) {
	for name, l := range map[string]delays.Law{
		"no kind":        {Delta: 1, Psi: 1},
		"no delay":       {Kind: delays.Exponential},
		"below zero":     {Kind: delays.Lomax, Delta: -1, Psi: 1, Shape: 2},
		"no mean":        {Kind: delays.Lomax, Delta: 1, Psi: 1, Shape: 1},
		"no spread":      {Kind: delays.Lognormal, Median: 1},
		"too correlated": {Kind: delays.Exponential, Delta: 1, Psi: 1, Correlation: 1.1},
	} {
		if err := l.Validate(); !errors.Is(err, delays.ErrLaw) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func BenchmarkTask(b *testing.B) {
	for name, l := range map[string]delays.Law{
		"exponential": {Kind: delays.Exponential, Delta: 20, Psi: 10},
		"correlated":  {Kind: delays.Exponential, Delta: 20, Psi: 10, Correlation: 0.3},
		"lognormal":   {Kind: delays.Lognormal, Median: 20, Sigma: 1},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var sum float64
			for i := range b.N {
				sum += l.Task(delays.Luck(i), i&7, 1)
			}
			if sum == 0 {
				b.Fatal(sum)
			}
		})
	}
}
