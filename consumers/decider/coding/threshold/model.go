package threshold

import (
	"fmt"
	"math"
)

// Model is the delay of one task of a store (PAPERS §3.2): a fixed part Delta and the
// mean Psi of an exponential one, each in ms and in ms for each MB (10⁶ B).
type Model struct {
	Delta      float64 `json:"delta_ms"`
	DeltaPerMB float64 `json:"delta_ms_per_mb"`
	Psi        float64 `json:"psi_ms"`
	PsiPerMB   float64 `json:"psi_ms_per_mb"`
}

// DefaultRead and DefaultWrite are the models of PAPERS §3.2, used until something
// was measured.
var (
	DefaultRead  = Model{Delta: 20, DeltaPerMB: 12, Psi: 10, PsiPerMB: 20}
	DefaultWrite = Model{Delta: 40, DeltaPerMB: 12, Psi: 10, PsiPerMB: 10}
)

// Validate reports a model without delays; the error wraps ErrInvalid.
func (m Model) Validate() error {
	for _, f := range []struct {
		name string
		v    float64
	}{{"delta_ms", m.Delta}, {"delta_ms_per_mb", m.DeltaPerMB}, {"psi_ms", m.Psi}, {"psi_ms_per_mb", m.PsiPerMB}} {
		if !(f.v >= 0) || math.IsInf(f.v, 1) {
			return fmt.Errorf("model: %s: got %v, expected 0 or more: %w", f.name, f.v, ErrInvalid)
		}
	}
	if m.Delta+m.DeltaPerMB <= 0 || m.Psi+m.PsiPerMB <= 0 {
		return fmt.Errorf("model: got %+v, expected a fixed and an exponential part: %w", m, ErrInvalid)
	}
	return nil
}

// Fixed is the fixed part of a task of b megabytes, ms.
func (m Model) Fixed(b float64) float64 { return m.Delta + float64(m.DeltaPerMB*b) }

// Mean is the mean of the exponential part of a task of b megabytes, ms.
func (m Model) Mean(b float64) float64 { return m.Psi + float64(m.PsiPerMB*b) }

// Usage is U(n,k) in connections × ms of a request of j megabytes.
func (m Model) Usage(j float64, n, k int) float64 {
	b := j / float64(k)
	return float64(float64(n)*m.Fixed(b)) + float64(float64(k)*m.Mean(b))
}

// Service is S(n,k) in ms: the delay of a request that need not queue.
func (m Model) Service(j float64, n, k int) float64 {
	b := j / float64(k)
	return m.Fixed(b) + float64(m.Mean(b)*(harmonic(n)-harmonic(n-k)))
}

// Capacity is C(n,k) in requests a second over l connections.
func (m Model) Capacity(j float64, n, k, l int) float64 {
	return 1000 * float64(l) / m.Usage(j, n, k)
}

// variance is the squared coefficient of variation of the delay of a request that need
// not queue: the variance of the k-th of n exponentials is Psi²·Σ 1/i² over the last k.
func (m Model) variance(j float64, n, k int) float64 {
	var sum float64
	for i := n - k + 1; i <= n; i++ {
		sum += 1 / float64(i*i)
	}
	s := m.Service(j, n, k)
	p := m.Mean(j / float64(k))
	return p * p * sum / (s * s)
}

// harmonic is H(n), 0 for n = 0.
func harmonic(n int) float64 {
	var sum float64
	for i := 1; i <= n; i++ {
		sum += 1 / float64(i)
	}
	return sum
}
