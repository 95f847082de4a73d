package threshold

import (
	"math"
	"testing"
)

// Tasks that start together end at the mean times of order statistics; one that starts
// later joins the others.
func TestRace(t *testing.T) {
	r := race{fixed: 20, mean: 12}
	ends := make([]float64, 4)
	r.run(make([]float64, 4), ends)
	for i, got := range ends {
		if want := 20 + 12*(harmonic(4)-harmonic(3-i)); math.Abs(got-want) > 1e-12 {
			t.Errorf("end %d at %v, expected %v", i+1, got, want)
		}
	}
	// The first one alone goes half of its way by 26; from there on there are two, and
	// one of them has the other half to go: 3 more. The third one begins anew.
	r.run([]float64{0, 6, 30}, ends[:3])
	for i, want := range []float64{29, 41, 62} {
		if math.Abs(ends[i]-want) > 1e-12 {
			t.Errorf("end %d at %v, expected %v of %v", i+1, ends[i], want, ends[:3])
		}
	}
}

// A request that finds all connections taken waits for the end of the other one: that of
// M/G/1 in light traffic, λ·E[T²]/2.
func TestMeetingOnOneConnection(t *testing.T) {
	m := Model{Delta: 30, Psi: 40}
	x := m.meeting(1, 1, 1, 1)
	const want = (30*30 + 2*30*40 + 2*40*40) / 2
	if math.Abs(x.late-want) > 1e-9 || math.Abs(x.waits-want) > 1e-9 {
		t.Errorf("got %+v, expected %v", x, want)
	}
	// Of two connections one task each leaves one for the other request.
	if x := m.meeting(1, 1, 1, 2); x != (meeting{}) {
		t.Errorf("with a connection for each: %+v", x)
	}
}

// Where two requests don't fit into the connections, delay and backlog by formula are what
// the simulation shows, up to half of the capacity: a delay of such a code is a few per
// cent above that of the next smaller one there, and which of the two is best hangs on it.
func TestMeetingsAreWhatIsSimulated(t *testing.T) {
	rhos, n := []float64{0.25}, 20_000
	if whole() {
		rhos, n = []float64{0.1, 0.25, 0.4}, 100_000
	}
	for _, x := range []struct {
		m       Model
		n, k, l int
	}{{DefaultRead, 12, 6, 16}, {DefaultWrite, 12, 6, 16}, {DefaultWrite, 10, 5, 16}, {DefaultWrite, 9, 5, 16}, {DefaultWrite, 11, 6, 16}, {DefaultRead, 6, 3, 8}, {DefaultRead, 8, 4, 8}, {DefaultRead, 3, 2, 4}} {
		l := paper
		l.Connections = x.l
		for _, rho := range rhos {
			rate := rho * x.m.Capacity(3, x.n, x.k, x.l)
			delay, backlog := Delay(x.m, l, x.n, x.k, rate)
			w := &world{model: x.m, size: 3, l: x.l, choose: static(x.n, x.k)}
			mean := w.run(1, rate/1000, n)
			if math.Abs(delay/mean-1) > 0.03 {
				t.Errorf("(%d,%d) over %d at %v: formula %.2f ms, simulation %.2f ms", x.n, x.k, x.l, rho, delay, mean)
			}
			if got := w.met / (1.1 * float64(n)); math.Abs(math.Log(backlog/got)) > math.Log(1.6) {
				t.Errorf("(%d,%d) over %d at %v: formula %.5f waiting, simulation %.5f", x.n, x.k, x.l, rho, backlog, got)
			}
		}
	}
}
