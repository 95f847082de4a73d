package fit

import (
	"cmp"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"penstock/consumers/decider/coding/threshold"
	"penstock/schemas/window"
)

// shop makes tasks of known delays and puts them together as the rollup does: by code
// and bit length of the bytes.
type shop struct {
	model  threshold.Model
	rng    *rand.Rand
	points map[[3]int]*Point
	tasks  map[[3]int]float64
	bytes  map[[3]int]float64
}

func newShop(m threshold.Model, seed uint64) *shop {
	return &shop{model: m, rng: rand.New(rand.NewPCG(seed, 2)), points: map[[3]int]*Point{}, tasks: map[[3]int]float64{}, bytes: map[[3]int]float64{}}
}

func (s *shop) point(n, k int, mb float64) *Point {
	bits := 0
	for v := int64(mb * 1e6); v > 0; v >>= 1 {
		bits++
	}
	key := [3]int{n, k, bits}
	p := s.points[key]
	if p == nil {
		p = &Point{Least: window.NullInt}
		s.points[key] = p
	}
	s.tasks[key]++
	s.bytes[key] += mb * 1e6
	p.MB = s.bytes[key] / s.tasks[key] / 1e6
	if p.LeastMB == 0 || mb < p.LeastMB {
		p.LeastMB = mb
	}
	return p
}

func (p *Point) done(us int64) {
	p.Done.Add(us, 1)
	if p.Least == window.NullInt || us < p.Least {
		p.Least = us
	}
}

// requests serves requests of a size under a code. Tasks start together or, with late,
// one after the other as connections come free.
func (s *shop) requests(count, n, k int, size, late float64) {
	mb := size / float64(k)
	type task struct{ from, to float64 }
	tasks := make([]task, n)
	for range count {
		var from float64
		for i := range tasks {
			tasks[i] = task{from, from + s.model.Fixed(mb) + s.rng.ExpFloat64()*s.model.Mean(mb)}
			from += late * s.rng.ExpFloat64()
		}
		slices.SortFunc(tasks, func(a, b task) int { return cmp.Compare(a.to, b.to) })
		end := tasks[k-1].to
		for i, x := range tasks {
			p := s.point(n, k, mb)
			switch {
			case i < k:
				p.done(int64(1000 * (x.to - x.from)))
			case x.from < end:
				p.Cancelled.Add(int64(1000*(end-x.from)), 1)
			}
		}
	}
}

func (s *shop) list() []Point {
	keys := make([][3]int, 0, len(s.points))
	for k := range s.points {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [3]int) int { return slices.Compare(a[:], b[:]) })
	var out []Point
	for _, k := range keys {
		out = append(out, *s.points[k])
	}
	return out
}

func params(m threshold.Model) [4]float64 {
	return [4]float64{m.Delta, m.DeltaPerMB, m.Psi, m.PsiPerMB}
}

func within(t *testing.T, r Result, truth threshold.Model, share float64) {
	t.Helper()
	got, want := params(r.Model), params(truth)
	for i := range got {
		if math.Abs(got[i]-want[i]) > share*want[i] {
			t.Errorf("%s: got %.3f (%.3f to %.3f), expected %v", names[i], got[i], r.Intervals[i].Low, r.Intervals[i].High, want[i])
		}
	}
	if t.Failed() {
		t.Logf("%+v", r)
	}
}

// other is a prior that is wrong in every parameter.
var other = threshold.Model{Delta: 60, DeltaPerMB: 3, Psi: 35, PsiPerMB: 8}

var truths = []threshold.Model{threshold.DefaultRead, threshold.DefaultWrite, {Delta: 30, DeltaPerMB: 10, Psi: 12, PsiPerMB: 50}}

