package threshold

import (
	"math"
	"os"
	"testing"
)

func whole() bool { return os.Getenv("PENSTOCK_WHOLE") == "1" }

// simulated is a function that gives the mean delay of n requests at a rate, over a few
// seeds.
func simulated(m Model, l Limits, rate float64, n, seeds int) func(func(float64) (int, int)) float64 {
	return func(choose func(float64) (int, int)) float64 {
		var sum float64
		for s := range seeds {
			w := &world{model: m, size: l.SizeMB, l: l.Connections, alpha: Smoothing, choose: choose}
			sum += w.run(uint64(s), rate/1000, n)
		}
		return sum / float64(seeds)
	}
}

// The delay of static codes by formula is what the simulation shows.
func TestDelayOfStaticCodes(t *testing.T) {
	m := DefaultRead
	for _, c := range [][2]int{{1, 1}, {2, 1}, {2, 2}, {3, 2}, {6, 3}, {12, 6}, {6, 6}} {
		for _, rho := range []float64{0.3, 0.6, 0.8} {
			rate := rho * m.Capacity(3, c[0], c[1], 16)
			got, _ := Delay(m, paper, c[0], c[1], rate)
			want := simulated(m, paper, rate, 6000, 1)(static(c[0], c[1]))
			if math.Abs(got/want-1) > 0.1 {
				t.Errorf("(%d,%d) at %v: formula %.1f ms, simulation %.1f ms", c[0], c[1], rho, got, want)
			}
		}
	}
}

// For one connection and exponential tasks the wait is that of M/M/1.
func TestOneConnectionIsMM1(t *testing.T) {
	m := Model{DeltaPerMB: 1e-12, Psi: 100}
	l := Limits{Connections: 1, SizeMB: 1, KMax: 1, NMax: 1, RMax: 1}
	for _, rho := range []float64{0.1, 0.5, 0.9} {
		d, q := Delay(m, l, 1, 1, rho*10)
		if math.Abs(d-100/(1-rho)) > 1e-6 || math.Abs(q-rho*rho/(1-rho)) > 1e-9 {
			t.Errorf("%v: got %v ms and %v waiting", rho, d, q)
		}
	}
}

// setting is a store and a coder to be tried.
type setting struct {
	name string
	m    Model
	l    Limits
	// most is how far above the best static code the mean may be.
	most float64
}

// The mean delay by the corrected thresholds stays near the best static code, or below
// it, at every load: 3 % in the paper's setting. CI looks at that alone with fewer
// requests. Elsewhere up to 6 % are left. With few connections more is left near
// capacity: a backlog that falls to nothing for a moment there lets larger codes in,
// whatever the threshold.
func TestCorrectedFollowsTheEnvelope(t *testing.T) {
	settings := []setting{{"paper", DefaultRead, paper, 0.05}}
	shares, n, seeds := []float64{.05, .35, .65, .9}, 8000, 2
	if whole() {
		shares, n, seeds = []float64{.05, .2, .35, .5, .65, .8, .9}, 30_000, 6
		settings[0].most = 0.03
		other := func(name string, m Model, connections int, size float64) {
			l := paper
			l.Connections, l.SizeMB = connections, size
			most := 0.06
			if connections < 16 {
				most = 0.12
			}
			settings = append(settings, setting{name, m, l, most})
		}
		other("write", DefaultWrite, 16, 3)
		other("(30,11,10,17)", Model{30, 11, 10, 17}, 16, 3)
		other("(25,8,10,30)", Model{25, 8, 10, 30}, 16, 3)
		other("(30,10,12,50)", Model{30, 10, 12, 50}, 16, 3)
		other("8 connections", DefaultRead, 8, 3)
		other("64 connections", DefaultRead, 64, 3)
		other("0.3 MB", DefaultRead, 16, 0.3)
		other("20 MB", DefaultRead, 16, 20)
	}
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) { s.follows(t, shares, n, seeds) })
	}
}

func (s setting) follows(t *testing.T, shares []float64, n, seeds int) {
	table, err := Corrected(s.m, s.l)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: K %.3f N %.3f", s.name, table.K, table.N)
	for _, load := range shares {
		rate := load * s.m.Capacity(s.l.SizeMB, 1, 1, s.l.Connections)
		mean := simulated(s.m, s.l, rate, n, seeds)
		best, bn, bk := envelope(s.m, s.l, rate, mean)
		got := mean(table.adaptive(s.l.RMax))
		t.Logf("%s: load %.2f: %.1f ms, best static (%d,%d) %.1f ms, %+.1f %%", s.name, load, got, bn, bk, best, 100*(got/best-1))
		if got > (1+s.most)*best {
			t.Errorf("%s: load %.2f: %.1f ms, best static (%d,%d) %.1f ms", s.name, load, got, bn, bk, best)
		}
	}
}

// At least 80 % of requests use two neighbouring k (issue 6, Must show 2).
func TestTwoNeighbours(t *testing.T) {
	table, err := Corrected(DefaultRead, paper)
	if err != nil {
		t.Fatal(err)
	}
	for _, load := range []float64{.05, .2, .35, .5, .65, .8, .9} {
		w := &world{model: DefaultRead, size: 3, l: 16, alpha: Smoothing, choose: table.adaptive(2)}
		w.run(3, load*DefaultRead.Capacity(3, 1, 1, 16)/1000, 15_000)
		all, most := 0, 0
		for k := range 7 {
			all += w.ks[k]
			most = max(most, w.ks[k]+w.ks[k+1])
		}
		if share := float64(most) / float64(all); share < 0.8 {
			t.Errorf("load %.2f: %.3f of requests on two neighbours of %v", load, share, w.ks)
		}
	}
}

