package live

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/decider/coding"
	"penstock/consumers/decider/coding/threshold"
	"penstock/infra/clock"
	"penstock/pipeline/experiment/coding/delays"
	"penstock/schemas/control"
)

// Load is one load of the sweep.
type Load struct {
	// Percent of the rate that (1,1) carries by the model.
	Percent int
	// Warm requests come first and do not count; Requests do.
	Warm, Requests int
}

// Options of a sweep.
type Options struct {
	// Dir is a folder for the catalogs. Needed.
	Dir string
	// Seed draws arrivals, delays and contents.
	Seed uint64
	// Scale multiplies all delays and divides all rates; 0: 2.
	Scale float64
	// Bytes is the size of an object, Objects how many of them are read; 0: 300 kB, 24.
	// Delays for a MB are such that an object takes as long as 3 MB of the paper.
	Bytes, Objects int
	// Loads in their order; nil: 5, 20, 50, 80 and 90 per cent.
	Loads []Load
	// Simulated is how many runs the simulation takes of each load; 0: 40.
	Simulated int
	// Near is how far a mean may lie from the simulation's, Best how far tofec's from the
	// best of the codes compared, as shares; 0: 0.15 and 0.1.
	Near, Best float64
	// Clock paces the run. Defaults to the machine's.
	Clock clock.Clock
	// Say, if any, is told how far the run is.
	Say    func(format string, args ...any)
	Logger zerolog.Logger
}

// connections is L of the paper, kMax and rMax its other constants (PAPERS §3.1).
const (
	connections = 16
	kMax        = 6
	rMax        = 2
	paperBytes  = 3_000_000
	// maxWaiting is how many requests wait before others are refused: a code that does
	// not keep up shows by it, and is through soon after a load ends.
	maxWaiting = 100
)

// defaultLoads count as many requests as a mean needs: more where the queue makes them
// hang together. A load begins once the smoothed backlog has forgotten the one before.
var defaultLoads = []Load{
	{Percent: 5, Warm: 20, Requests: 300},
	{Percent: 20, Warm: 300, Requests: 700},
	{Percent: 50, Warm: 300, Requests: 1500},
	{Percent: 80, Warm: 300, Requests: 2500},
	{Percent: 90, Warm: 300, Requests: 4000},
}

// complete fills in what was left out and checks the rest.
func (o Options) complete() (Options, error) {
	o.Scale, o.Bytes, o.Objects = cmp.Or(o.Scale, 2), cmp.Or(o.Bytes, paperBytes/10), cmp.Or(o.Objects, 24)
	o.Simulated, o.Near, o.Best = cmp.Or(o.Simulated, 40), cmp.Or(o.Near, 0.15), cmp.Or(o.Best, 0.1)
	if o.Loads == nil {
		o.Loads = defaultLoads
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if o.Dir == "" || o.Scale <= 0 || o.Bytes < 600 || o.Bytes > 8<<20 || o.Objects < 1 || o.Simulated < 1 || o.Near <= 0 || o.Best <= 0 {
		return o, fmt.Errorf("%w: expected a folder, a scale above 0, objects of 600 B to 8 MiB, and shares above 0", ErrOptions)
	}
	if len(o.Loads) == 0 {
		return o, fmt.Errorf("%w: expected a load", ErrOptions)
	}
	for _, l := range o.Loads {
		if l.Percent < 1 || l.Percent > 99 || l.Warm < 0 || l.Requests < 1 {
			return o, fmt.Errorf("%w: load %+v: expected 1 to 99 per cent, and requests that count", ErrOptions, l)
		}
	}
	return o, nil
}

// model is that of the store: the paper's, for objects of another size, and slower.
func (o *Options) model(of threshold.Model) threshold.Model {
	perMB := o.Scale * paperBytes / float64(o.Bytes)
	return threshold.Model{Delta: o.Scale * of.Delta, DeltaPerMB: perMB * of.DeltaPerMB, Psi: o.Scale * of.Psi, PsiPerMB: perMB * of.PsiPerMB}
}

// delay is a model as stores are told it.
func delay(m threshold.Model) control.CodingDelay {
	return control.CodingDelay{Delta: m.Delta, DeltaPerMB: m.DeltaPerMB, Psi: m.Psi, PsiPerMB: m.PsiPerMB}
}

// law is a model as simulations are told it.
func law(m threshold.Model) delays.Law {
	return delays.Law{Kind: delays.Exponential, Delta: m.Delta, DeltaPerMB: m.DeltaPerMB, Psi: m.Psi, PsiPerMB: m.PsiPerMB}
}

func (o *Options) sizeMB() float64 { return float64(o.Bytes) / 1e6 }

// capacity is that of a code by the model, requests a second.
func (o *Options) capacity(n, k int) float64 {
	return o.model(threshold.DefaultRead).Capacity(o.sizeMB(), n, k, connections)
}

// rate is that of a load, requests a second.
func (o *Options) rate(l Load) float64 { return float64(l.Percent) / 100 * o.capacity(1, 1) }

// policy is one that is compared.
type policy struct {
	name string
	kind control.CodingPolicy
	code coding.Code // of a static one
}

// policies, the one that is judged first.
var policies = []policy{
	{"tofec", control.CodingTOFEC, coding.Code{}},
	{"(1,1)", control.CodingStatic, coding.Code{N: 1, K: 1}},
	{"(12,6)", control.CodingStatic, coding.Code{N: 12, K: 6}},
}

// table is the one that the decider would send for the model.
func (o *Options) table(p policy) (control.CodingTable, error) {
	read, write := o.model(threshold.DefaultRead), o.model(threshold.DefaultWrite)
	t, _, err := coding.Default(coding.Config{
		Policy: p.kind, Coders: []coding.Coder{{Name: p.name, Read: &read, Write: &write}}, Code: p.code,
		Connections: connections, KMax: kMax, RMax: rMax, SizeMB: o.sizeMB(),
	}, p.name)
	if err != nil {
		return t, fmt.Errorf("table of %s: %w", p.name, err)
	}
	return t, nil
}

// patience is how long what should be there soon may take.
const patience = time.Minute