// Issue 6, Must show 3: objects of several sizes under each code, and all codes.
// With PENSTOCK_WHOLE=1 from more seeds.
func TestParametersAreRecovered(t *testing.T) {
	seeds := uint64(1)
	if os.Getenv("PENSTOCK_WHOLE") == "1" {
		seeds = 6
	}
	for _, truth := range truths {
		for seed := range seeds {
			for _, codes := range [][][2]int{{{12, 6}}, {{6, 3}}, {{2, 1}}, {{12, 6}, {6, 3}, {2, 1}, {1, 1}}} {
				for _, late := range []float64{0, 3} {
					s := newShop(truth, seed)
					for _, c := range codes {
						for _, size := range []float64{0.3, 1, 3, 8} {
							s.requests(12_000/c[0], c[0], c[1], size, late)
						}
					}
					r := Fit(s.list(), other, Options{MinSamples: 200})
					if r.Kept || len(r.Untold) > 0 {
						t.Errorf("%v: %+v", codes, r)
					}
					within(t, r, truth, 0.1)
				}
			}
		}
	}
}

// Objects of one size, 3 MB, under several codes: chunk sizes differ, and it is enough.
func TestOneObjectSizeUnderSeveralCodes(t *testing.T) {
	s := newShop(threshold.DefaultRead, 5)
	for _, c := range [][2]int{{12, 6}, {6, 3}, {2, 1}} {
		s.requests(1000, c[0], c[1], 3, 0)
	}
	within(t, Fit(s.list(), other, Options{MinSamples: 200}), threshold.DefaultRead, 0.1)
}

// One chunk size only: the delay of that size is found, the rest stands as it was, and
// the result says so. A fit from a fit is the same.
func TestOneChunkSizeKeepsThePrior(t *testing.T) {
	for _, c := range [][2]int{{12, 6}, {6, 3}, {2, 1}} {
		truth := threshold.DefaultRead
		s := newShop(truth, 3)
		s.requests(1000, c[0], c[1], 3, 0)
		r := Fit(s.list(), other, Options{MinSamples: 200})
		b := 3 / float64(c[1])
		if f, p := r.Model.Fixed(b), r.Model.Mean(b); math.Abs(f/truth.Fixed(b)-1) > 0.05 || math.Abs(p/truth.Mean(b)-1) > 0.1 {
			t.Errorf("%v: at %v MB got %.2f + Exp %.2f, expected %v + Exp %v", c, b, f, p, truth.Fixed(b), truth.Mean(b))
		}
		if len(r.Untold) != 4 {
			t.Errorf("%v: untold %v", c, r.Untold)
		}
		again := Fit(s.list(), r.Model, Options{MinSamples: 200})
		a, b4 := params(again.Model), params(r.Model)
		for i := range a {
			if math.Abs(a[i]-b4[i]) > 0.01*b4[i]+0.01 {
				t.Errorf("%v: %s went from %v to %v", c, names[i], b4[i], a[i])
			}
		}
		// The truth as the prior stays.
		within(t, Fit(s.list(), truth, Options{MinSamples: 200}), truth, 0.1)
	}
}

// Completed tasks alone would show a third of Psi at (12,6): the cancelled ones matter.
func TestCancelledTasksCount(t *testing.T) {
	s := newShop(threshold.DefaultRead, 1)
	for _, size := range []float64{0.3, 1, 3, 8} {
		s.requests(300, 12, 6, size, 0)
	}
	points := s.list()
	for i := range points {
		points[i].Cancelled = window.Bins{}
	}
	r := Fit(points, other, Options{MinSamples: 200})
	if p := r.Model.Mean(0.5) / threshold.DefaultRead.Mean(0.5); p > 0.5 {
		t.Errorf("without the cancelled ones Psi is %.2f of what it is", p)
	}
}

// Time-outs of a minute and answers from a cache change little, and are counted.
func TestOutliers(t *testing.T) {
	s := newShop(threshold.DefaultRead, 8)
	for _, c := range [][2]int{{12, 6}, {6, 3}, {2, 1}} {
		for _, size := range []float64{0.3, 1, 3, 8} {
			s.requests(3000/c[0], c[0], c[1], size, 0)
		}
	}
	for _, p := range s.points {
		n := p.Done.Count()
		for range n / 100 {
			p.done(60_000_000)
		}
		for range n / 200 {
			p.done(900 + s.rng.Int64N(200))
		}
	}
	r := Fit(s.list(), other, Options{MinSamples: 200})
	within(t, r, threshold.DefaultRead, 0.15)
	if r.Outliers < r.Done/80 {
		t.Errorf("%d outliers of %d", r.Outliers, r.Done)
	}
}

