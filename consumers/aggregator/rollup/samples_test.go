package rollup

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/window"
)

// TestSamplesAreAHistogram fills histograms side by side over one scratch, which
// must not mix them up, and compares them with those filled one by one.
func TestSamplesAreAHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s scratch
		var got [3]samples
		var want [3]window.Bins
		spread := rapid.SampledFrom([]int64{10, 100_000, longest}).Draw(t, "spread")
		seed := rapid.Int64().Draw(t, "seed")
		size := 0
		for range rapid.IntRange(0, 1500).Draw(t, "samples") {
			seed = seed*6364136223846793005 + 1442695040888963407
			i, v := int(uint64(seed)>>60)%3, int64(uint64(seed)>>8)%(spread+1)
			size += got[i].add(v, &s)
			want[i].Add(v, 1)
		}
		held := 0
		for i := range got {
			held += binBytes*len(got[i].bins.Index) + waitingBytes*len(got[i].waiting)
		}
		if size != held {
			t.Fatalf("size %d, held %d", size, held)
		}
		for i := range got {
			if bins := got[i].take(&s); len(bins.Index)+len(want[i].Index) > 0 && !reflect.DeepEqual(bins, want[i]) {
				t.Fatalf("histogram %d: got %+v, expected %+v", i, bins, want[i])
			}
		}
	})
}
