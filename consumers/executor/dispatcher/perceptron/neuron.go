package perceptron

import "math"

const (
	// blind and informed are the weights of where a neuron starts, in requests, if that is
	// anything, and if it comes from other servers.
	blind, informed = 0.02, 1
	// young is how many requests of a kind a neuron may still take its start for nonsense.
	young = 8
	// nonsense is the factor by which an estimate must be off for that.
	nonsense = 10
	// follow is the weight of one request in the mean errors that notice a step.
	follow = 0.1
	// onesided is the share of the mean error that must be of one sign for a step: 1 if all
	// errors are. Exponential service times exceed 0.8 about once in a hundred requests.
	onesided = 0.8
	// stepLeast is the weight of the five requests that a step shows in at the least.
	stepLeast = 0.4
	// leastWeight and mostWeight bound the root of a request's weight.
	leastWeight, mostWeight = 1e-4, 1e2
	// rounding is the least share of an input's information that the others don't have.
	rounding = 1e-12
	// beyond is how many times the longest wait a weight of sums may be.
	beyond = 3
	// shaken is what is left of the past's weight after a step.
	shaken = 0.1
)

// Neuron is one perceptron: relu(w1·x1 + w2·x2 + w3). Its zero value is not usable.
type Neuron struct {
	o *Options
	w [3]float64
	// a is Σ λ^age · x·xᵀ plus a small multiple of the unit matrix: the information of
	// Recursive, upper triangle by rows; unit is that multiple, the mean of (u·x)² of each
	// input where it isn't 0.
	a    [6]float64
	unit [3]float64
	// trust is the weight of the start, in requests.
	trust float64
	// n counts what was learned, of static and of dynamic requests.
	n [2]uint32
	// level is the mean of log t of each kind, that of the last few.
	level [2]float64
	// ref is the time in units of which errors weigh: the first that was learned. A time of
	// k·ref counts 1/k², for what takes longer also varies more, and a short request is not
	// to be estimated by what is left over of long ones.
	ref float64
	// signed and size are the mean of the errors and of their sizes, weighed so, of what
	// came since the last step, which is their weight.
	signed, size, weight float64
	// sums says that x2 is a sum like x1, and not the kind of the request: no weight of an
	// input may be negative then, since more in front never shortens a wait.
	sums bool
	// largest of the inputs and longest of the times, of sums; both fade as the past does.
	largest, longest float64
}

// NewNeuron returns a neuron that starts at w1, w2 and w3; w3 is dropped without a bias.
func NewNeuron(o Options, w [3]float64) (*Neuron, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	n := new(Neuron)
	n.start(&o, w, blind)
	return n, nil
}

// start begins at weights that count as much as trust requests.
func (n *Neuron) start(o *Options, w [3]float64, trust float64) {
	if o.NoBias {
		w[2] = 0
	}
	*n = Neuron{o: o, w: w, trust: trust, a: [6]float64{0: 1, 3: 1, 5: 1}, sums: n.sums}
}

// Weights returns w1, w2 and w3.
func (n *Neuron) Weights() [3]float64 { return n.w }

// Learned is the number of times it has learned.
func (n *Neuron) Learned() int { return int(n.n[0]) + int(n.n[1]) }

// Estimate returns relu(w·x).
func (n *Neuron) Estimate(x1, x2 float64) float64 {
	return max(0, n.w[0]*x1+n.w[1]*x2+n.w[2])
}

// Learn teaches that t belonged to x1 and x2. What is no time, or an
// input of no size, is left out.
func (n *Neuron) Learn(x1, x2, t float64) {
	if !(t >= 0 && t <= longest && math.Abs(x1) < 1e9 && math.Abs(x2) < 1e9) {
		return
	}
	if !n.sums {
		t = max(t, leastTime) // no service takes less than a clock shows
	}
	x := [3]float64{x1, x2, 1}
	if n.o.NoBias {
		x[2] = 0
	}
	for i := range x {
		if math.Abs(x[i]) < 1e-9 { // its square would vanish
			x[i] = 0
		}
	}
	z := n.w[0]*x[0] + n.w[1]*x[1] + n.w[2]*x[2]
	kind := 0
	if !n.sums && x2 > 0.5 {
		kind = 1
	}
	switch {
	case n.o.Rule == Gradient:
		if z > 0 {
			n.move(x, -2*n.o.Eta*(z-t))
		}
	case n.foolish(z, t, kind):
		n.restart(x, z, kind)
	default:
		n.step(x, z, t)
	}
	if n.n[kind] < math.MaxInt32 {
		n.n[kind]++
	}
	if n.sums {
		n.bound(x1, x2, t)
	}
}

