package threshold

import (
	"errors"
	"math"
	"testing"
)

// paper is the setting of PAPERS §3.3.
var paper = Limits{Connections: 16, SizeMB: 3, KMax: 6, NMax: 12, RMax: 2}

// near reports equality to the digits that the paper prints.
func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }

func TestCostsOfThePaper(t *testing.T) {
	for _, c := range []struct {
		n, k       int
		s, u, perS float64
	}{
		{1, 1, 126.0, 126, 127.0},
		{2, 1, 91.0, 182, 87.9},
		{2, 2, 98.0, 156, 102.6},
		{4, 2, 61.3, 232, 69.0},
		{6, 3, 50.5, 282, 56.7},
		{8, 4, 44.9, 332, 48.2},
		{12, 6, 39.1, 432, 37.0},
	} {
		m := DefaultRead
		s, u, p := m.Service(3, c.n, c.k), m.Usage(3, c.n, c.k), m.Capacity(3, c.n, c.k, 16)
		if !near(s, c.s, 0.051) || !near(u, c.u, 0.51) || !near(p, c.perS, 0.051) {
			t.Errorf("(%d,%d): got S %.2f, U %.1f, %.2f a second, expected %v, %v, %v", c.n, c.k, s, u, p, c.s, c.u, c.perS)
		}
	}
}

func TestOptimumOfThePaper(t *testing.T) {
	for _, c := range []struct{ k, r, q, digit float64 }{
		{1, 1.27, 5.825, 0.001},
		{1.5, 1.42, 2.81, 0.01},
		{2, 1.58, 1.52, 0.01},
		{2.5, 1.72, .869, 0.001},
		{3, 1.87, .513, 0.001},
		{3.5, 2.02, .310, 0.001},
		{4, 2.16, .191, 0.001},
		{4.5, 2.30, .120, 0.001},
		{5, 2.44, .077, 0.001},
		{5.5, 2.58, .050, 0.001},
		{6, 2.72, .033, 0.001},
	} {
		p := Best(DefaultRead, paper, c.k)
		if !near(p.R, c.r, 0.0051) || !near(p.Q, c.q, c.digit*0.51) {
			t.Errorf("k %v: got r %.4f, Q %.4f, expected %v, %v", c.k, p.R, p.Q, c.r, c.q)
		}
	}
}

func TestThresholdsOfThePaper(t *testing.T) {
	got, err := Uncorrected(DefaultRead, paper)
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, got, want []float64) {
		if len(got) != len(want) {
			t.Fatalf("%s: got %v, expected %v", what, got, want)
		}
		for i := range got {
			if !near(got[i], want[i], 0.00051) {
				t.Errorf("%s[%d]: got %.5f, expected %v", what, i+1, got[i], want[i])
			}
		}
	}
	same("HK", got.K, []float64{2.811, .869, .310, .120, .050})
	same("HN", got.N, []float64{4.666, 2.205, 1.266, .798, .535, .375, .267, .198, .149, .115, .090})
}

// What is best by the two conditions is best by search too: S + Wq at a rate with the
// backlog of the point is no lower anywhere around it.
func TestTheOptimumIsOne(t *testing.T) {
	m, j, l := DefaultRead, paper.SizeMB, float64(paper.Connections)
	total := func(k, r, lambda float64) float64 {
		u := (m.Delta*k+m.DeltaPerMB*j)*r + m.Psi*k + m.PsiPerMB*j
		rho := lambda * u / l
		if rho >= 1 {
			return math.Inf(1)
		}
		return m.Fixed(j/k) + m.Mean(j/k)*math.Log(r/(r-1)) + u/l*rho/(1-rho)
	}
	for k := 1.0; k <= 6; k += 0.5 {
		p := Best(m, paper, k)
		u := (m.Delta*k+m.DeltaPerMB*j)*p.R + m.Psi*k + m.PsiPerMB*j
		rho := (-p.Q + math.Sqrt(p.Q*p.Q+4*p.Q)) / 2
		lambda := rho * l / u
		here := total(k, p.R, lambda)
		for kk := k - 0.3; kk <= k+0.3; kk += 0.01 {
			for r := p.R - 0.2; r <= p.R+0.2; r += 0.01 {
				if x := total(kk, r, lambda); x < here-1e-6 {
					t.Fatalf("k %v, r %v: %v ms; k %v, r %v: %v ms", k, p.R, here, kk, r, x)
				}
			}
		}
	}
}

func TestWhatCannotBeUsed(t *testing.T) {
	for _, m := range []Model{{}, {Delta: -1, Psi: 1}, {Delta: 1}, {Delta: math.NaN(), Psi: 1}, {Delta: 1, Psi: math.Inf(1)}} {
		if _, err := Uncorrected(m, paper); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: got %v", m, err)
		}
	}
	for _, l := range []Limits{{}, {Connections: 16, KMax: 6, NMax: 12, RMax: 2}, {Connections: 16, SizeMB: 1, NMax: 12, RMax: 2}, {Connections: 16, SizeMB: 1, KMax: 6, NMax: 12, RMax: .5}, {Connections: 16, SizeMB: 1, KMax: 6, RMax: 2}} {
		if _, err := Uncorrected(DefaultRead, l); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: got %v", l, err)
		}
	}
}
