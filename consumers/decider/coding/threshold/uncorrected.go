package threshold

import "math"

// Point is the best code at a backlog, in real numbers.
type Point struct {
	K float64
	R float64 // n/k
	Q float64 // waiting requests
}

// steps of a bisection: more than a float64 has bits.
const steps = 200

// mostR is where the search for r ends: with so many chunks the exponential part is
// gone and more of them change nothing.
const mostR = 1e6

// Uncorrected returns the thresholds of PAPERS §3.3 and §3.4, of a queue M/M/1. Their
// scale is that of one fast server; use Corrected for L connections. The error wraps
// ErrInvalid.
func Uncorrected(m Model, l Limits) (Table, error) {
	if err := m.Validate(); err != nil {
		return Table{}, err
	}
	if err := l.Validate(); err != nil {
		return Table{}, err
	}
	t := l.table()
	for j := l.least(); j < l.KMax; j++ {
		t.K[j-1] = Best(m, l, float64(j)+0.5).Q
	}
	for j := l.least(); j < l.NMax; j++ {
		if n := float64(j) + 0.5; l.KMin == l.KMax {
			t.N[j-1] = bestOfR(m, l, float64(l.KMax), n/float64(l.KMax)).Q
		} else {
			t.N[j-1] = bestOfN(m, l, n).Q
		}
	}
	falling(t.K)
	falling(t.N)
	return t, nil
}

// Best is the point of the paper's optimum for k: r(k) by bisection, then Q(k).
func Best(m Model, l Limits, k float64) Point {
	j := l.SizeMB
	fixed := float64(m.Delta*k) + float64(m.DeltaPerMB*j)
	// The two conditions of PAPERS §3.3 divided by each other: positive while r is
	// below r(k). Near 1 the first term grows as 1/(r−1), the second as its logarithm.
	apart := func(r float64) float64 {
		return float64((m.Psi+float64(m.Delta*r))*m.Mean(j/k)/(r*(r-1))) -
			float64(fixed*(j/(k*k))*(m.DeltaPerMB+float64(m.PsiPerMB*math.Log(r/(r-1)))))
	}
	low, high := -math.Log(mostR), math.Log(mostR) // of log(r−1)
	for range steps {
		mid := (low + high) / 2
		if apart(1+math.Exp(mid)) > 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return bestOfR(m, l, k, 1+math.Exp((low+high)/2))
}

// bestOfR is the backlog at which r is best for k: the second condition of PAPERS §3.3,
// by which alone it is known where k is fixed.
func bestOfR(m Model, l Limits, k, r float64) Point {
	j := l.SizeMB
	fixed := float64(m.Delta*k) + float64(m.DeltaPerMB*j)
	g := float64(l.Connections) * m.Mean(j/k) / (r * (r - 1) * fixed)
	// G = 1/(1−rho)² − 1 is L times the derivative of the wait by U.
	rho := 1 - 1/math.Sqrt(1+g)
	return Point{K: k, R: r, Q: rho * rho / (1 - rho)}
}

// bestOfN is the point whose n is that given: n = k·r(k) rises with k. The paper's
// table takes k in hundredths, the one whose n is nearest; so does this.
func bestOfN(m Model, l Limits, n float64) Point {
	low, high := 1, int(math.Ceil(100*n))
	for high-low > 1 {
		mid := (low + high) / 2
		if p := Best(m, l, float64(mid)/100); p.K*p.R < n {
			low = mid
		} else {
			high = mid
		}
	}
	a, b := Best(m, l, float64(low)/100), Best(m, l, float64(high)/100)
	if n-a.K*a.R < b.K*b.R-n {
		return a
	}
	return b
}

// falling makes a list of thresholds fall or stay, whatever rounding did to it.
func falling(h []float64) {
	for i := len(h) - 2; i >= 0; i-- {
		h[i] = max(h[i], h[i+1])
	}
}