// The intervals hold the truth about as often as they say.
func TestIntervals(t *testing.T) {
	held, all := 0, 0
	for seed := range uint64(60) {
		s := newShop(threshold.DefaultRead, 100+seed)
		for _, size := range []float64{0.3, 1, 3, 8} {
			s.requests(60, 6, 3, size, 0)
		}
		r := Fit(s.list(), other, Options{MinSamples: 200})
		for i, v := range params(threshold.DefaultRead) {
			if all++; r.Intervals[i].Low <= v && v <= r.Intervals[i].High {
				held++
			}
		}
	}
	if share := float64(held) / float64(all); share < 0.88 {
		t.Errorf("%.3f of the intervals hold the truth, expected about 0.95", share)
	}
}

func TestThinDataKeepTheLastFit(t *testing.T) {
	s := newShop(threshold.DefaultRead, 1)
	s.requests(60, 6, 3, 3, 0)
	for name, points := range map[string][]Point{
		"nothing":  nil,
		"few":      s.list(),
		"no size":  {{MB: 0, Done: s.list()[0].Done}},
		"few each": {{MB: 1, Done: window.Bins{Index: []uint16{9}, Counts: []int64{19}}}},
	} {
		if r := Fit(points, other, Options{MinSamples: 200}); !r.Kept || r.Model != other {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// Whatever the samples, parameters are finite and not negative.
func FuzzFit(f *testing.F) {
	f.Add(uint16(300), uint16(310), uint16(900), int64(50), int64(7), 0.5, 2.0)
	f.Add(uint16(0), uint16(0), uint16(0), int64(1<<40), int64(1), 1e-9, 1e6)
	f.Fuzz(func(t *testing.T, a, b, c uint16, n, m int64, x, y float64) {
		if n < 1 || m < 1 || n > 1<<50 || m > 1<<50 || !(x > 0 && x < 1e9 && y > 0 && y < 1e9) {
			return
		}
		bins := func(v ...uint16) (out window.Bins) {
			for _, i := range v {
				if i < window.NumBins/3 { // up to hours
					low, _ := window.BinBounds(i)
					out.Add(low, n)
				}
			}
			return out
		}
		r := Fit([]Point{{MB: x, Least: window.NullInt, Done: bins(a, b), Cancelled: bins(c)}, {MB: y, Least: window.NullInt, Done: bins(c, a), Cancelled: bins(b)}}, threshold.DefaultRead, Options{MinSamples: m})
		for i, v := range params(r.Model) {
			if !(v >= 0) || math.IsInf(v, 0) || !r.Kept && !(r.Intervals[i].Low <= v && v <= r.Intervals[i].High) {
				t.Fatalf("%s: %v of %+v", names[i], v, r)
			}
		}
	})
}

func BenchmarkFit(b *testing.B) {
	s := newShop(threshold.DefaultRead, 1)
	for _, c := range [][2]int{{12, 6}, {6, 3}, {2, 1}} {
		for _, size := range []float64{0.3, 1, 3, 8} {
			s.requests(500, c[0], c[1], size, 0)
		}
	}
	points := s.list()
	b.ReportAllocs()
	for b.Loop() {
		Fit(points, other, Options{MinSamples: 200})
	}
}

// Objects of all sizes: tasks of one bit length differ by up to a factor of two, and
// only their mean and least are known.
func TestObjectsOfAllSizes(t *testing.T) {
	for _, codes := range [][][2]int{{{12, 6}}, {{6, 3}}, {{2, 1}}, {{12, 6}, {6, 3}, {2, 1}, {1, 1}}} {
		s := newShop(threshold.DefaultRead, 7)
		for i := range 6000 {
			c := codes[i%len(codes)]
			s.requests(1, c[0], c[1], 2*math.Exp(1.2*s.rng.NormFloat64()), 1)
		}
		within(t, Fit(s.list(), other, Options{MinSamples: 200}), threshold.DefaultRead, 0.1)
	}
}
