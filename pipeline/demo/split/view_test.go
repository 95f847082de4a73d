package split

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"penstock/infra/clock"
	"penstock/infra/golden"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/services"
	"penstock/schemas/control"
)

// watched is a demonstration of which only what can be seen is there.
func watched(t *testing.T) *show {
	t.Helper()
	d := &Demo{Component: "quotes", Site: "us-east"}
	s := &show{Demo: d, sites: places, clock: clock.NewManual(t0.Add(83 * time.Second)), plan: Plan{Start: t0, Faults: make([]Fault, 3)}}
	for _, policy := range []string{"greedy", "closest"} {
		w := &world{show: s, policy: policy}
		w.seer = newObserver(nil, names(), nil)
		w.people = newPeople(s.clock, "quotes", names(), nil)
		s.worlds = append(s.worlds, w)
	}
	return s
}

func TestGoldenView(t *testing.T) {
	s := watched(t)
	scenes := []*scene{s.scene()}
	ours := s.worlds[0].seer
	for _, c := range []control.Command{
		{Scope: "web", Epoch: 1, Split: &control.SplitTable{Table: []control.SplitRow{
			{FromSite: "us-east", To: "quotes", Ratios: []control.SplitRatio{{Site: "us-east", Share: 0.25}, {Site: "us-central", Share: 0.75}}},
		}}},
		{Scope: "entry", Epoch: 1, Split: &control.SplitTable{Table: []control.SplitRow{
			{FromSite: "us-central", To: "web", Ratios: []control.SplitRatio{{Site: "us-east", Share: 0.07}, {Site: "us-central", Share: 0.93}}},
		}}},
	} {
		ours.orders = append(ours.orders, orderOf(&c))
	}
	ours.windows = []seen{{calls: map[link]map[string]calls{
		{"web", "us-east", "quotes"}:        {"us-east": {service: 609_000, serviceN: 2}, "us-central": {service: 9000, serviceN: 3}},
		{control.Outside, "us-east", "web"}: {"us-east": {service: 20_500, serviceN: 5}},
	}}}
	ours.last = &control.Decision{
		Window:  control.Window{End: t0.Add(80 * time.Second)},
		Reasons: []control.Reason{{Code: "LowerDelay", Count: 1}, {Code: "MaxStep", Count: 1}, {Code: "LowerDelay"}},
	}
	s.during.Store(2)
	for i := range 10 {
		for site := range s.sites {
			s.worlds[0].people.seen.Add(s.clock.Now().Add(-time.Second), time.Duration(10+40*i)*time.Millisecond, shot{site: site})
		}
	}
	s.worlds[0].people.seen.Add(s.clock.Now().Add(-time.Minute), time.Hour, shot{})
	s.worlds[1].people.fail(services.ErrCallee)
	scenes = append(scenes, s.scene())
	var out strings.Builder
	for _, c := range scenes {
		for _, line := range append(c.picture(), c.line(), "") {
			out.WriteString(line + "\n")
		}
		for _, line := range c.picture() {
			if utf8.RuneCountInString(line) > 100 {
				t.Errorf("more than 100 columns: %s", line)
			}
		}
	}
	golden.File(t, "view.golden", out.String())
}

func TestBars(t *testing.T) {
	for part, full := range map[float64]int{0: 0, 0.04: 0, 0.26: 3, 1: 10, 1.4: 10, -1: 0} {
		if b := bar(part); utf8.RuneCountInString(b) != barWidth || strings.Count(b, "█") != full {
			t.Errorf("%v is %q", part, b)
		}
	}
	if service(math.NaN()) == service(1) || utf8.RuneCountInString(service(math.NaN())) != utf8.RuneCountInString(service(1)) {
		t.Error("what is not known takes as much room")
	}
}

func TestWhatACommandChanges(t *testing.T) {
	now := func(l link, site string) (float64, bool) {
		known := map[link]shares{{"web", "us-east", "quotes"}: {"us-east": 0.5, "us-central": 0.5}, {"web", "us-east", "search"}: {"us-east": 1}}
		row, ok := known[l]
		return row[site], ok
	}
	x := &order{reason: control.Reason{Code: "LowerDelay", Text: "so much faster", Evidence: map[string]any{
		"from": "us-east", "from_us": 311_400.0, "into": "us-central", "into_us": 47_000.0, "from_share": []any{1.0, 0.5},
	}}, rows: map[link]shares{
		{"web", "us-east", "quotes"}:    {"us-east": 0.25, "us-central": 0.75},
		{"web", "us-east", "search"}:    {"us-east": 1},
		{"web", "us-central", "quotes"}: {"us-central": 1},
		{"web", "us-central", "search"}: {"us-central": 0.8, "us-east": 0.2},
	}}
	want := []string{
		"web at us-central to search: us-east 0.00 → 0.20, us-central 1.00 → 0.80 (LowerDelay: so much faster, us-east 311 ms, us-central 47 ms)",
		"web at us-east to quotes: us-east 0.50 → 0.25, us-central 0.50 → 0.75 (LowerDelay: so much faster, us-east 311 ms, us-central 47 ms)",
	}
	if got := changes(x, names(), now); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestCurves(t *testing.T) {
	r := &record{policy: "greedy", sites: sites}
	p := Plan{Start: t0.Add(3 * time.Second), End: t0.Add(23 * time.Second)}
	r.give(10*time.Second, time.Second, row, 0.25)
	r.shots = []load.Sample[shot]{
		{Due: t0.Add(12 * time.Second), Latency: 30 * time.Millisecond, Of: shot{slowed: 0}},
		{Due: t0.Add(13 * time.Second), Latency: 50 * time.Millisecond, Of: shot{slowed: 1}},
		{Due: t0.Add(14 * time.Second), Latency: 70 * time.Millisecond, Of: shot{site: 1, slowed: -1}},
	}
	r.windows = []seen{{start: t0.Add(10 * time.Second), end: t0.Add(20 * time.Second), calls: map[link]map[string]calls{row: {"east": {requests: 3}, "west": {requests: 1}}}}}
	got := r.curve(p, "quotes", "east")
	if len(got) != 3 || got[0].At != -3 || got[0].Commanded != 1 || got[0].Answers != -1 || got[2].Rows != -1 {
		t.Errorf("%+v", got)
	}
	x := got[1]
	if x.At != 7 || x.Commanded != 0.25 || x.Answers != 0.5 || x.Rows != 0.75 || !slices.Equal(x.P90, []float64{50, 70}) || !slices.Equal(x.P50, []float64{30, 70}) {
		t.Errorf("%+v", x)
	}
}
