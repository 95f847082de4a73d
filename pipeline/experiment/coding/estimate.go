package coding

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"penstock/pipeline/report"
)

// Estimate is the mean of a figure over seeds, and half the width of the interval in
// which it lies with a probability of 95 %, by Student's t; of one seed it is unknown.
type Estimate struct {
	Value report.Figure `json:"value"`
	Half  report.Figure `json:"plus_minus"`
}

// estimate is that of the values of seeds. It is rounded, so that the last bits of a
// sum show nowhere.
func estimate(values []float64) Estimate {
	n := float64(len(values))
	if n == 0 {
		return Estimate{report.Unknown(), report.Unknown()}
	}
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	mean := sum / n
	for _, v := range values {
		squares += float64((v - mean) * (v - mean))
	}
	e := Estimate{Value: rounded(mean), Half: report.Unknown()}
	if n > 1 {
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975)
		e.Half = rounded(t * math.Sqrt(squares/(n-1)/n))
	}
	return e
}

// rounded is v to a ten-thousandth.
func rounded(v float64) report.Figure { return report.Figure(math.Round(v*1e4) / 1e4) }

// Text prints value ± half.
func (e Estimate) Text(digits int) string {
	if !e.Half.Known() {
		return e.Value.Text(digits)
	}
	return e.Value.Text(digits) + " ±" + e.Half.Text(digits)
}
