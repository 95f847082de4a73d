package coder

import (
	"math"

	"penstock/consumers/executor/coder/queue"
)

func sizedHack(code queue.Code, size int64) (n, k int) {
	f := math.Sqrt(float64(size) / 3e6)
	if f >= 1 {
		return code.N, code.K
	}
	k = max(1, int(math.Round(float64(code.K)*f)))
	return max(k, min(code.N, int(math.Round(float64(code.N)*float64(k)/float64(code.K))))), k
}
