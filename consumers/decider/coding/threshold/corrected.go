package threshold

import (
	"math"
	"slices"
)

// loads is how many request rates between none and the capacity of the smallest code
// are looked at for the code that is best there.
const loads = 1000

// Corrected returns the thresholds for L connections: see the package's documentation.
// It looks at each code at each of 1,000 rates, which takes some milliseconds for codes up
// to (12,6). The error wraps ErrInvalid.
func Corrected(m Model, l Limits) (Table, error) {
	if err := m.Validate(); err != nil {
		return Table{}, err
	}
	if err := l.Validate(); err != nil {
		return Table{}, err
	}
	codes := l.codes(m)
	t := l.table()
	full := float64(l.Connections) / m.Usage(l.SizeMB, l.least(), l.least())
	last, from := quiet(codes, full, codes[0].backlog(busy*full)/settle)
	rate := from
	for i := 1; i < loads; i++ {
		if rate = float64(i) / loads * full; rate < from {
			continue
		}
		best := bestAt(codes, rate)
		if best != last {
			t.between(codes[last], codes[best], rate)
		}
		last = best
	}
	// A model by which chunks cost nothing has a larger code best up to the end, and
	// would have no threshold: it has one at the backlog there.
	t.between(codes[last], codes[0], rate)
	falling(t.K)
	falling(t.N)
	return t, nil
}

// The average of a backlog falls by e in each time that a coder averages over. In four of
// them (settle: e⁴) it falls from what it is where nine tenths of the capacity are used
// (busy), the most that is asked of a coder for long, to a floor.
const (
	busy   = 0.9
	settle = math.E * math.E * math.E * math.E
)

// quiet is the code for an empty queue, and the rate from which on others are taken. A
// threshold below the floor would be reached too late after the load has fallen, and below
// it a backlog is that of few requests that waited: rates at which that of the best code
// is less are not told apart. They get one code, that of the least mean delay over all
// of them.
func quiet(codes []code, full, floor float64) (best int, from float64) {
	sums := make([]float64, len(codes))
	for i := 1; i < loads; i++ {
		from = float64(i) / loads * full
		if codes[bestAt(codes, from)].backlog(from) >= floor {
			break
		}
		for j := range codes {
			sums[j] += codes[j].delay(from)
		}
	}
	for j := range sums {
		if sums[j] < sums[best] {
			best = j
		}
	}
	return best, from
}

// between sets the thresholds that lie between the code that was best below a rate
// and the one that is best from there on. With the first the backlog at that rate is
// some times that with the second; the threshold is as many times above the one as it
// is below the other, so that neither is left because of chance alone.
func (t Table) between(from, to code, rate float64) {
	high, low := from.backlog(rate), to.backlog(rate)
	h := math.Sqrt(high * low)
	for j := to.k; j < from.k; j++ {
		t.K[j-1] = max(t.K[j-1], h)
	}
	for j := to.n; j < from.n; j++ {
		t.N[j-1] = max(t.N[j-1], h)
	}
}

// code is (n,k) with what its queue is computed from.
type code struct {
	n, k     int
	usage    float64 // ms of one of L connections: U/L
	service  float64 // ms
	exponent float64 // e: waiting requests go with rho^e/(1−rho)
	spread   float64 // (1+v²)/2 of Allen and Cunneen
	meeting  meeting // with another request, if there are connections for one only
}

// codes lists what is allowed, from the smallest on: of equal ones the smaller is taken.
func (l Limits) codes(m Model) []code {
	var out []code
	for k := l.least(); k <= l.KMax; k++ {
		for n := k; n <= l.top(k); n++ {
			out = append(out, l.code(m, n, k))
		}
	}
	return out
}

// behindTwo is the exponent where a request waits behind two others: an arrival, and they.
const behindTwo = 3

func (l Limits) code(m Model, n, k int) code {
	u, s := m.Usage(l.SizeMB, n, k), m.Service(l.SizeMB, n, k)
	out := code{n: n, k: k, usage: u / float64(l.Connections), service: s, spread: (1 + m.variance(l.SizeMB, n, k)) / 2}
	if 2*n > l.Connections {
		out.exponent, out.meeting = behindTwo, m.meeting(l.SizeMB, n, k, l.Connections)
		return out
	}
	c := max(1, float64(l.Connections)*s/u)
	out.exponent = math.Sqrt(2 * (c + 1)) // Sakasegawa's.
	return out
}

// backlog is the mean number of waiting requests at a rate (requests a ms); infinite
// if the code doesn't keep up.
func (c *code) backlog(rate float64) float64 {
	return c.queue(rate) + float64(rate*rate*c.meeting.waits)
}

// delay is the mean delay (ms) at a rate (requests a ms); infinite if the code doesn't
// keep up.
func (c *code) delay(rate float64) float64 {
	return c.service + c.queue(rate)/rate + float64(rate*c.meeting.late)
}

// queue is how many requests wait behind as many as there is room for.
func (c *code) queue(rate float64) float64 {
	rho := rate * c.usage
	if rho >= 1 {
		return math.Inf(1)
	}
	return math.Pow(rho, c.exponent) / (1 - rho) * c.spread
}

func bestAt(codes []code, rate float64) int {
	best, least := 0, math.Inf(1)
	for i := range codes {
		if d := codes[i].delay(rate); d < least {
			best, least = i, d
		}
	}
	return best
}

// Delay is the mean delay (ms) of a code at a rate (requests a second) over the
// connections of the limits, and its backlog; both are infinite if it doesn't keep up.
func Delay(m Model, l Limits, n, k int, rate float64) (delay, backlog float64) {
	c := l.code(m, n, k)
	if rate == 0 {
		return c.service, 0
	}
	return c.delay(rate / 1000), c.backlog(rate / 1000)
}

// BestStatic is the code with the least mean delay at a rate (requests a second), by
// the same formulas: what a coder that knew the rate would take.
func BestStatic(m Model, l Limits, rate float64) (n, k int) {
	codes := l.codes(m)
	c := codes[bestAt(codes, rate/1000)]
	return c.n, c.k
}

// Apart is the greatest relative change of a threshold between two tables, relative to
// the greater of the two; 1 if they have different lengths. Thresholds that are both
// below a thousandth of a request are alike: no coder tells them apart.
func Apart(a, b Table) float64 {
	if len(a.K) != len(b.K) || len(a.N) != len(b.N) {
		return 1
	}
	x, y := slices.Concat(a.K, a.N), slices.Concat(b.K, b.N)
	var most float64
	for i := range x {
		if top := max(x[i], y[i]); top > 1e-3 {
			most = max(most, math.Abs(x[i]-y[i])/top)
		}
	}
	return most
}
