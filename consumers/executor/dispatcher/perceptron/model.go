package perceptron

import "math"

const (
	// fade is what a running maximum is multiplied by at each request that had something
	// ahead: half after 700, so that one long queue doesn't make all later ones look alike.
	fade = 0.999
	// leastSum is the least that a running maximum of bytes ahead falls to.
	leastSum = 1
	// firstSum stands for the running maximum until a request had something ahead.
	firstSum = 64 << 10
	// errorFollow is the weight of one request in the mean errors of Error.
	errorFollow = 0.02
)

// Model is what is known of one server. Make it with New.
type Model struct {
	o       Options
	service []Neuron  // by size class
	scale   []float64 // bytes at which x1 of the class is 1
	known   []bool    // the class has learned, or has a prior
	given   []bool    // the class has a prior
	wait    Neuron
	ahead   float64 // running maximum of the sums of bytes ahead
	begun   bool    // ahead is that of some, or of the prior

	serviceError, waitError relative
	pace                    pace
}

// relative is a mean relative error: that of sizes over that of true values, so that short
// times don't count for more than they cost.
type relative struct{ off, of float64 }

func (r *relative) add(estimate, t float64) {
	r.off += errorFollow * (math.Abs(estimate-t) - r.off)
	r.of += errorFollow * (t - r.of)
}

func (r *relative) value() float64 {
	if r.of < 1e-12 { // no time that anybody measured
		return 0
	}
	return r.off / r.of
}

// New returns the model of a server of which nothing is known but the prior; the zero
// Prior is none, and a prior for other size classes counts as none. The error wraps
// ErrOptions and names the field.
func New(o Options, p Prior) (*Model, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	n := len(o.Classes) + 1
	m := &Model{o: o, service: make([]Neuron, n), scale: make([]float64, n), known: make([]bool, n), given: make([]bool, n), ahead: firstSum}
	copy(m.scale, o.Classes)
	m.scale[n-1] = 1 << 20
	if n > 1 {
		m.scale[n-1] = 4 * o.Classes[n-2]
	}
	for i := range m.service {
		m.service[i].start(&m.o, o.constant(o.Start), blind)
	}
	m.wait.sums = true
	m.wait.start(&m.o, [3]float64{}, blind)
	if o.Rule == Gradient { // one that starts at 0 would be dead
		m.wait.start(&m.o, [3]float64{o.Start, o.Start, 0}, blind)
	}
	m.begin(p)
	m.pace = newPace(m.service)
	return m, nil
}

// constant are weights that estimate t everywhere, or where x1 is 1 if there is no bias.
func (o *Options) constant(t float64) [3]float64 {
	if o.NoBias {
		return [3]float64{t, t, 0}
	}
	return [3]float64{0, 0, t}
}

// class returns the size class of a request.
func (m *Model) class(size float64) int {
	for i, c := range m.o.Classes {
		if size <= c {
			return i
		}
	}
	return len(m.o.Classes)
}

func kindOf(dynamic bool) float64 {
	if dynamic {
		return 1
	}
	return 0
}

// Service estimates the service time of a request of a size in bytes, in seconds, 0 or
// more. A class of which nothing is known goes by the nearest of which something is, and one
// that has seen no dynamic or no static request by the nearest that has seen both. With the
// rule Gradient each class goes by itself, as in the paper.
func (m *Model) Service(size float64, dynamic bool) float64 {
	size = max(1, positive(size))
	c := m.class(size)
	x2 := kindOf(dynamic)
	if m.o.Rule == Gradient {
		return m.service[c].Estimate(size/m.scale[c], x2)
	}
	if !m.known[c] {
		if near := m.nearest(c); near >= 0 {
			return m.beyond(near, c, size, x2)
		}
	}
	if apart, ok := m.apart(c, x2); ok {
		return max(0, m.service[c].Estimate(size/m.scale[c], 1-x2)+apart*(2*x2-1))
	}
	return m.service[c].Estimate(size/m.scale[c], x2)
}

// apart is by how much dynamic requests differ from static ones, as the nearest class says
// that has seen both, if class c has seen only those that are not of kind x2.
func (m *Model) apart(c int, x2 float64) (seconds float64, ok bool) {
	if k := int(x2); m.given[c] || m.service[c].n[k] > 0 || m.service[c].n[1-k] == 0 {
		return 0, false
	}
	for d := 1; d < len(m.service); d++ {
		for _, near := range [2]int{c - d, c + d} {
			if near >= 0 && near < len(m.service) && m.service[near].n[0] > 0 && m.service[near].n[1] > 0 {
				return m.service[near].w[1], true
			}
		}
	}
	return 0, false
}

// nearest is the known class that is nearest to c, the lower one of two, or −1.
func (m *Model) nearest(c int) int {
	for d := 1; d < len(m.known); d++ {
		if c-d >= 0 && m.known[c-d] {
			return c - d
		}
		if c+d < len(m.known) && m.known[c+d] {
			return c + d
		}
	}
	return -1
}

// beyond estimates by the line of another class, which is held between no growth with the
// size and growth in proportion to it: a slope learned within a class may be mere noise.
func (m *Model) beyond(near, c int, size, x2 float64) float64 {
	edge := m.scale[near]
	if near > c {
		edge = m.o.Classes[near-1]
	}
	at := m.service[near].Estimate(edge/m.scale[near], x2)
	line := m.service[near].Estimate(size/m.scale[near], x2)
	ratio := at * size / edge
	return min(max(line, min(at, ratio)), max(at, ratio))
}

