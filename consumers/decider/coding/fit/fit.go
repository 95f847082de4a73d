package fit

import (
	"math"

	"penstock/consumers/decider/coding/threshold"
	"penstock/schemas/window"
)

// Point is the tasks of about one size.
type Point struct {
	MB        float64 // mean size of a task in MB (10⁶ B)
	LeastMB   float64 // least size, at most MB; 0: all have one size
	Least     int64   // least delay of those that ended, µs; window.NullInt: unknown
	Done      window.Bins
	Cancelled window.Bins
}

// Options says what is enough.
type Options struct {
	// MinSamples is the least number of ended tasks for a new fit.
	MinSamples int64
}

// Interval is where a parameter lies with a probability of 95 %.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Result is a fit.
type Result struct {
	Model threshold.Model
	// Intervals are those of the model's parameters in their order, the prior included.
	Intervals [4]Interval
	// Kept is true if the samples were too few, and Model is the last fit as it was.
	Kept bool
	// Untold names parameters, as the model's JSON does, that the samples alone leave
	// open by more than their value: there the last fit stands.
	Untold    []string
	Done      int64 // ended tasks that were used
	Cancelled int64 // cancelled tasks that were used
	Outliers  int64 // ended tasks that were cut off or left out
}

const (
	leastOfPoint = 20   // ended tasks for a size to be used
	cut          = 4    // Psi above Delta at which a delay is cut off
	gap          = 14   // −ln of a chance of about one in a million
	leftOut      = 0.01 // most samples left out as too short
	rounds       = 60   // of scoring; a dozen are enough
	converged    = 1e-9 // relative change
	z95          = 1.959964
)

var names = [4]string{"delta_ms", "delta_ms_per_mb", "psi_ms", "psi_ms_per_mb"}

// Fit finds the model; prior is the last fit, or what is believed of the store before
// anything was measured.
func Fit(points []Point, prior threshold.Model, o Options) Result {
	r := Result{Model: prior, Kept: true}
	var used []sizes
	for _, p := range points {
		if n := p.Done.Count(); n >= leastOfPoint && p.MB > 0 {
			used = append(used, newSizes(p, prior.DeltaPerMB))
			r.Done += n
			r.Cancelled += p.Cancelled.Count()
		}
	}
	if len(used) == 0 || r.Done < o.MinSamples {
		return r
	}
	r.Kept = false
	delta, psi := line{prior.Delta, prior.DeltaPerMB}, line{prior.Psi, prior.PsiPerMB}
	for i := range used { // a beginning that needs no belief
		used[i].begin()
	}
	before := [2]line{delta, psi}
	var d, p system
	for range rounds {
		d, p = newSystem(before[0]), newSystem(before[1])
		last := [2]line{delta, psi}
		r.Outliers = 0
		for i := range used {
			s := &used[i]
			y, off := s.measure()
			d.add(s.low, y, 1/(off*off))
			p.add(s.mb, s.exposed/s.ended, s.ended/(s.psi*s.psi))
			r.Outliers += s.outliers
		}
		delta, psi = d.solve(), p.solve()
		for i := range used {
			used[i].follow(delta, psi)
		}
		if delta.near(last[0]) && psi.near(last[1]) {
			break
		}
	}
	r.Model = threshold.Model{Delta: delta.base, DeltaPerMB: delta.slope, Psi: psi.base, PsiPerMB: psi.slope}
	r.judge(&d, &p)
	return r
}

// judge sets the intervals and what the samples do not tell.
func (r *Result) judge(d, p *system) {
	values := [4]float64{r.Model.Delta, r.Model.DeltaPerMB, r.Model.Psi, r.Model.PsiPerMB}
	db, ds := d.deviations(true)
	pb, ps := p.deviations(true)
	all := [4]float64{db, ds, pb, ps}
	db, ds = d.deviations(false)
	pb, ps = p.deviations(false)
	alone := [4]float64{db, ds, pb, ps}
	for i, v := range values {
		r.Intervals[i] = Interval{Low: max(0, v-float64(z95*all[i])), High: v + float64(z95*all[i])}
		if !(alone[i] <= max(v, 0.1)) {
			r.Untold = append(r.Untold, names[i])
		}
	}
}

// sizes is a point under estimation. Delays are in ms.
type sizes struct {
	mb, low    float64 // mean and least size
	slope      float64 // of delta, ms a MB
	least      float64
	done       window.Bins
	cancelled  window.Bins
	running    float64 // ended and cancelled
	short      int     // bins of done that are left out as too short
	floor      float64 // delta of the least size
	delta, psi float64 // of the mean size
	ended      float64 // not cut off
	exposed    float64 // time beyond delta
	outliers   int64
}

