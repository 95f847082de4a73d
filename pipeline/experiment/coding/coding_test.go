package coding

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/examples"
	"penstock/infra/shareddata"
	"penstock/pipeline/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// whole reports whether what takes long is to be run as a whole.
func whole() bool { return os.Getenv("PENSTOCK_WHOLE") == "1" }

func defaults(t *testing.T) Params {
	t.Helper()
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// only keeps the stores of some names.
func (p *Params) only(names ...string) {
	var kept []Store
	for _, name := range names {
		kept = append(kept, *p.store(name))
	}
	p.Stores = kept
}

// small is the experiment with few requests, loads and stores, and codes up to (6,3).
func small(t *testing.T) Options {
	t.Helper()
	p := defaults(t)
	p.only("read", "heavy-tail", "s3-put")
	p.Requests, p.Warm, p.KMax, p.Hedges = 600, 200, 3, p.Hedges[:2]
	p.Loads, p.Judged = []int{5, 35, 80}, []int{5, 80}
	p.Learned.Warm, p.Learned.Loads, p.Learned.Windows = 20*time.Second, []int{35}, 4
	p.Course.Seeds, p.Course.Steps, p.Course.Hold, p.Course.Ramp.Over = 3, p.Course.Steps[:1], 10*time.Second, 20*time.Second
	sizes := filepath.Join(t.TempDir(), "sizes")
	if err := os.WriteFile(sizes, []byte("1 a 4000000\n2 b 30000\n3 c 2500000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{Params: p, Seeds: 2, Sizes: sizes}
}

func run(t *testing.T, o Options) *Result {
	t.Helper()
	r, err := Coding(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestGoldenSmall: the tables of a small experiment are what they were, and the same
// parameters and seeds give the same result, byte for byte, however many runs go at
// once.
func TestGoldenSmall(t *testing.T) {
	o := small(t)
	var bodies [2][]byte
	var text strings.Builder
	for i, workers := range []int{1, 3} {
		o.Workers = workers
		r := run(t, o)
		var err error
		if bodies[i], err = r.JSON(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			checkPage(t, r)
			if err := r.Text(&text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !bytes.Equal(bodies[0], bodies[1]) {
		t.Error("one worker and three gave different results")
	}
	const file = "testdata/small.golden"
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("the tables have changed (-update writes them anew):\n%s", text.String())
	}
}

// checkPage sees that the page holds tables and plots and loads nothing.
func checkPage(t *testing.T, r *Result) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, file+".html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	// Five figures and the shares of k of the judged store, two courses of one step, the
	// ramp.
	if n := strings.Count(page, "<img "); n != 5+1+2+1 {
		t.Errorf("%d plots, expected 9", n)
	}
	if n := strings.Count(page, "<table>"); n != len(r.Tables()) {
		t.Errorf("%d tables, expected %d", n, len(r.Tables()))
	}
	for _, foreign := range []string{"http://", "https://", "<script", "src=\"/"} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page has %q", foreign)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, file+".json")); err != nil {
		t.Error(err)
	}
}

// TestWhatIsShown runs a seeded part of the experiment, with PENSTOCK_WHOLE=1 all of it.
// All that issue 6 asks for is reached, told the model and learned, or, of writes, out of
// reach of any code; whatever the figures are, shares add up, no policy asks for less than
// one task, and those who keep up carry what came.
func TestWhatIsShown(t *testing.T) {
	o := Options{Params: defaults(t), Seeds: 2}
	if whole() {
		o.Seeds = 10
		o.Sizes = filepath.Join(shareddata.Dir(t, "cdn-adaptsize"), "request.trace.gz")
	} else {
		p := &o.Params
		p.only("read")
		p.Loads, p.Requests, p.Warm, p.Course.Seeds = p.Judged, 6000, 2000, 20
	}
	r := run(t, o)
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	if whole() {
		t.Log("\n" + b.String())
	}
	for _, v := range r.Missed() {
		t.Errorf("%s: %s, expected %s; any code: %s; %s", v.Figure, v.Ours, v.Paper, v.Bound, v.Note)
	}
	for _, v := range r.Verdicts {
		if v.Reached == OutOfReach && strings.HasPrefix(v.Figure, "read") {
			t.Errorf("%s: %s, expected %s, which codes reach in PAPERS; any code: %s", v.Figure, v.Ours, v.Paper, v.Bound)
		}
	}
	for i := range r.Stores {
		for j := range r.Stores[i].Points {
			checkPoint(t, &r.Stores[i], &r.Stores[i].Points[j])
		}
	}
	checkLearning(t, r)
}

// checkLearning: a minute after it began with a wrong model the policy in the loop is as
// quick as one that was told the model, and is not while it has the wrong one. That its
// thresholds are the same is not asked: those of codes that come to the same delay hang on
// next to nothing.
func checkLearning(t *testing.T, r *Result) {
	t.Helper()
	type means struct{ ours, told float64 }
	early, late := map[int]means{}, map[int]means{}
	for _, l := range r.Learning {
		of := early
		if l.Seconds > 60 {
			of = late
		} else if l.Seconds > 10 {
			continue
		}
		m := of[l.Load]
		of[l.Load] = means{m.ours + float64(l.Mean.Value), m.told + float64(l.Told.Value)}
	}
	if len(late) == 0 {
		t.Error("nothing was learned")
	}
	for load, m := range late {
		first := early[load].ours / early[load].told
		t.Logf("at %d %% the mean delay is %.3f times that of one that was told the model in the first 10 s, %.3f after a minute", load, first, m.ours/m.told)
		if m.ours > 1.04*m.told || first < 1.05 {
			t.Errorf("at %d %% the mean delay is %.3f times that of one that was told the model in the first 10 s, expected more than 1.05, and %.3f after a minute, expected at most 1.04",
				load, first, m.ours/m.told)
		}
	}
}

func checkPoint(t *testing.T, s *StoreResult, p *Point) {
	t.Helper()
	var sum float64
	for _, k := range p.K {
		sum += float64(k)
	}
	if math.Abs(sum-1) > 0.001 || p.Neighbours.Value > 1 || p.K1 < 1 {
		t.Errorf("%s, %s, %d %%: shares of k %v, of neighbours %v from %d", s.Name, p.Policy, p.Load, p.K, p.Neighbours.Value, p.K1)
	}
	if p.Tasks.Value < 1 || p.Busy.Value <= 0 || p.Busy.Value > 1 || p.P50.Value > p.P90.Value || p.P90.Value > p.P99.Value || p.Mean.Value <= 0 {
		t.Errorf("%s, %s, %d %%: %+v", s.Name, p.Policy, p.Load, p)
	}
}

// TestWhereTheNewPointIs: it is reached where the mean k is near and stays, not at the
// first bin that is near by chance.
func TestWhereTheNewPointIs(t *testing.T) {
	c := Course{Bin: 250 * time.Millisecond, Near: 0.5, Stays: time.Second}
	course := make([]Moment, 40)
	for i := range course {
		course[i].K = 5
		if i >= 20 || i == 12 {
			course[i].K = 1.4
		}
	}
	for _, x := range []struct {
		k    report.Figure
		to   time.Duration
		want float64
	}{{1, 10 * time.Second, 2.5}, {1.95, 10 * time.Second, math.NaN()}, {1, 5 * time.Second, math.NaN()}, {5.2, 10 * time.Second, 0.75}} {
		// From 2.5 s on, that is bin 10: near 1 at bin 12, and from bin 20 on.
		got := float64(c.reached(course, 2500*time.Millisecond, x.to, x.k))
		if got != x.want && !(math.IsNaN(got) && math.IsNaN(x.want)) {
			t.Errorf("k %v until %v: %v s, expected %v", x.k, x.to, got, x.want)
		}
	}
	known := map[int]report.Figure{10: 6, 20: 4}
	for at, want := range map[float64]report.Figure{5: 6, 10: 6, 15: 5, 20: 4, 90: 4} {
		if got := between(known, at); got != want {
			t.Errorf("between at %v: %v, expected %v", at, got, want)
		}
	}
}

// TestEstimates: Student's interval of known samples.
func TestEstimates(t *testing.T) {
	e := estimate([]float64{1, 2, 3})
	if e.Value != 2 || math.Abs(float64(e.Half)-2.4841) > 1e-4 { // 4.3027·1/√3
		t.Errorf("%+v", e)
	}
	if e := estimate([]float64{5}); e.Value != 5 || e.Half.Known() || e.Text(1) != "5.0" {
		t.Errorf("%+v", e)
	}
	if e := estimate(nil); e.Value.Known() {
		t.Errorf("%+v", e)
	}
}

// TestStepsAndRamps are what their parameters say.
func TestStepsAndRamps(t *testing.T) {
	step := Step{Low: 10, High: 50}.rate(time.Minute, 100)
	ramp := Ramp{Low: 10, High: 50, Over: time.Minute}.rate(100)
	for at, want := range map[time.Duration][2]float64{
		30 * time.Second: {10, 30}, 90 * time.Second: {50, 30}, 150 * time.Second: {10, 10}, 60 * time.Second: {50, 50}, 0: {10, 10},
	} {
		if a, b := step.At(at), ramp.At(at); math.Abs(a-want[0]) > 1e-9 || math.Abs(b-want[1]) > 1e-9 {
			t.Errorf("at %v: %v and %v a second, expected %v", at, a, b, want)
		}
	}
}

func TestParametersThatAreNone(t *testing.T) {
	for name, change := range map[string][2]string{
		"version: got 2":           {"version: 1", "version: 2"},
		"connections":              {"connections: 16", "connections: 0"},
		"requests: got 0":          {"requests: 20000", "requests: 0"},
		"stable: got 1":            {"stable: 0.98", "stable: 1"},
		"loads: got":               {"loads: [5, 10", "loads: [10, 5"},
		"judged: got 7":            {"judged: [5,", "judged: [7,"},
		"hedges: got":              {"{n: 2, k: 1}", "{n: 2, k: 2}"},
		"learned.prior":            {"{delta: 60,", "{delta: -60,"},
		"learned: got loads":       {"loads: [35, 65]", "loads: [0]"},
		"a name of its own":        {"name: write", "name: read"},
		"expected read or write":   {"op: write", "op: append"},
		"store: kind":              {"kind: lomax", "kind: normal"},
		"shape":                    {"shape: 2.5", "shape: 1"},
		"recorded.store":           {"{store: read,", "{store: disk,"},
		"course: got":              {"bin: 250ms", "bin: 0s"},
		"course.steps: got":        {"{low: 20, high: 80}", "{low: 80, high: 20}"},
		"course.ramp":              {"ramp: {low: 5", "ramp: {low: 95"},
		"unknown field":            {"version: 1", "version: 1\nspeed: 2"},
		"a first one that is judg": {"whole: true\n    judged: true\n    text: \"default read", "whole: true\n    text: \"default read"},
	} {
		text := strings.Replace(string(examples.CodingExperiment), change[0], change[1], 1)
		if name == "store: kind" {
			name = "kind: got normal"
		}
		if _, err := Decode([]byte(text)); !errors.Is(err, ErrParams) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q in place of %q: got %v, expected ErrParams and %q", change[1], change[0], err, name)
		}
	}
	if _, err := Coding(context.Background(), Options{Params: defaults(t)}); !errors.Is(err, ErrParams) {
		t.Errorf("no seeds: got %v", err)
	}
	if _, err := Coding(context.Background(), Options{Params: defaults(t), Seeds: 1, Sizes: t.TempDir()}); !errors.Is(err, ErrSizes) {
		t.Errorf("a folder of sizes: got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Coding(ctx, Options{Params: defaults(t), Seeds: 3}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected the context's end", err)
	}
}
