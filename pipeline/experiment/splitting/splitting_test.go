package splitting

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider/split"
	"penstock/infra/examples"
	"penstock/infra/shareddata"
	"penstock/pipeline/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

func defaults(t *testing.T) Params {
	t.Helper()
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// small is the experiment on StockTrader and a random application, with short runs
// and few faults.
func small(t *testing.T) Options {
	t.Helper()
	p := defaults(t)
	p.Time.Warm, p.Time.From, p.Time.To, p.Time.Length, p.Time.Natural = 20*time.Second, 20*time.Second, 50*time.Second, time.Minute, time.Minute
	p.Policies = []string{split.Greedy, split.LP, split.Closest}
	p.Applications = p.Applications[:1]
	p.Faults = slices.DeleteFunc(p.Faults, func(f Fault) bool { return !slices.Contains([]string{calm, "b", "e"}, f.Name) })
	p.Random.Faults, p.Random.Components = []string{"e"}, 8
	p.Instances.Count = 50
	return Options{Params: p, Seeds: 2}
}

// TestSideBySide: the same parameters and seeds give the same result, byte for byte,
// however many runs go at once.
func TestSideBySide(t *testing.T) {
	o := small(t)
	var bodies [2][]byte
	for i, workers := range []int{1, 3} {
		o.Workers = workers
		r, err := Split(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if bodies[i], err = r.JSON(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			checkPage(t, r)
		}
	}
	if !bytes.Equal(bodies[0], bodies[1]) {
		t.Error("one worker and three gave different results")
	}
}

// checkPage sees that the page holds tables and plots and loads nothing.
func checkPage(t *testing.T, r *Result) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "experiment-split.html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	// Delays and shares of b and e, and of e in the random application.
	if n := strings.Count(page, "<img "); n != 2*3 {
		t.Errorf("%d plots, expected 6", n)
	}
	if n := strings.Count(page, "<table>"); n != len(r.Tables()) {
		t.Errorf("%d tables, expected %d", n, len(r.Tables()))
	}
	for _, foreign := range []string{"http://", "https://", "<script", "src=\"/"} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page has %q", foreign)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "experiment-split.json")); err != nil {
		t.Error(err)
	}
}

// whole reports whether what takes long is to be run as a whole.
func whole() bool { return os.Getenv("PENSTOCK_WHOLE") == "1" }

