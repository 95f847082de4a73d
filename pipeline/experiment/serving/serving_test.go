package serving

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/infra/examples"
	"penstock/infra/golden"
	"penstock/infra/shareddata"
)

// whole says that tests run all of what they show.
func whole() bool { return os.Getenv("PENSTOCK_WHOLE") == "1" }

func defaults(t *testing.T) Params {
	t.Helper()
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// keep leaves only scenarios of these names.
func (p *Params) keep(names ...string) {
	p.Scenarios = slices.DeleteFunc(p.Scenarios, func(s Scenario) bool { return !slices.Contains(names, s.Name) })
}

// small is two scenarios of half a minute.
func small(t *testing.T) Options {
	t.Helper()
	p := defaults(t)
	p.keep("flash", "very-unequal")
	for i := range p.Scenarios {
		p.Scenarios[i].Length = 30 * time.Second
	}
	p.Scenarios[0].Course = [][2]float64{{0, 50}, {8, 50}, {9, 160}, {15, 160}, {16, 40}}
	return Options{Params: p, Seeds: 2}
}

func run(t *testing.T, o Options) *Result {
	t.Helper()
	r, err := Serving(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestGoldenSmall: the tables of a small experiment are what they were, and the same
// parameters and seeds give the same result, byte for byte, however many runs go at once.
func TestGoldenSmall(t *testing.T) {
	t.Parallel()
	o := small(t)
	var bodies [2][]byte
	for i, workers := range []int{1, 3} {
		o.Workers = workers
		r := run(t, o)
		var err error
		if bodies[i], err = r.JSON(); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			continue
		}
		checkPage(t, r)
		var text strings.Builder
		if err := r.Text(&text); err != nil {
			t.Fatal(err)
		}
		golden.File(t, "small.golden", text.String())
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
	b, err := os.ReadFile(filepath.Join(dir, file+".html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	if n := strings.Count(page, "<img "); n != 2*2 {
		t.Errorf("%d plots, expected two of each scenario", n)
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
// With all servers on, A1 to A3 are cheaper than rr and ll where there is too much to do,
// and nowhere much dearer; auto is within its target; and nothing, of any seed, costs less
// than the bound. With the switching rule, whose decisions a few seeds do not average out,
// the part shows the bound alone.
func TestWhatIsShown(t *testing.T) {
	t.Parallel()
	o := Options{Params: defaults(t), Seeds: 2}
	if whole() {
		o.Seeds, o.Data = 20, filepath.Dir(shareddata.Dir(t, "azure-llm-2023"))
		shareddata.Dir(t, "nasa-19950801")
	} else {
		o.Params.keep("bursts", "peak", "slowdown", "sawtooth", "light")
		o.Params.Targets.Overloaded = 3
		o.Params.Policies = slices.DeleteFunc(o.Params.Policies, func(x Policy) bool {
			return !slices.Contains([]string{"rr", "ll", "prequal", "icbs", "A1", "A2", "A3", "auto"}, x.Name)
		})
	}
	r := run(t, o)
	if whole() {
		var b strings.Builder
		if err := r.Text(&b); err != nil {
			t.Fatal(err)
		}
		t.Log("\n" + b.String())
	}
	for _, v := range r.Verdicts {
		if v.Reached == "no" && !strings.Contains(v.Figure, string(Switched)) {
			t.Errorf("%s: %s, expected %s; %s", v.Figure, v.Ours, v.Paper, v.Note)
		}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.P50 > c.P90 || c.P90 > c.P99 || c.Late < 0 || c.Late > 1 || c.Penalty < 0 || c.ServerCost <= 0 || c.Requests <= 0 {
			t.Errorf("%+v", *c)
		}
	}
}

// TestParametersThatAreNone: each fault is named.
func TestParametersThatAreNone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"version: got 2":             {"version: 1", "version: 2"},
		"server_cost: got 0":         {"server_cost: 1", "server_cost: 0"},
		"expected at least one of e": {"zones: 2", "zones: 0"},
		"system.speeds":              {"speeds: [1, 1, 1]      ", "speeds: [1, 0, 1]      "},
		"system.carried":             {"carried: 0.92", "carried: 1.5"},
		"a ramp of 0s":               {"ramp: 2s", "ramp: 0s"},
		"system.first_level":         {"first_level: load", "first_level: luck"},
		"switching.least":            {"least: 2", "least: 7"},
		"switching: got":             {"hold: 3", "hold: 0"},
		"stations.disk":              {"disk: {ms: 12,", "disk: {ms: -12,"},
		"stations.sigma":             {"sigma: 0.3", "sigma: -0.3"},
		"got shares that sum":        {"name: business, share: 0.2", "name: business, share: 0.3"},
		"pages: got \"health\"":      {"name: news", "name: health"},
		"pages: sport":               {"dynamic: 0.3, t_max: 3s", "dynamic: 3, t_max: 3s"},
		"policies: got \"rr\" twice": {"{name: wrr}", "{name: rr}"},
		"policies: got \"A9\"":       {"policy: A3}", "policy: A9}"},
		"policies: A3: got near -1":  {"near: 0.1,", "near: -1,"},
		"policies: A3: got trial -1": {"near: 0.1, trial: 10s}", "near: 0.1, trial: -1s}"},
		"scenarios: got \"flash\"":   {"name: bursts", "name: flash"},
		"got length 0s":              {"length: 210s", "length: 0s"},
		"flash: course of the load":  {"[105, 170]", "[5, 170]"},
		"got bursts":                 {"calm: 15s", "calm: 0s"},
		"got slow":                   {"servers: 2, factor", "servers: 4, factor"},
		"got mix":                    {"shares: [0.1, 0.1,", "shares: [0.2, 0.1,"},
		"very-unequal: got speeds":   {"speeds: [2, 0.7, 0.3]", "speeds: []"},
		"recorded: got \"apache\"":   {"name: nasa,", "name: apache,"},
		"azure: got pages":           {"pages: [science, business]} # conv", "pages: [science]} # conv"},
		"got page \"weather\"":       {"pages: [science, business]} # conv", "pages: [weather, business]} # conv"},
		"targets":                    {"worse: 1.02", "worse: 0.9"},
		"unknown field":              {"version: 1", "version: 1\nweather: 2"},
	} {
		text := strings.Replace(string(examples.ServersExperiment), change[0], change[1], 1)
		if text == string(examples.ServersExperiment) {
			t.Errorf("%q is not in the parameters", change[0])
		}
		if _, err := Decode([]byte(text)); !errors.Is(err, ErrParams) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q in place of %q: got %v, expected ErrParams and %q", change[1], change[0], err, name)
		}
	}
	if _, err := Serving(context.Background(), Options{Params: defaults(t)}); !errors.Is(err, ErrParams) {
		t.Errorf("no seeds: got %v", err)
	}
	if _, err := Serving(context.Background(), Options{Params: defaults(t), Seeds: 1, Data: t.TempDir()}); !errors.Is(err, ErrData) {
		t.Errorf("a folder without recordings: got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Serving(ctx, Options{Params: defaults(t), Seeds: 3}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected the context's end", err)
	}
}

// TestRecordings of real traffic make runs.
func TestRecordings(t *testing.T) {
	t.Parallel()
	p := defaults(t)
	p.Scenarios = p.Scenarios[:1]
	p.Scenarios[0].Length = 5 * time.Second
	p.Policies = p.Policies[:1]
	for i := range p.Recorded {
		p.Recorded[i].Length = 20 * time.Second
	}
	r := run(t, Options{Params: p, Seeds: 1, Data: filepath.Dir(shareddata.Dir(t, "nasa-19950801"))})
	for _, name := range []string{"azure", "azure-busy", "nasa", "nasa-busy"} {
		if c := r.cell(name, AllOn, "rr"); c == nil || !c.HeldOut || c.Requests < 100 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
