package shares

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestWait compares with the logarithm itself, and asks that more bits never wait
// longer.
func TestWait(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64().Draw(t, "bits") >> rapid.IntRange(0, 63).Draw(t, "shift")
		exact := 64 - math.Log2(float64(v|1))
		if got := wait(v); math.Abs(got-exact) > 2e-7 {
			t.Fatalf("%#x waits %v, exactly %v", v, got, exact)
		}
		w := rapid.Uint64().Draw(t, "others") >> rapid.IntRange(0, 63).Draw(t, "other shift")
		if v < w && wait(v) < wait(w) {
			t.Fatalf("%#x waits less than %#x", v, w)
		}
	})
	if wait(0) != 64 || wait(math.MaxUint64) < 0 {
		t.Errorf("at the ends: %v, %v", wait(0), wait(math.MaxUint64))
	}
}
