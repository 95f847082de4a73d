package shaped

import (
	"math"
	"math/rand/v2"
	"time"

	"penstock/schemas/control"
)

// Law draws how long a task of so many megabytes (10⁶ B) takes. It is called by one
// goroutine at a time.
type Law func(mb float64, r *rand.Rand) time.Duration

// Exponential is the model of PAPERS §3.2: Delta(B) + Exp(Psi(B)).
func Exponential(d control.CodingDelay) Law {
	return func(mb float64, r *rand.Rand) time.Duration { return delay(d, mb, r.ExpFloat64()) }
}

// Lomax is Exponential with a heavy tail of mean 1 in place of the exponential one: its
// survival falls as a power, shape, which must be above 1.
func Lomax(d control.CodingDelay, shape float64) Law {
	return func(mb float64, r *rand.Rand) time.Duration {
		return delay(d, mb, (shape-1)*math.Expm1(r.ExpFloat64()/shape))
	}
}

// delay is the constant part and so many times the mean of the random one.
func delay(d control.CodingDelay, mb, times float64) time.Duration {
	return milliseconds(d.Delta + float64(d.DeltaPerMB*mb) + float64((d.Psi+float64(d.PsiPerMB*mb))*times))
}

// longest is the longest delay: a heavy tail knows no bound.
const longest = 10 * time.Minute

func milliseconds(ms float64) time.Duration {
	return time.Duration(min(max(ms, 0)*float64(time.Millisecond), float64(longest)))
}
