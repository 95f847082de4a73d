package coding_test

import (
	"math"
	"testing"

	"penstock/consumers/decider/coding"
	"penstock/consumers/decider/coding/threshold"
	"penstock/schemas/control"
)

// A belief by which chunks hardly pay keeps a coder at one chunk, whose tasks have one
// size: they can't tell what the belief has wrong. Doubt does, at an empty queue at
// once, under load by and by; once two sizes have told, one size for long brings no
// doubt back.
func TestWrongBeliefsDoNotLast(t *testing.T) {
	for _, backlog := range []float64{0, 0.6} {
		p, err := coding.New(coding.Config{Coders: []coding.Coder{{
			Name: "east", Read: &threshold.Model{Delta: 60, DeltaPerMB: 2, Psi: 60, PsiPerMB: 2},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(5)
		table := control.CodingCodes{RMax: 2} // (1,1): what such a belief comes to
		var delays control.CodingDelay
		for n := range 80 {
			code := coding.Code{N: 1, K: 1}
			if n < 20 {
				code.N, code.K = threshold.Table{K: table.K, N: table.N}.Code(backlog, table.RMax)
			}
			w.serve(traffic{store: "east", op: "read", n: code.N, k: code.K, mb: 3, count: 300})
			for _, c := range step(t, p, w, n, act()).Commands {
				table, delays = c.Coding.Read, c.Coding.Model.Read
			}
			if n%10 == 3 {
				p = restarted(t, p)
			}
		}
		got := threshold.Model{Delta: delays.Delta, DeltaPerMB: delays.DeltaPerMB, Psi: delays.Psi, PsiPerMB: delays.PsiPerMB}
		for _, mb := range []float64{1.5, 3} {
			want := threshold.DefaultRead
			if math.Abs(got.Fixed(mb)/want.Fixed(mb)-1) > 0.1 || math.Abs(got.Mean(mb)/want.Mean(mb)-1) > 0.1 {
				t.Errorf("backlog %v: learned %+v, of which %v MB take %.1f + Exp(%.1f) ms; expected %+v", backlog, got, mb, got.Fixed(mb), got.Mean(mb), want)
			}
		}
		best, err := threshold.Corrected(threshold.DefaultRead, threshold.Limits{Connections: 16, SizeMB: 3, KMax: 6, NMax: 12, RMax: 2})
		if err != nil {
			t.Fatal(err)
		}
		_, want := best.Code(backlog, 2)
		if _, k := (threshold.Table{K: table.K, N: table.N}).Code(backlog, table.RMax); k != want {
			t.Errorf("a backlog of %v gets k %d, expected %d", backlog, k, want)
		}
	}
}
