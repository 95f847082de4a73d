package sheet

import (
	"testing"

	"penstock/pipeline/report"
)

func TestSpreads(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want string
	}{
		{[]float64{3, 1, 2}, "2.0 (1.0–3.0)"},
		{[]float64{4, 1, 2, 3}, "2.5 (1.0–4.0)"},
		{nil, "–"},
	} {
		if got := SpreadOf(figures(c.of)).Text(1); got != c.want {
			t.Errorf("%v: %s, expected %s", c.of, got, c.want)
		}
	}
}

func figures(of []float64) []report.Figure {
	out := make([]report.Figure, len(of))
	for i, v := range of {
		out[i] = report.Figure(v)
	}
	return out
}