// bound keeps weights of sums where they can be: those of inputs at 0 or more, and none
// so high that behind the largest of the last sums a wait is estimated to be more than a few
// times the longest of the last times. Where both sums grow together, as in a long queue,
// and waits have their noise, nothing else holds the weight of each.
func (n *Neuron) bound(x1, x2, t float64) {
	n.project()
	if x1 > 0 || x2 > 0 { // both fade or none, else true weights would come to be out of bounds
		n.largest, n.longest = max(x1, x2, n.largest*n.o.Forget), n.longest*n.o.Forget
	}
	n.longest = max(t, n.longest)
	most := beyond * n.longest
	n.w[2] = min(max(-most, n.w[2]), most)
	if n.largest > 0 {
		most /= n.largest
		n.w[0], n.w[1] = min(n.w[0], most), min(n.w[1], most)
	}
}

// project takes a weight of an input that has come below 0 back to it, and has the others
// follow as the information says: what is found is the best that has no such weight. To cut
// it off alone would have the others made up for it again and again.
func (n *Neuron) project() {
	if n.o.Rule == Recursive {
		for i := range 2 {
			if n.w[i] < 0 {
				var unit [3]float64
				unit[i] = 1
				g := n.solve(unit)
				n.move(g, -n.w[i]/g[i])
				n.w[i] = 0
			}
		}
		if n.w[0] < 0 { // by the other
			n.w[2] += n.a[2] / n.a[5] * n.w[0]
		}
	}
	n.w[0], n.w[1] = max(0, n.w[0]), max(0, n.w[1])
}

// foolish reports whether a neuron that has hardly learned is so far off that its start
// can't have been meant for this server. It also keeps the level of the kind.
func (n *Neuron) foolish(z, t float64, kind int) bool {
	if n.sums || t <= 0 || n.n[kind] >= young {
		return false
	}
	if n.n[kind] == 0 {
		n.level[kind] = math.Log(t)
	} else {
		n.level[kind] += (math.Log(t) - n.level[kind]) / 2
	}
	return z*nonsense < t || z > t*nonsense
}

// restart begins anew from the levels of static and dynamic requests, without a slope. If
// the other kind has not been seen, its distance is scaled by what this kind is off.
func (n *Neuron) restart(x [3]float64, z float64, kind int) {
	own := math.Exp(n.level[kind])
	apart := 0.0 // dynamic − static
	switch {
	case n.n[1-kind] > 0 && kind == 0:
		apart = math.Exp(n.level[1]) - own
	case n.n[1-kind] > 0:
		apart = own - math.Exp(n.level[0])
	case z > 0:
		apart = n.w[1] * own / z
	}
	static := own
	if kind == 1 {
		apart = min(apart, own) // no static request takes less than nothing
		static = own - apart
	}
	n.w = [3]float64{0, apart, static}
	if n.o.NoBias {
		n.w = [3]float64{0, apart, 0}
		if x[0] > 1e-6 {
			n.w[0] = static / x[0]
		}
	}
	n.a, n.unit = [6]float64{0: 1, 3: 1, 5: 1}, [3]float64{}
	n.ref = own
	n.absorb(x, 1)
	n.signed, n.size, n.weight = 0, 0, 0
}

// step learns from one request by Recursive or Normalised.
func (n *Neuron) step(x [3]float64, z, t float64) {
	if n.ref == 0 {
		n.ref = t
	}
	u := 1.0
	if !n.sums && n.ref > 0 {
		// By the estimate, for weights by the time itself would favour short ones; unless it
		// is far too low, where a request would outweigh all that can correct it.
		u = min(max(n.ref/max(z, t/4), leastWeight), mostWeight)
	}
	// What is below 0 is no estimate of anybody's: it is made good in full, and the error
	// that may be an outlier's is counted from 0.
	e := t - max(0, z)
	if n.Learned() >= young {
		e = min(e, n.o.Clip*(max(0, z)+n.size/u))
	}
	full := e - min(0, z)
	if n.o.Rule == Normalised {
		norm := x[0]*x[0] + x[1]*x[1] + x[2]*x[2]
		n.move(x, max(n.o.Eta, 1/float64(n.Learned()+1))*full/(1e-9+norm))
	} else {
		n.forget()
		n.absorb(x, u)
		n.move(n.solve(x), u*u*full)
	}
	n.signed += follow * (u*e - n.signed)
	n.size += follow * (u*math.Abs(e) - n.size)
	n.weight += follow * (1 - n.weight)
	if n.o.Rule == Recursive && n.weight >= stepLeast && math.Abs(n.signed) > onesided*n.size && math.Abs(n.signed) > 0.01*u*t {
		n.shake()
	}
}