func TestCorrectedTablesFall(t *testing.T) {
	for _, m := range []Model{DefaultRead, DefaultWrite, {Delta: 1, Psi: 1}, {DeltaPerMB: 1, PsiPerMB: 100}, {Delta: 500, PsiPerMB: 1e-3}} {
		for _, connections := range []int{1, 4, 16, 256} {
			for _, size := range []float64{1e-3, 1, 100} {
				l := Limits{Connections: connections, SizeMB: size, KMax: 6, NMax: 12, RMax: 2}
				table, err := Corrected(m, l)
				if err != nil {
					t.Fatal(err)
				}
				last := [2]int{1 << 20, 1 << 20}
				for q := 0.0; q < 100; q = q*1.1 + 1e-4 {
					n, k := table.Code(q, l.RMax)
					if k < 1 || k > 6 || n < k || n > 2*k || n > last[0] || k > last[1] {
						t.Fatalf("%+v, %d connections, %v MB, backlog %v: (%d,%d) after %v of %+v", m, connections, size, q, n, k, last, table)
					}
					last = [2]int{n, k}
				}
				if n, k := table.Code(1e9, l.RMax); n != 1 || k != 1 {
					t.Errorf("any backlog: (%d,%d)", n, k)
				}
			}
		}
	}
}

// An empty queue gets the code that is best over the rates that no average tells apart, which
// for writes is not the one that is best without any load; thresholds begin near the floor.
func TestQuiet(t *testing.T) {
	for _, x := range []struct {
		m    Model
		n, k int
	}{{DefaultRead, 12, 6}, {DefaultWrite, 9, 5}} {
		table, err := Corrected(x.m, paper)
		if err != nil {
			t.Fatal(err)
		}
		full := x.m.Capacity(3, 1, 1, 16)
		if n, k := BestStatic(x.m, paper, full/1000); n != 12 || k != 6 {
			t.Errorf("%+v: without load (%d,%d), expected (12,6)", x.m, n, k)
		}
		if n, k := table.Code(0, paper.RMax); n != x.n || k != x.k {
			t.Errorf("%+v: an empty queue gets (%d,%d) of %+v, expected (%d,%d)", x.m, n, k, table, x.n, x.k)
		}
		_, most := Delay(x.m, paper, 1, 1, 0.9*full)
		floor := most / math.Exp(4)
		for _, h := range append(table.K, table.N...) {
			if h > 0 && h < 0.8*floor {
				t.Errorf("%+v: a threshold of %v, the floor is at %v", x.m, h, floor)
			}
		}
		// Whatever code it is, it is the best one over what the floor leaves as one.
		var sums [2]float64
		for share := 0.001; ; share += 0.001 {
			bn, bk := BestStatic(x.m, paper, share*full)
			if _, q := Delay(x.m, paper, bn, bk, share*full); q >= floor {
				break
			}
			for i, c := range [2][2]int{{12, 6}, {x.n, x.k}} {
				d, _ := Delay(x.m, paper, c[0], c[1], share*full)
				sums[i] += d
			}
		}
		if sums[1] > sums[0] {
			t.Errorf("%+v: (%d,%d) takes %v ms, (12,6) %v ms", x.m, x.n, x.k, sums[1], sums[0])
		}
	}
}

// The cap on requests binds, and a table of one code is empty.
func TestLimitsBind(t *testing.T) {
	l := paper
	l.NMax = 7
	table, err := Corrected(DefaultRead, l)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := table.Code(0, l.RMax); n > 7 || len(table.N) != 6 {
		t.Errorf("n %d of %v", n, table.N)
	}
	l.KMax, l.NMax, l.RMax = 1, 1, 1
	if table, err = Corrected(DefaultRead, l); err != nil || len(table.K)+len(table.N) != 0 {
		t.Errorf("%v, %v", table, err)
	}
}

// By a model in which chunks cost nothing no rate takes a smaller code; a queue that
// grows all the same does, for the model may be wrong.
func TestChunksThatCostNothing(t *testing.T) {
	table, err := Corrected(Model{DeltaPerMB: 12, PsiPerMB: 20}, paper)
	if err != nil {
		t.Fatal(err)
	}
	if n, k := table.Code(0, 2); n != 12 || k != 6 {
		t.Errorf("an empty queue gets (%d,%d) of %+v, expected (12,6)", n, k, table)
	}
	if _, k := table.Code(5, 2); k != 6 {
		t.Errorf("5 waiting get k %d of %+v, expected 6", k, table)
	}
	if n, k := table.Code(1e4, 2); n != 1 || k != 1 {
		t.Errorf("10,000 waiting get (%d,%d) of %+v, expected (1,1)", n, k, table)
	}
}

func TestApart(t *testing.T) {
	a := Table{K: []float64{2, 1e-5}, N: []float64{4}}
	b := Table{K: []float64{1.5, 1e-9}, N: []float64{4}}
	if x := Apart(a, b); x != 0.25 {
		t.Errorf("got %v", x)
	}
	if Apart(a, a) != 0 || Apart(a, Table{}) != 1 {
		t.Error("of the same, and of other lengths")
	}
}

func BenchmarkCorrected(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Corrected(DefaultRead, paper); err != nil {
			b.Fatal(err)
		}
	}
}