// LearnService teaches what the service of a request took, in seconds.
func (m *Model) LearnService(size float64, dynamic bool, seconds float64) {
	if !(seconds >= 0 && seconds <= longest) {
		return
	}
	m.serviceError.add(m.Service(size, dynamic), seconds)
	m.learnService(size, dynamic, seconds)
}

func (m *Model) learnService(size float64, dynamic bool, seconds float64) {
	size = max(1, positive(size))
	c := m.class(size)
	estimate := m.Service(size, dynamic)
	n := &m.service[c]
	if m.o.Rule != Gradient {
		if !m.known[c] {
			m.seed(c)
		}
		if apart, ok := m.apart(c, kindOf(dynamic)); ok {
			n.part(apart, dynamic)
		}
	}
	m.known[c] = true
	if size > m.scale[c] { // only in the class without an end
		f := m.scale[c] / size
		n.rescale(f, 1)
		m.pace.rescale(c, f)
		m.scale[c] = size
	}
	o := observed{class: c, x1: size / m.scale[c], x2: kindOf(dynamic), t: seconds}
	n.Learn(o.x1, o.x2, seconds)
	if m.o.Rule == Gradient || n.Learned() <= young {
		return // the first errors tell of the start, not of the server
	}
	if f := m.pace.add(o, estimate, m.service); f != 1 {
		m.pace.change(f, m.service)
	}
}

// LearnAfresh teaches as LearnService does, of a server of which nothing was heard for long:
// before, all its estimates, of waiting too, are multiplied by a number above 0. What is
// said of the error of estimates is by those before.
func (m *Model) LearnAfresh(size float64, dynamic bool, seconds, by float64) {
	if !(seconds >= 0 && seconds <= longest) {
		return
	}
	m.serviceError.add(m.Service(size, dynamic), seconds)
	if by > 0 && !math.IsInf(by, 1) && m.Learned() > 0 {
		m.quicken(by)
	}
	m.learnService(size, dynamic, seconds)
}

// quicken multiplies all estimates by f.
func (m *Model) quicken(f float64) {
	for i := range m.service {
		m.service[i].quicken(f)
	}
	m.wait.quicken(f)
	m.pace.quicken(f)
}

// seed starts a class from what was estimated for it by another.
func (m *Model) seed(c int) {
	near := m.nearest(c)
	if near < 0 {
		return
	}
	low := 0.0
	if c > 0 {
		low = m.o.Classes[c-1] / m.scale[c]
	}
	m.service[c].start(&m.o, m.o.through(low, [3]float64{
		m.beyond(near, c, low*m.scale[c], 0), m.beyond(near, c, m.scale[c], 0), m.beyond(near, c, m.scale[c], 1),
	}), blind)
}

// through are the weights of a neuron that gives at[0] at (low, 0), at[1] at (1, 0) and
// at[2] at (1, 1); without a bias, at[0] is let go.
func (o *Options) through(low float64, at [3]float64) [3]float64 {
	if o.NoBias {
		return [3]float64{at[1], at[2] - at[1], 0}
	}
	slope := (at[1] - at[0]) / (1 - low)
	return [3]float64{slope, at[2] - at[1], at[1] - slope}
}

// Wait estimates how long a request waits behind sums of bytes of static and dynamic
// requests, in seconds, 0 or more.
func (m *Model) Wait(static, dynamic float64) float64 {
	return m.wait.Estimate(positive(static)/m.ahead, positive(dynamic)/m.ahead)
}

// WaitWeights returns what Wait goes by: max(0, bias + perStatic·static +
// perDynamic·dynamic), in seconds and seconds per byte. The weights of bytes are 0 or more,
// the bias may be negative.
func (m *Model) WaitWeights() (perStatic, perDynamic, bias float64) {
	return m.wait.w[0] / m.ahead, m.wait.w[1] / m.ahead, m.wait.w[2]
}

// LearnWait teaches how long a request waited that had found these sums of bytes ahead, in
// seconds.
func (m *Model) LearnWait(static, dynamic, seconds float64) {
	if !(seconds >= 0 && seconds <= longest) {
		return
	}
	static, dynamic = positive(static), positive(dynamic)
	m.waitError.add(m.Wait(static, dynamic), seconds)
	if static > 0 || dynamic > 0 {
		m.follow(max(leastSum, static, dynamic))
	}
	m.wait.Learn(static/m.ahead, dynamic/m.ahead, seconds)
}

// follow has the running maximum follow a request that had so many bytes ahead.
func (m *Model) follow(bytes float64) {
	switch most := max(fade*m.ahead, bytes); {
	case !m.begun: // nothing has been learned of bytes
		m.begun, m.ahead = true, bytes
	case most != m.ahead:
		m.wait.rescale(m.ahead/most, m.ahead/most)
		m.ahead = most
	}
}

// Error returns the mean relative errors of the estimates, |estimate − truth| over truth,
// of the last fifty or so requests, before they were learned; 0 if there were none.
func (m *Model) Error() (service, wait float64) {
	return m.serviceError.value(), m.waitError.value()
}

// Learned is the number of service times that were learned.
func (m *Model) Learned() int {
	n := 0
	for i := range m.service {
		n += m.service[i].Learned()
	}
	return n
}

// longest is the greatest time that is learned, in seconds; leastTime is what a clock shows.
const (
	longest   = 1e9
	leastTime = 1e-9
)

// positive makes a number of bytes of what may be none; beyond an exabyte it is none.
func positive(v float64) float64 {
	if v > 0 && v < 1e18 {
		return v
	}
	return 0
}