func (n *Neuron) move(x [3]float64, by float64) {
	n.w[0] += by * x[0]
	n.w[1] += by * x[1]
	n.w[2] += by * x[2]
}

// forget lets the past weigh less. The share of the unit matrix stays, so that a direction
// that no request takes for long doesn't lose all its weight (covariance wind-up).
func (n *Neuron) forget() {
	l := n.o.Forget
	for i := range n.a {
		n.a[i] *= l
	}
	for i, at := range diagonal {
		n.a[at] += (1 - l) * blind * n.unit[i]
	}
}

// diagonal are the places of a's diagonal.
var diagonal = [3]int{0, 3, 5}

// absorb adds a request of weight u² to the information.
func (n *Neuron) absorb(x [3]float64, u float64) {
	x = [3]float64{u * x[0], u * x[1], u * x[2]}
	for i, at := range diagonal {
		switch square := x[i] * x[i]; {
		case square == 0:
		case n.unit[i] == 0: // the first that has this input: nothing is beside the diagonal
			n.unit[i], n.a[at] = square, n.trust*square
		default:
			n.unit[i] += follow * (square - n.unit[i])
		}
	}
	n.a[0] += x[0] * x[0]
	n.a[1] += x[0] * x[1]
	n.a[2] += x[0] * x[2]
	n.a[3] += x[1] * x[1]
	n.a[4] += x[1] * x[2]
	n.a[5] += x[2] * x[2]
}

// solve returns a⁻¹·x by Cholesky's decomposition. a is positive definite, since it always
// holds a share of the unit matrix; a share that is lost by rounding is made up for.
func (n *Neuron) solve(x [3]float64) [3]float64 {
	a := &n.a
	l11 := math.Sqrt(a[0])
	l21, l31 := a[1]/l11, a[2]/l11
	l22 := math.Sqrt(max(a[3]-l21*l21, rounding*a[3]))
	l32 := (a[4] - l31*l21) / l22
	l33 := math.Sqrt(max(a[5]-l31*l31-l32*l32, rounding*a[5]))
	y1 := x[0] / l11
	y2 := (x[1] - l21*y1) / l22
	y3 := (x[2] - l31*y1 - l32*y2) / l33
	z3 := y3 / l33
	z2 := (y2 - l32*z3) / l22
	z1 := (y1 - l21*z2 - l31*z3) / l11
	return [3]float64{z1, z2, z3}
}

// part sets what dynamic requests take longer than static ones, and leaves the estimates of
// the other kind than the given one as they are.
func (n *Neuron) part(apart float64, dynamic bool) {
	if !dynamic && !n.o.NoBias {
		n.w[2] -= apart - n.w[1]
	}
	n.w[1] = apart
}

// quicken multiplies all estimates by f, since the server changed its speed by that.
func (n *Neuron) quicken(f float64) {
	for i := range n.w {
		n.w[i] *= f
	}
	n.ref *= f
	n.longest *= f
	for k := range n.level {
		n.level[k] += math.Log(f)
	}
	n.signed, n.size, n.weight = 0, 0, 0
}

// shake lets the past weigh much less from now on.
func (n *Neuron) shake() {
	for i := range n.a {
		n.a[i] *= shaken
	}
	n.signed, n.size, n.weight = 0, 0, 0
}

// rescale follows a change of unit: the inputs become f1 and f2 times what they were. No
// estimate changes by it but for rounding.
func (n *Neuron) rescale(f1, f2 float64) {
	n.w[0] /= f1
	n.w[1] /= f2
	n.a[0] *= f1 * f1
	n.a[1] *= f1 * f2
	n.a[2] *= f1
	n.a[3] *= f2 * f2
	n.a[4] *= f2
	n.largest *= max(f1, f2)
	n.unit[0] *= f1 * f1
	n.unit[1] *= f2 * f2
}