// TestWhatIsShown runs a seeded part of the experiment, with PENSTOCK_WHOLE=1 all of
// it, and checks what holds whatever the figures are: every request is accounted
// for, all policies met the same ones, nothing that stays moves, and the optimum is
// never worse than greedy.
func TestWhatIsShown(t *testing.T) {
	o := Options{Params: defaults(t), Seeds: 1, Quick: true}
	if whole() {
		o.Seeds, o.Quick = 10, false
		o.Data = filepath.Dir(shareddata.Dir(t, "azure-llm-2023"))
	} else {
		p := &o.Params
		p.Applications, p.Random.Sites, p.Recorded = p.Applications[1:], nil, Recorded{}
		p.Time.Warm, p.Time.From, p.Time.To, p.Time.Length = time.Minute, time.Minute, 2*time.Minute, 3*time.Minute
	}
	r, err := Split(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if whole() {
		var b strings.Builder
		if err := r.Text(&b); err != nil {
			t.Fatal(err)
		}
		t.Log("\n" + b.String())
	}
	if r.Optimum.Worse != 0 || r.Optimum.Instances != 1000 || r.Optimum.Proved != 1000 {
		t.Errorf("of 1,000 instances: %+v", r.Optimum)
	}
	if c := r.Optimum.Constant; c.Median > 1.2 || c.Same == 0 || c.Same == c.Instances || c.Most < c.P99 || c.P99 < c.P90 {
		t.Errorf("greedy over the optimum, constant delays: %+v: it says nothing", c)
	}
	for _, g := range r.groups() {
		base := r.runs(g, split.Closest)
		for _, policy := range r.params.Policies {
			for i, x := range r.runs(g, policy) {
				if x.All.Requests != base[i].All.Requests || x.Entering.Requests != base[i].Entering.Requests || x.All.Requests == 0 {
					t.Errorf("%s, %s, %s, seed %d: %d requests, closest met %d", g.application, g.fault.Name, policy, x.Seed, x.All.Requests, base[i].All.Requests)
				}
				if x.All.P50 > x.All.P90 || x.All.P90 > x.All.P99 || float64(x.All.P99) > r.params.Time.Deadline.Seconds()*1000 {
					t.Errorf("%s, %s, %s, seed %d: quantiles %+v", g.application, g.fault.Name, policy, x.Seed, x.All)
				}
				if x.Moved > 0 && x.Bytes == 0 || x.Probes > 0.1 || (x.Bytes > 0) != (x.USD > 0) {
					t.Errorf("%s, %s, %s, seed %d: moved %v, %d bytes, %v dollars, probes %v", g.application, g.fault.Name, policy, x.Seed, x.Moved, x.Bytes, x.USD, x.Probes)
				}
				if g.fault.Name == calm && policy == split.Closest && (x.Moved > 0 || x.All.Failed > 0 || x.Tables > 0) {
					t.Errorf("%s, no fault, seed %d: the nearest site moved %v, %d failed: the application is too small for its load", g.application, x.Seed, x.Moved, x.All.Failed)
				}
			}
		}
	}
}

// TestRecordedArrivals: recordings are sped up to the application's rate, keep their
// bursts, and differ by seed.
func TestRecordedArrivals(t *testing.T) {
	dir := filepath.Dir(shareddata.Dir(t, "azure-llm-2023"))
	shareddata.Dir(t, "nasa-19950801")
	azure, err := loadAzure(filepath.Join(dir, "azure-llm-2023"))
	if err != nil {
		t.Fatal(err)
	}
	nasa, err := loadNASA(filepath.Join(dir, "nasa-19950801", "nasa_19950801.tsv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if len(azure.times) != 19_366+8_819 || len(nasa.times) != 30_969 {
		t.Fatalf("%d and %d rows", len(azure.times), len(nasa.times))
	}
	for _, rec := range []*recording{azure, nasa} {
		const rate, length = 40.0, 10 * time.Minute // more than one round of both
		a, b := rec.arrivals(1, 2, length, rate), rec.arrivals(2, 2, length, rate)
		for site := range a {
			if !slices.IsSorted(a[site]) || slices.Equal(a[site], b[site]) {
				t.Errorf("%s: arrivals are out of order, or the same with another seed", rec.name)
			}
			if got := float64(len(a[site])) / length.Seconds(); math.Abs(got-rate) > 0.1*rate {
				t.Errorf("%s: %v a second at a site, expected about %v", rec.name, got, rate)
			}
		}
	}
	for name, err := range map[string]error{
		"no folder": second(loadAzure(t.TempDir())), "no file": second(loadNASA("none")),
		"no rows": second(newRecording("x", nil)), "one time": second(newRecording("x", []int64{1, 1})),
	} {
		if !errors.Is(err, ErrData) {
			t.Errorf("%s: got %v, expected ErrData", name, err)
		}
	}
	o := small(t)
	o.Seeds, o.Data, o.Params.Recorded.Faults = 1, dir, []string{"b"}
	o.Params.Policies, o.Params.Faults = []string{split.Greedy}, o.Params.Faults[:2]
	o.Params.Random.Sites = nil
	r, err := Split(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"azure-llm-2023", "nasa-19950801"} {
		if n := len(r.of("stocktrader", "b", name, split.Greedy)); n != 1 || r.Recorded[name].Rows == 0 || r.Recorded[name].Faster["stocktrader"] <= 1 {
			t.Errorf("%s: %d runs, %+v", name, n, r.Recorded[name])
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestRandomApplications: a tree with an odd seed, a graph with an even one, with
// the loads that were asked for, the same each time.
func TestRandomApplications(t *testing.T) {
	p := defaults(t)
	graphs := 0
	for seed := range uint64(20) {
		a, err := p.Random.draw(seed, &p.Network)
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.Random.draw(seed, &p.Network)
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		per := a.app.PerRequest(p.Random.Heavy)
		for i, c := range a.app.Components {
			calls += len(c.Calls)
			if c.Service != again.app.Components[i].Service {
				t.Fatalf("seed %d is another application the second time", seed)
			}
			load := p.Random.Rate * per[i] / a.app.Takes(i, 0, p.Random.Heavy)
			if load < p.Random.Busy[0]-0.01 || load > p.Random.Busy[1]+0.01 {
				t.Errorf("seed %d: %s has a load of %v", seed, c.Name, load)
			}
		}
		if tree := calls == len(a.app.Components)-1; !tree && seed%2 == 1 {
			t.Errorf("seed %d: %d calls, expected a tree", seed, calls)
		} else if !tree {
			graphs++
		}
		if len(a.app.Components[a.storage].Calls) > 0 || a.focus == 0 {
			t.Errorf("seed %d: storage %d calls others, focus %d", seed, a.storage, a.focus)
		}
	}
	if graphs < 8 {
		t.Errorf("%d of 10 graphs have a component with two callers", graphs)
	}
}

// TestSpellsAreAsThePaperSays: 90 % of bad spells are shorter than four minutes.
func TestSpellsAreAsThePaperSays(t *testing.T) {
	p := defaults(t)
	a, err := p.Applications[0].build(&p.Network)
	if err != nil {
		t.Fatal(err)
	}
	n, short := 0, 0
	for seed := range uint64(400) {
		for _, c := range p.Natural.spells(a, seed, 0, p.Time.Natural) {
			if n++; c.To-c.From < 4*time.Minute {
				short++
			}
		}
	}
	if part := float64(short) / float64(n); n < 2000 || part < 0.88 || part > 0.92 {
		t.Errorf("%v of %d spells are shorter than four minutes", part, n)
	}
}

func TestParametersThatAreNone(t *testing.T) {
	for name, change := range map[string][2]string{
		"version: got 2":         {"version: 1", "version: 2"},
		"time: got":              {"warm: 2m", "warm: 5m"},
		"time.feedback":          {"feedback: 2s", "feedback: 20s"},
		"queues of 0":            {"queue: 500", "queue: 0"},
		"swing":                  {"swing: 0.2", "swing: 1"},
		"told":                   {"told: 0.85", "told: 0"},
		"greedy first":           {"[greedy, lp", "[lp, greedy"},
		"policies: got \"best\"": {"locality-failover]", "best]"},
		"faults: got none":       {"{name: none,", "{name: nothing,"},
		"a name of its own":      {"{name: c, ", "{name: b, "},
		"recorded.faults":        {"faults: [none, b, e]", "faults: [z]"},
		"recorded.applications":  {"applications: [stocktrader]", "applications: [z]"},
		"none of its":            {"{to: config,", "{to: nobody,"},
		"storage \"disk\"":       {"storage: db", "storage: disk"},
		"instances.count":        {"count: 1000", "count: 0"},
		"natural: got":           {"good: 30m", "good: 0s"},
		"unknown field":          {"told: 0.85", "told: 0.85\nasked: 1"},
	} {
		text := strings.Replace(string(examples.SplitExperiment), change[0], change[1], 1)
		if _, err := Decode([]byte(text)); !errors.Is(err, ErrParams) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q in place of %q: got %v, expected ErrParams and %q", change[1], change[0], err, name)
		}
	}
	if _, err := Split(context.Background(), Options{Params: defaults(t)}); !errors.Is(err, ErrParams) {
		t.Errorf("no seeds: got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Split(ctx, Options{Params: defaults(t), Seeds: 3}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected the context's end", err)
	}
}

func TestRatios(t *testing.T) {
	got := ratios([]float64{3, 1, 1, 2, 1.5})
	if want := (Ratios{Instances: 5, Same: 2, Median: 1.5, P90: 3, P99: 3, Most: 3}); got != want {
		t.Errorf("got %+v, expected %+v", got, want)
	}
	if got := ratios(nil); got != (Ratios{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

// TestGoldenTables: what is reached, what isn't, where greedy is not the best, and
// how figures are printed, of runs that are made up.
func TestGoldenTables(t *testing.T) {
	p := defaults(t)
	r := &Result{
		FirstSeed: 1, Seeds: 2, params: &p,
		Optimum: Optimum{Instances: 4, Proved: 4, All: ratios([]float64{1, 1.1, 1.2, 2}), Constant: ratios([]float64{1, 1.1}), Curved: ratios([]float64{1.2, 2})},
		Recorded: map[string]Source{
			"nasa-19950801": {Rows: 100, Span: "1h0m0s", Rate: 0.5, Faster: map[string]float64{"stocktrader": 160}},
		},
	}
	add := func(arrivals, fault, policy string, p90 ...float64) {
		for i, x := range p90 {
			l := Latency{Requests: 1000, Failed: i, P50: report.Figure(x / 2), P90: report.Figure(x), P99: report.Figure(2 * x)}
			r.Runs = append(r.Runs, Run{
				Application: "stocktrader", Fault: fault, Arrivals: arrivals, Policy: policy, Seed: uint64(i + 1), All: l, Entering: l,
				Moved: x / 1000, Bytes: int64(1e7 * x), USD: x / 1000, Tables: i + 1, Probes: 0.01,
			})
		}
	}
	add(Made, calm, split.Greedy, 100, 100)
	add(Made, calm, split.Closest, 100, 100)
	add(Made, "a", split.Greedy, 100, 200)
	add(Made, "a", split.LP, 50, 120)
	add(Made, "a", split.Closest, 400, 800)
	add(Made, "a", split.Redirect, 290, 590)
	add(Made, "e", split.Greedy, 100, 100)
	add(Made, "e", split.Closest, 590, 600)
	add("nasa-19950801", "e", split.Greedy, 100, 100)
	add("nasa-19950801", "e", split.Closest, 700, 800)
	r.judge()
	var got strings.Builder
	if err := r.Text(&got); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/tables.golden"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the tables have changed (-update writes them anew):\n%s", got.String())
	}
}
