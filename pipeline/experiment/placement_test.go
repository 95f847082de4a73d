package experiment

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/examples"
	"penstock/producers/workload"
)

var update = flag.Bool("update", false, "write the golden files anew")

// small is the experiment on days of 150 users: a 44th of the traffic and of the
// capacities.
func small(t *testing.T) Options {
	t.Helper()
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	day, err := workload.Decode(examples.PaperDay, "paper-day.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const part = 44
	day.Users, day.Friends.Degree.Most, day.Reads.PerWrite = 150, 60, 20
	day.Scale.Peak /= part
	for i := range p.Cases {
		for j := range p.Cases[i].Capacity {
			p.Cases[i].Capacity[j] /= part
		}
	}
	p.Sensitivity = Sensitivity{Alpha: []float64{0}, Headroom: []float64{0, 0.1}, Hours: []int{4}}
	return Options{Params: p, Seeds: 1, Day: &day}
}

// TestGoldenTables: the same parameters and seeds give the same tables, however
// many days are played at once.
func TestGoldenTables(t *testing.T) {
	o := small(t)
	o.Params.Models = o.Params.Models[1:] // the standard one and far
	var texts, bodies [2]bytes.Buffer
	for i, workers := range []int{1, 3} {
		o.Workers = workers
		r, err := Placement(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Text(&texts[i]); err != nil {
			t.Fatal(err)
		}
		body, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		bodies[i].Write(body)
		if i == 0 {
			checkPage(t, r)
		}
	}
	if texts[0].String() != texts[1].String() || bodies[0].String() != bodies[1].String() {
		t.Error("one worker and three gave different results")
	}
	const file = "testdata/small.golden"
	if *update {
		if err := os.WriteFile(file, texts[0].Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if texts[0].String() != string(want) {
		t.Errorf("the tables have changed (-update writes them anew):\n%s", texts[0].String())
	}
}

// checkPage sees that the page holds tables and plots and loads nothing.
func checkPage(t *testing.T, r *Result) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "experiment.html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	// Three plots of traffic and two of delays a case, and the reductions.
	if n := strings.Count(page, "<img "); n != 3*5+1 {
		t.Errorf("%d plots, expected 16", n)
	}
	for _, table := range r.Tables() {
		if !strings.Contains(page, "<h2>"+strings.NewReplacer("'", "&#39;", "&", "&amp;", "+", "&#43;").Replace(table.Title)+"</h2>") {
			t.Errorf("the page has no table %q", table.Title)
		}
	}
	for _, foreign := range []string{"http://", "https://", "<script", "src=\"/"} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page has %q", foreign)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "experiment.json")); err != nil {
		t.Error(err)
	}
}

// whole reports whether what takes long is to be run as a whole.
func whole() bool { return os.Getenv("PENSTOCK_WHOLE") == "1" }

// TestTheStandardModelPassesInAllCases plays the paper's day: three days of the
// standard friend model, or with PENSTOCK_WHOLE=1 ten of all three, varied, and
// of users around the world.
func TestTheStandardModelPassesInAllCases(t *testing.T) {
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Params: p, Seeds: 3, Quick: true, Judged: 1}
	if whole() {
		o.Seeds, o.Quick, o.Judged, o.Data = 10, false, 0, sharedClouds(t)
	} else {
		o.Params.Sensitivity, o.Params.Advice = Sensitivity{}, 0
	}
	r, err := Placement(context.Background(), o)
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
	checkClaims(t, r, o.Seeds)
}

// checkClaims checks what must be shown: targets, order of delays, storage,
// optimal against tmatch and against the least.
func checkClaims(t *testing.T, r *Result, seeds int) {
	t.Helper()
	for _, c := range r.Cases {
		ours := r.of(r.Standard, c.Name, TMatch)
		if len(ours) != seeds {
			t.Fatalf("case %s: %d days, expected %d", c.Name, len(ours), seeds)
		}
		if s := spreadOf(ours, reduction); c.Target > 0 && float64(s.Median) < c.Target {
			t.Errorf("case %s: execution delay is down %s %%, the paper's is down more than %v", c.Name, s.Text(1), c.Target)
		}
		if c.Target == 0 {
			for _, x := range ours {
				if x.Relieving > 0 || x.Over > 0 {
					t.Errorf("case %s, seed %d: %d moves out of sites over capacity, expected none", c.Name, x.Seed, x.Relieving)
				}
			}
		}
		for i, x := range ours {
			base, alone := r.of(r.Standard, c.Name, Baseline)[i], r.of(r.Standard, c.Name, DistanceOnly)[i]
			if x.Latency.Mean > 50 || x.Latency.Mean <= base.Latency.Mean {
				t.Errorf("case %s, seed %d: latency delay %v ms, expected at most 50 and more than the baseline's %v", c.Name, x.Seed, x.Latency.Mean, base.Latency.Mean)
			}
			if 3*x.Stored != base.Stored || alone.Stored != x.Stored {
				t.Errorf("case %s, seed %d: %d bytes stored, the baseline %d", c.Name, x.Seed, x.Stored, base.Stored)
			}
		}
	}
	for i := range r.Runs {
		x := &r.Runs[i]
		if x.Plans == nil {
			continue
		}
		name := fmt.Sprintf("friends %s, case %s, seed %d, %s", x.Model, x.Case, x.Seed, x.Strategy)
		if x.Plans.Worse > 0 {
			t.Errorf("%s: optimal is worse from the same state in %d windows", name, x.Plans.Worse)
		}
		if x.Strategy == Optimal && !(x.Plans.Gap <= 0.01) {
			t.Errorf("%s: a plan is %v above the least", name, x.Plans.Gap)
		}
		if x.Strategy == TMatch && !(x.Plans.Other <= x.Plans.Least*1.01 && x.Plans.Least <= x.Plans.Other*1.01) {
			t.Errorf("%s: optimal's plans come to %v, the least is %v", name, x.Plans.Other, x.Plans.Least)
		}
	}
}

func TestItStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Placement(ctx, Options{Params: p, Seeds: 3}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, expected the context's end", err)
	}
	if _, err := Placement(context.Background(), Options{Params: p}); !errors.Is(err, ErrParams) {
		t.Errorf("no seeds: got %v, expected ErrParams", err)
	}
}
