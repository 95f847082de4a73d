package shares

import (
	"math"
	"math/bits"
)

// logSteps is how many pieces the logarithm of a mantissa is cut into.
const logSteps = 1 << 10

// logs holds log2(1 + i/logSteps).
var logs = func() (l [logSteps + 1]float64) {
	for i := range l {
		l[i] = math.Log2(1 + float64(i)/logSteps)
	}
	return l
}()

// wait makes of 64 even bits a time that is exponentially distributed (in units
// of 1/ln 2): the negative logarithm of v / 2⁶⁴. The logarithm is read from a
// table, straight between its points: it is off by less than 2·10⁻⁷, and always
// the same, on all machines (no fused multiply-add: products are rounded).
func wait(v uint64) float64 {
	v |= 1 // 0 has no logarithm
	zeros := bits.LeadingZeros64(v)
	mantissa := v << zeros << 1 // what follows the leading one
	at := mantissa >> (64 - 10)
	between := float64(mantissa<<10>>11) * (1.0 / (1 << 53))
	low := logs[at]
	return float64(zeros+1) - (low + float64((logs[at+1]-low)*between))
}
