package delays

import (
	"fmt"
	"math"

	"penstock/consumers/decider/coding/threshold"
)

// Kind is a law of delays.
type Kind string

// The laws.
const (
	Exponential Kind = "exponential"
	Lomax       Kind = "lomax"
	Lognormal   Kind = "lognormal"
)

// Law is how long a task takes. All delays are in ms, sizes in MB (10⁶ B).
type Law struct {
	Kind Kind `yaml:"kind" json:"kind"`
	// Delta and Psi and what they grow by with a MB are those of Exponential and Lomax.
	Delta      float64 `yaml:"delta,omitempty" json:"delta_ms,omitempty"`
	DeltaPerMB float64 `yaml:"delta_per_mb,omitempty" json:"delta_ms_per_mb,omitempty"`
	Psi        float64 `yaml:"psi,omitempty" json:"psi_ms,omitempty"`
	PsiPerMB   float64 `yaml:"psi_per_mb,omitempty" json:"psi_ms_per_mb,omitempty"`
	// Shape is the power by which Lomax's survival falls, above 1.
	Shape float64 `yaml:"shape,omitempty" json:"shape,omitempty"`
	// Median, MedianPerMB, Sigma and Floor are those of Lognormal.
	Median      float64 `yaml:"median,omitempty" json:"median_ms,omitempty"`
	MedianPerMB float64 `yaml:"median_per_mb,omitempty" json:"median_ms_per_mb,omitempty"`
	Sigma       float64 `yaml:"sigma,omitempty" json:"sigma,omitempty"`
	Floor       float64 `yaml:"floor,omitempty" json:"floor_ms,omitempty"`
	// Correlation of the normal scores of two tasks of one request, 0 to 1.
	Correlation float64 `yaml:"correlation,omitempty" json:"correlation,omitempty"`
}

// Model is the fixed and the exponential part; of Lognormal there is none.
func (l *Law) Model() threshold.Model {
	return threshold.Model{Delta: l.Delta, DeltaPerMB: l.DeltaPerMB, Psi: l.Psi, PsiPerMB: l.PsiPerMB}
}

// Validate reports the first fault; the error wraps ErrLaw.
func (l *Law) Validate() error {
	fault := func(field string, got any, expected string) error {
		return fmt.Errorf("%s: got %v, expected %s: %w", field, got, expected, ErrLaw)
	}
	if !(l.Correlation >= 0 && l.Correlation <= 1) {
		return fault("correlation", l.Correlation, "0 to 1")
	}
	switch l.Kind {
	case Exponential, Lomax:
		if err := l.Model().Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrLaw, err)
		}
		if l.Kind == Lomax && !(l.Shape > 1) {
			return fault("shape", l.Shape, "above 1")
		}
	case Lognormal:
		if !(l.Median >= 0 && l.MedianPerMB >= 0 && l.Median+l.MedianPerMB > 0 && l.Sigma > 0 && l.Floor >= 0) {
			return fault("lognormal", *l, "a median and sigma above 0, and no floor below 0")
		}
	default:
		return fault("kind", l.Kind, "exponential, lomax or lognormal")
	}
	return nil
}

// Mean is the mean delay of a task of mb megabytes.
func (l *Law) Mean(mb float64) float64 {
	if l.Kind != Lognormal {
		return l.Model().Fixed(mb) + l.Model().Mean(mb)
	}
	m := l.median(mb)
	whole := m * math.Exp(l.Sigma*l.Sigma/2)
	if l.Floor == 0 {
		return whole
	}
	// The mean of max(Floor, X): below the floor by its chance, above it what is left
	// of X's own mean.
	d := math.Log(l.Floor/m) / l.Sigma
	return float64(l.Floor*below(d)) + float64(whole*below(l.Sigma-d))
}

func (l *Law) median(mb float64) float64 { return l.Median + float64(l.MedianPerMB*mb) }

// Luck is what a request draws once.
type Luck uint64

// shared is the place of the part of the luck that a request's tasks share: no task
// has it.
const shared = -1

// Task is the delay of task i, from 0, of mb megabytes.
func (l *Law) Task(luck Luck, i int, mb float64) float64 {
	if l.Correlation == 0 {
		return l.at(luck.uniform(i), mb)
	}
	z := float64(math.Sqrt(l.Correlation)*score(luck.uniform(shared))) + float64(math.Sqrt(1-l.Correlation)*score(luck.uniform(i)))
	return l.at(above(z), mb)
}

// at is the delay that a share s of tasks exceeds.
func (l *Law) at(s, mb float64) float64 {
	switch l.Kind {
	case Lomax:
		// s = (1 + x/(Shape−1))^−Shape has mean 1.
		return l.Model().Fixed(mb) + float64(l.Model().Mean(mb)*(l.Shape-1)*(math.Pow(s, -1/l.Shape)-1))
	case Lognormal:
		return max(l.Floor, l.median(mb)*math.Exp(-l.Sigma*score(s)))
	}
	return l.Model().Fixed(mb) - float64(l.Model().Mean(mb)*math.Log(s))
}

// uniform is a number above 0 and below 1 of a place.
func (l Luck) uniform(i int) float64 {
	v := mix(uint64(l) + uint64(int64(i)+2)*0x9e3779b97f4a7c15)
	return (float64(v>>11) + 0.5) / (1 << 53)
}

// mix spreads the bits of v (the finaliser of SplitMix64).
func mix(v uint64) uint64 {
	v ^= v >> 30
	v *= 0xbf58476d1ce4e5b9
	v ^= v >> 27
	v *= 0x94d049bb133111eb
	return v ^ v>>31
}

// score is the normal score below which a share u lies.
func score(u float64) float64 { return math.Sqrt2 * math.Erfinv(float64(2*u)-1) }

// below and above are the chances of a normal score below and above z.
func below(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
func above(z float64) float64 { return max(math.Erfc(z/math.Sqrt2)/2, math.SmallestNonzeroFloat64) }
