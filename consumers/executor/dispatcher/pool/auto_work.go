package pool

import "math"

// work is what a zone's requests have in common: t/f = w1 + w2·size + w3·dynamic + w4·k,
// where k is how many others were in service when one started, and f is the server's
// factor. The first three are a request's own part, its work; w4 is what each other one
// adds. It is learned by recursive least squares with little forgetting, for in a long
// queue k is always the same and tells nothing, weighed by 1/t² as times vary with what
// they are.
type work struct {
	w      [4]float64
	p      [4][4]float64 // inverse of the information
	n      int
	mean   float64 // of work, s
	others float64 // w4, s
	size   float64 // mean, bytes: the unit of size
	drift  float64 // mean of the logarithms by which f is followed
	level  float64 // mean logarithm of f, over requests
}

// speed is what auto keeps of a server: f, and how many it has learned by.
type speed struct {
	f float64
	n int
	t float64 // s that the request would take that is being placed
}

// follow has a server's factor learn by how many times longer a request took than was
// estimated: in logarithms, so that an outlier doesn't stand for a slow server.
//
// f and w have a scale in common that nothing else fixes. The mean of logarithms is below
// the logarithm of a mean, by which w goes: what all servers have of that in common is
// taken off, else all factors would fall without end. And they are drawn towards a mean
// logarithm of 0, lest they wander.
func (k *work) follow(v *speed, times float64) {
	step := min(max(math.Log(times), -2), 2)
	k.drift += followScale * (step - k.drift)
	v.f *= math.Exp(max(followF, 1/float64(v.n+1))*float64(step-k.drift) - float64(followScale*k.level))
	v.f = min(max(v.f, 1e-3), 1e3)
	v.n++
	k.level += followScale * (math.Log(v.f) - k.level)
}

// revise a server's factor by a trial, see trial.go. It tells nothing of what the zone has
// in common; until that is known, a trial is a request like others.
func (k *work) revise(s *server, j *job, seconds float64) (more bool) {
	if k.n < settled {
		k.learn(s, j, seconds)
		return false
	}
	by, more := s.own.add(longer(seconds, s.auto.f*(k.of(j)+k.others*float64(j.found))))
	s.auto.f = min(max(s.auto.f*by, 1e-3), 1e3)
	return more
}

const (
	remember    = 0.9995 // forgetting
	settled     = 30     // requests, before which nothing is told apart
	followF     = 0.05   // weight of a request in f
	followScale = 0.005  // and in what all f have in common
	leastWork   = 0.1    // of the mean
	firstGuess  = 0.01   // s
)

func newWork() work {
	var k work
	for i := range k.p {
		k.p[i][i] = 1
	}
	k.p[3][3] = 0.1
	k.mean, k.others = firstGuess, firstGuess/2
	return k
}

func (k *work) inputs(j *job) [4]float64 {
	x := [4]float64{1, 0, 0, float64(j.found)}
	if k.size > 0 {
		x[1] = j.size / k.size
	}
	if j.dynamic {
		x[2] = 1
	}
	return x
}

// of is the work of a job, s of a server of factor 1.
func (k *work) of(j *job) float64 {
	if k.n < settled {
		return k.mean
	}
	x := k.inputs(j)
	return max(k.w[0]+k.w[1]*x[1]+k.w[2]*x[2], leastWork*k.mean)
}

// factor of a server, raised by how much longer requests run there than was estimated.
func (k *work) factor(now int64, s *server) float64 { return s.auto.f * s.slowdown(now) }

// time that a job takes at a server beside so many others, s.
func (k *work) time(now int64, s *server, work float64, others int) float64 {
	return k.factor(now, s) * (work + k.others*float64(max(others, 0)))
}

// learn from a job that found j.found others in service.
func (k *work) learn(s *server, j *job, seconds float64) {
	if !(seconds > 0) || math.IsInf(seconds, 1) {
		return
	}
	if k.size == 0 {
		k.size = max(j.size, 1)
	}
	x := k.inputs(j)
	t := seconds / s.auto.f
	z := 0.0
	for i := range x {
		z += k.w[i] * x[i]
	}
	if k.n >= settled {
		z = max(z, leastWork*k.mean)
		k.follow(&s.auto, t/z)
	}
	u := 1 / max(z, t/4, 1e-6)
	e := t - z
	if k.n >= settled {
		e = min(e, 4*max(z, k.mean))
	}
	k.step(x, u, e)
	if k.n < settled {
		k.mean += (max(t, 1e-6)/2 - k.mean) / float64(k.n+1)
		k.others = k.mean / 2
	} else {
		k.others = min(max(k.w[3], 0), 10*k.mean)
		own := max(k.w[0]+k.w[1]*x[1]+k.w[2]*x[2], leastWork*k.mean)
		k.mean = max(k.mean+0.01*(own-k.mean), 1e-6)
	}
	k.n++
}

// step is one of recursive least squares, of weight u².
func (k *work) step(x [4]float64, u, e float64) {
	var g [4]float64
	d := remember
	for i := range x {
		for l := range x {
			g[i] += k.p[i][l] * x[l] * u
		}
		d += u * x[i] * g[i]
	}
	for i := range x {
		k.w[i] += g[i] / d * u * e
	}
	for i := range x {
		for l := range x {
			k.p[i][l] = (k.p[i][l] - g[i]*g[l]/d) / remember
		}
	}
	k.bound()
}

const (
	// mostUnknown is what p grows to in directions in which no request tells anything, such
	// as that of 1 against dynamic while all are dynamic.
	mostUnknown = 1e3
	// wide is where in p it is begun to keep it below that.
	wide = mostUnknown / 10
)

// bound keeps p from growing without end where nothing is learned while it is forgotten:
// p − δ·p² has the directions of p, and lets the extent of none pass mostUnknown. To bound
// its entries one by one would turn them, until nothing of p was true, and after a million
// requests none of its numbers one.
func (k *work) bound() {
	if max(k.p[0][0], k.p[1][1], k.p[2][2], k.p[3][3]) <= wide {
		return
	}
	const delta = (1/remember - 1) / mostUnknown
	p := k.p
	for i := range p {
		for l := range p {
			square := 0.0
			for m := range p {
				square += p[i][m] * p[m][l]
			}
			k.p[i][l] -= delta * square
		}
	}
}
