package object

import (
	"bytes"
	"testing"
)

// TestMorePatternsThanPlans: what isn't kept is made again, and memory stays bounded.
func TestMorePatternsThanPlans(t *testing.T) {
	t.Parallel()
	data := noise(40, 4000)
	s := put(t, SpreadCoding(12, 6), 4096, "k", "v", data)
	d := decoderOf(t, s.Version)
	tried := 0
	for set := range uint(1) << 12 {
		if err := d.Begin(0); err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			if run, _ := s.Shape.Run(0, i, 1); set>>i&1 == 1 {
				s.add(t, d, run)
			}
		}
		if d.Lacking() > 0 || d.whole > 7 {
			continue
		}
		tried++
		var out bytes.Buffer
		if _, err := d.WriteRange(&out, 0, int64(len(data))); err != nil || !bytes.Equal(out.Bytes(), data) {
			t.Fatalf("%b: %v", set, err)
		}
		plans.RLock()
		kept := len(plans.of)
		plans.RUnlock()
		if kept > maxPlans {
			t.Fatalf("%d plans", kept)
		}
	}
	if tried < 2*maxPlans {
		t.Errorf("only %d patterns", tried)
	}
}

// TestDecodingCostsNoMemory: a pattern that was seen before costs a slice or two of the
// library's.
func TestDecodingCostsNoMemory(t *testing.T) {
	for _, c := range []Coding{SharedCoding(), SpreadCoding(6, 4), SpreadCoding(3, 1)} {
		s := put(t, c, 64<<10, "k", "v", noise(41, 64<<10))
		d := decoderOf(t, s.Version)
		lost := s.Shape.N - s.Shape.K
		var runs []Chunk
		for i := lost; i < s.Shape.N; i++ {
			run, err := s.Shape.Run(0, i, 1)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		got := testing.AllocsPerRun(50, func() {
			if err := d.Begin(0); err != nil {
				t.Fatal(err)
			}
			for _, run := range runs {
				if faults := s.add(t, d, run); len(faults) > 0 {
					t.Fatal(faults)
				}
			}
			if err := d.rebuild(0, 1); err != nil {
				t.Fatal(err)
			}
		})
		if got > 4 && !raceEnabled {
			t.Errorf("%v: %v allocations a segment", c, got)
		}
	}
}