func newSizes(p Point, slope float64) sizes {
	s := sizes{mb: p.MB, low: p.MB, slope: slope, done: p.Done, cancelled: p.Cancelled}
	if p.LeastMB > 0 && p.LeastMB < p.MB {
		s.low = p.LeastMB
	}
	s.least = float64(p.Least) / 1000
	if p.Least == window.NullInt {
		low, _ := window.BinBounds(p.Done.Index[0])
		s.least = float64(low) / 1000
	}
	return s
}

// begin sets delta and psi by themselves: the first from the least delay, the second
// from the time beyond it, nothing cut off.
func (s *sizes) begin() {
	s.set(s.least)
	s.psi = math.Inf(1)
	s.expose()
	s.psi = max(s.exposed/s.ended, 1e-3)
}

// set takes delta of the least size, and of the mean size by the slope.
func (s *sizes) set(floor float64) {
	s.floor, s.delta = floor, floor+float64(s.slope*(s.mb-s.low))
}

// follow takes over what the lines say of these sizes.
func (s *sizes) follow(delta, psi line) {
	s.slope, s.psi = delta.slope, max(psi.at(s.mb), 1e-3)
}

// measure computes delta of the least size and how far it may be off, and the time
// beyond delta.
func (s *sizes) measure() (floor, off float64) {
	s.trim()
	first, bin := s.first()
	above := s.above()
	floor = max(0, first-above)
	s.set(floor)
	s.expose()
	return floor, max(above, bin, 1e-3)
}

// above is by how much the least delay lies above delta of the least size. The least
// of n exponentials lies Psi/n above their beginning, give or take as much. If sizes
// are spread evenly, so that delta is spread over w, then n·x²/(2·w·Psi) delays are
// expected within x of the least delta while x is small: the first of them lies at
// √(π/2)·√(w·Psi/n) on average.
func (s *sizes) above() float64 {
	one := s.psi / s.running
	w := 2 * s.slope * (s.mb - s.low)
	return min(max(one, math.Sqrt(math.Pi/2*w*one)), w+one)
}

// trim leaves out the lowest samples while the gap to the next is too wide for chance.
// The spacing between the i-th and the next of n is exponential with mean Psi/(n−i).
func (s *sizes) trim() {
	s.short = 0
	total := s.done.Count() + s.cancelled.Count()
	ended := float64(s.done.Count())
	var below int64
	for i := 0; i+1 < len(s.done.Index); i++ {
		if below += s.done.Counts[i]; float64(below) > leftOut*ended {
			return
		}
		_, most := window.BinBounds(s.done.Index[i])
		next, _ := window.BinBounds(s.done.Index[i+1])
		if float64(next-most)/1000*float64(total-below) > gap*s.psi {
			s.short = i + 1
		}
	}
}

// first is the least delay that is kept, and how far it may be off.
func (s *sizes) first() (least, off float64) {
	low, high := window.BinBounds(s.done.Index[s.short])
	s.running = float64(s.done.Count() + s.cancelled.Count())
	if s.short == 0 {
		return s.least, 0
	}
	return float64(low+high) / 2000, float64(high-low) / 2000
}

// expose adds up the time beyond delta, up to the cut.
func (s *sizes) expose() {
	s.ended, s.exposed, s.outliers = 0, 0, 0
	end := s.delta + float64(cut*s.psi)
	for i, b := range s.done.Index {
		n := float64(s.done.Counts[i])
		if i < s.short {
			s.outliers += s.done.Counts[i]
			continue
		}
		d := middle(b)
		if d > end {
			s.exposed += float64(n * (end - s.delta))
			s.outliers += s.done.Counts[i]
			continue
		}
		s.ended += n
		// Deltas of tasks of several sizes add up to that of their mean: what lies
		// below it counts too, down to the delta of the least.
		s.exposed += float64(n * (max(d, s.floor) - s.delta))
	}
	for i, b := range s.cancelled.Index {
		s.exposed += float64(float64(s.cancelled.Counts[i]) * (max(min(middle(b), end), s.floor) - s.delta))
	}
	s.ended, s.exposed = max(s.ended, 1), max(s.exposed, 1e-6)
}

func middle(bin uint16) float64 {
	low, high := window.BinBounds(bin)
	return float64(low+high) / 2000
}
