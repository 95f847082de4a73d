package perceptron

import (
	"fmt"
	"math"
)

// Rule says how a neuron changes with what it is taught.
type Rule uint8

const (
	// Recursive is recursive least squares with forgetting, the default. A step in a
	// server's speed is noticed by errors that all have one sign; the past then counts
	// less.
	Recursive Rule = iota
	// Normalised is the normalised LMS rule, w += eta·(t − z)·x / |x|², with a rate of 1/n
	// for the n-th of the first requests.
	Normalised
	// Gradient is the paper's, w −= eta·2·(relu(z) − t)·1[z>0]·x. Its neurons may die.
	Gradient
)

// Options are those of a neuron and of a model.
type Options struct {
	// Classes are the upper bounds of the size classes in bytes, ascending; there is one
	// more class above the last. Defaults to 1K, 4K, 16K, 64K, 256K, 1M (PAPERS §2.2).
	Classes []float64
	// Clip bounds the error that is learned from one request to Clip × (estimate + mean
	// error), so that a timeout doesn't move an estimate by more. Gradient has no bound,
	// as in the paper. Defaults to 4.
	Clip float64
	// Eta is the rate of Normalised, in (0, 2), by default 0.2, or of Gradient, in (0, 0.5),
	// by default 0.05.
	Eta float64
	// Forget is by how much Recursive multiplies the weight of the past at each request, in
	// [0.5, 1). Defaults to 0.98.
	Forget float64
	// NoBias leaves the constant input out, as the paper does.
	NoBias bool
	// Rule defaults to Recursive.
	Rule Rule
	// Start is the service time that a model without a prior estimates before it has
	// learned any, in seconds. Defaults to 0.01.
	Start float64
}

var defaultClasses = []float64{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}

// complete fills in what was left out, or says what can't work.
func (o *Options) complete() error {
	if o.Classes == nil {
		o.Classes = defaultClasses
	}
	last := 0.0
	for i, c := range o.Classes {
		if !(c > last) || math.IsInf(c, 1) {
			return fmt.Errorf("classes[%d]: got %v, expected bytes above %v: %w", i, c, last, ErrOptions)
		}
		last = c
	}
	if o.Rule > Gradient {
		return fmt.Errorf("rule: got %d, expected 0 to %d: %w", o.Rule, Gradient, ErrOptions)
	}
	defaultTo(&o.Clip, 4)
	defaultTo(&o.Forget, 0.98)
	defaultTo(&o.Start, 0.01)
	most := 2.0
	if o.Rule == Gradient {
		defaultTo(&o.Eta, 0.05)
		most = 0.5
	}
	defaultTo(&o.Eta, 0.2)
	switch {
	case !(o.Clip > 0):
		return fmt.Errorf("clip: got %v, expected more than 0: %w", o.Clip, ErrOptions)
	case !(o.Eta > 0 && o.Eta < most):
		return fmt.Errorf("eta: got %v, expected more than 0 and less than %v: %w", o.Eta, most, ErrOptions)
	case !(o.Forget >= 0.5 && o.Forget < 1):
		return fmt.Errorf("forget: got %v, expected 0.5 or more and less than 1: %w", o.Forget, ErrOptions)
	case !(o.Start > 0) || math.IsInf(o.Start, 1):
		return fmt.Errorf("start: got %v, expected seconds: %w", o.Start, ErrOptions)
	}
	return nil
}

func defaultTo(v *float64, d float64) {
	if *v == 0 {
		*v = d
	}
}
