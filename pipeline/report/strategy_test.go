package report

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/consumers/decider/baselines"
	"penstock/schemas/event"
	"penstock/schemas/sphere"
	"penstock/schemas/window"
)

// played is two windows of a shadow report, made by hand.
func played() *Played {
	at := func(h int) time.Time { return time.Date(2026, 3, 1, h, 0, 0, 0, time.UTC) }
	all := &Delays{}
	all.Add(20_000, 3)
	all.Add(100_000, 1)
	return &Played{
		Sites:   []Site{{Name: "east", Capacity: 1000, Egress: 1e6}, {Name: "west", Capacity: 1000, Egress: 2e6}},
		Windows: []Span{{at(0), at(1)}, {at(1), at(2)}},
		Strategies: []Strategy{
			{Name: "optimal", Text: "what is advised", Copies: 1, All: all, Windows: []StrategyWindow{
				{Traffic: []int64{2000, 500}, Written: []int64{400, 0}, Requests: 7, Moves: 2, Bytes: 30, EgressUSD: 0.03, Located: 4, DelayUS: 160_000},
				{Traffic: []int64{1000, 0}, Requests: 3},
			}},
			{Name: AsItWas, Text: "where it was served", Copies: 1, Unmoved: true, Windows: []StrategyWindow{
				{Traffic: []int64{2500, 0}, Requests: 7}, {Traffic: []int64{1000, 0}, Requests: 3},
			}},
			{Name: Reference, Text: "copies", Copies: 2, Windows: []StrategyWindow{
				{Traffic: []int64{1250, 1250}, Requests: 7, Bytes: 100, EgressUSD: 0.1}, {Traffic: []int64{500, 500}, Requests: 3},
			}},
			{Name: "none", Copies: 1, Unknown: "nobody tried", Windows: make([]StrategyWindow, 2)},
		},
		Unlocated: 5,
	}
}

func TestClosedWindowsMakeAReport(t *testing.T) {
	var r Report
	played().Fill(&r)
	if r.Kind != KindShadow || r.Strategy != "optimal" {
		t.Errorf("kind %q of %q", r.Kind, r.Strategy)
	}
	for _, c := range []struct {
		name string
		got  Figure
		want float64
	}{
		{"mean latency", r.Latency.Mean, 40},
		{"reads are not told apart", r.LatencyR.Mean, math.NaN()},
		{"execution", r.Execution.Mean, 0.5 / 3}, // 1,000 of 2,000; nothing of 500 and of 1,000
		{"reduction", r.Execution.Reduction, 100 * (1 - 0.5/3/(2*0.2/4))},
		{"sites over", r.SitesOver, 1},
		{"requests", r.Requests, 10},
		{"moved", r.Moved, 2},
		{"bytes moved", r.BytesMoved, 30},
		{"egress", r.EgressUSD, 0.03},
		{"serving", r.ServingUSD, (1600*1e6 + 500*2e6 + 1000*1e6) / 1e9},
		{"as it was: requests", r.Baselines[AsItWas].Requests, 10},
		{"as it was: moved", r.Baselines[AsItWas].Moved, math.NaN()},
		{"as it was: egress", r.Baselines[AsItWas].EgressUSD, math.NaN()},
		{"as it was: serving", r.Baselines[AsItWas].ServingUSD, 3.5},
		{"as it was: execution", r.Baselines[AsItWas].Execution.Mean, 0.6 / 2},
		{"copies: bytes", r.Baselines[Reference].BytesMoved, 100},
		{"copies: no reduction against itself", r.Baselines[Reference].Execution.Reduction, math.NaN()},
		{"nothing known: requests", r.Baselines["none"].Requests, math.NaN()},
		{"nothing known: sites over", r.Baselines["none"].SitesOver, math.NaN()},
		{"in the first window", r.Series.Latency[0], 40},
		{"in a window without a located request", r.Series.Latency[1], math.NaN()},
	} {
		if got := float64(c.got); !(math.Abs(got-c.want) < 1e-9 || math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
	}
	if s := r.Series; !slices.Equal(s.Moved, []int{2, 0}) || !slices.Equal(s.Traffic["west"], []int64{500, 0}) || !slices.Equal(s.SitesOver, []int{1, 0}) {
		t.Errorf("by window: %+v", s)
	}
	if s := r.Baselines[AsItWas].Series; s.Moved != nil || s.EgressUSD != nil || len(s.ServingUSD) != 2 {
		t.Errorf("as it was by window: %+v", s)
	}
	if r.Moves.Count != 2 || r.Moves.Windows != 1 || r.Sites[0].OverWindows != 1 || r.Sites[0].Busiest != 2000 {
		t.Errorf("moves %+v, site %+v", r.Moves, r.Sites[0])
	}
}

func TestAShadowReportIsReadBackAndShown(t *testing.T) {
	var r Report
	played().Fill(&r)
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(&back, "", "  ")
	if err != nil || !bytes.Equal(bytes.TrimSpace(text), again) {
		t.Errorf("a report read back is another one: %v", err)
	}
	html, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	page := string(html)
	for _, want := range []string{"A shadow report", "optimal", "unknown: nobody tried", "Money in all", "Execution delay", "5 requests have no place"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, not := range []string{"The account", "NaN", "this replay"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q", not)
		}
	}
	var b strings.Builder
	if err := r.Summary(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "account") || strings.Contains(b.String(), "NaN") || !strings.Contains(b.String(), "none is unknown: nobody tried.") {
		t.Errorf("summary:\n%s", b.String())
	}
}

func TestAReportOfNothing(t *testing.T) {
	for name, p := range map[string]*Played{"nothing": {}, "no window": {Sites: clouds, Strategies: []Strategy{{Name: "optimal"}}}} {
		var r Report
		p.Fill(&r)
		if html, err := r.HTML(); err != nil || !bytes.Contains(html, []byte("no window")) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := json.Marshal(&r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r.Latency.Mean.Known() || r.EgressUSD.Known() && name == "nothing" {
			t.Errorf("%s: something is known: %+v", name, r.Figures)
		}
	}
}

func TestWithoutPricesAndCapacitiesWhatFollowsIsUnknown(t *testing.T) {
	p := played()
	for i := range p.Sites {
		p.Sites[i].Egress, p.Sites[i].Capacity = 0, 0
	}
	var r Report
	p.Fill(&r)
	if r.ServingUSD.Known() || r.EgressUSD.Known() || r.Moves.EgressUSD.Known() || r.Execution.Mean.Known() || r.SitesOver.Known() || r.Series.ServingUSD != nil || r.Series.Execution != nil {
		t.Errorf("%+v", r.Figures)
	}
	html, err := r.HTML()
	if err != nil || strings.Contains(string(html), "Money in all") || strings.Contains(string(html), "The busiest site") {
		t.Errorf("the page plots what is not known: %v", err)
	}
}

// naive adds up a strategy row by row.
type naive struct {
	count, readCount int64
	sum, readSum     float64
	traffic          map[string]int64
	requests         int64
}

// What the collector says is what adding up row by row says, also when it has to
// forget places.
func TestCollectorIsWhatAddingUpEachRowGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := NewCollector(clouds, time.Hour)
		box := newBox(clouds)
		n := make([]naive, firstBaseline+4)
		for i := range n {
			n[i].traffic = map[string]int64{}
		}
		ids := []string{"", "a", "b", "c", "d"}
		site := func(label string) string {
			return rapid.SampledFrom([]string{"", "east", "central", "west", "mars"}).Draw(t, label)
		}
		met := map[int32]bool{}
		numbers := map[string]int32{} // in order of first sight: ties end at them
		number := func(id string) int32 {
			if _, ok := numbers[id]; !ok && id != "" {
				numbers[id] = int32(len(numbers))
			} else if id == "" {
				return baselines.None
			}
			return numbers[id]
		}
		at, open := int64(0), int64(-1)
		for range rapid.IntRange(1, 60).Draw(t, "rows") {
			at += rapid.Int64Range(0, 40*60e6).Draw(t, "later")
			r := row(0, rapid.SampledFrom(ids).Draw(t, "user"), rapid.SampledFrom(ids).Draw(t, "owner"), site("served"), -1, rapid.Int64Range(0, 5000).Draw(t, "bytes"), event.Op(rapid.IntRange(0, 1).Draw(t, "op")))
			r.Time = at
			if rapid.IntRange(0, 4).Draw(t, "located") > 0 {
				r.Lat, r.Lon = float32(rapid.IntRange(30, 45).Draw(t, "lat")), -float32(rapid.IntRange(70, 120).Draw(t, "lon"))
			}
			recorded := site("recorded")
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				// As if the places were full.
				if c.open != nil {
					c.flush()
				}
				c.box.Places().Reset()
				c.rtts.Forget()
			}
			c.Row(r, recorded)

			if start := window.Start(at, time.Hour); start != open {
				if open >= 0 {
					box.Close(open + time.Hour.Microseconds())
				}
				open = start
			}
			a := baselines.Access{User: number(r.User), Owner: number(r.Owner), Place: baselines.None, Requests: 1, Bytes: r.Bytes}
			if r.HasPlace() {
				a.Place = box.Places().Find(r.Lat, r.Lon)
			}
			if r.Op == event.Write {
				a.Written = r.Bytes
			}
			sites := []int16{c.site(r.ToSite), c.site(recorded), 0, 0, 0, 0}
			if sites[0] >= 0 && a.Owner >= 0 && !met[a.Owner] {
				met[a.Owner] = true
				box.Stand(a.Owner, sites[0], 0)
			}
			box.Access(&a, sites[firstBaseline:])
			for s, j := range sites {
				if j < 0 || a.Owner < 0 || sites[0] < 0 {
					continue
				}
				n[s].traffic[clouds[j].Name] += r.Bytes
				n[s].requests++
				if a.Place < 0 {
					continue
				}
				ms := sphere.RTT(sphere.Km(float64(r.Lat), float64(r.Lon), clouds[j].Lat, clouds[j].Lon))
				n[s].count, n[s].sum = n[s].count+1, n[s].sum+ms
				if r.Op == event.Read {
					n[s].readCount, n[s].readSum = n[s].readCount+1, n[s].readSum+ms
				}
			}
		}
		var r Report
		c.Fill(&r)
		for s, st := range c.played().Strategies {
			f := r.Figures
			if s > 0 {
				f = r.Baselines[st.Name].Figures
			}
			if st.Unknown != "" {
				if f.Requests.Known() || f.Latency.Mean.Known() {
					t.Fatalf("%s is unknown (%s) and has figures: %+v", st.Name, st.Unknown, f)
				}
				continue
			}
			traffic := map[string]int64{}
			for name, by := range f.Series.Traffic {
				for _, b := range by {
					traffic[name] += b
				}
			}
			maps.DeleteFunc(traffic, func(_ string, b int64) bool { return b == 0 })
			maps.DeleteFunc(n[s].traffic, func(_ string, b int64) bool { return b == 0 })
			if f.Latency.Requests != n[s].count || f.LatencyR.Requests != n[s].readCount || int64(f.Requests) != n[s].requests || !maps.Equal(traffic, n[s].traffic) {
				t.Fatalf("%s: %d located (%d reads), %v requests, traffic %v; expected %+v", st.Name, f.Latency.Requests, f.LatencyR.Requests, f.Requests, traffic, n[s])
			}
			if n[s].count > 0 && math.Abs(float64(f.Latency.Mean)-n[s].sum/float64(n[s].count)) > 0.002 {
				t.Fatalf("%s: mean %v, expected %v", st.Name, f.Latency.Mean, n[s].sum/float64(n[s].count))
			}
			if n[s].readCount > 0 && math.Abs(float64(f.LatencyR.Mean)-n[s].readSum/float64(n[s].readCount)) > 0.002 {
				t.Fatalf("%s: mean of reads %v", st.Name, f.LatencyR.Mean)
			}
		}
	})
}

// More places than are kept, in one window.
func TestCollectorForgetsPlacesAndLosesNone(t *testing.T) {
	c := NewCollector(clouds, time.Hour)
	r := row(0, "ann", "ann", "east", 0, 1, event.Read)
	const n = 300_000
	for i := range n {
		r.Lat, r.Lon = float32(i%600)/10, -float32(i/600)/10
		c.Row(r, "west")
	}
	var rep Report
	c.Fill(&rep)
	if rep.Latency.Requests != n || rep.Baselines[AsItWas].Latency.Requests != n || c.box.Places().Len() >= n {
		t.Errorf("%d and %d requests, %d places kept", rep.Latency.Requests, rep.Baselines[AsItWas].Latency.Requests, c.box.Places().Len())
	}
}

func TestManyWindowsAreDrawnAsFew(t *testing.T) {
	p := &Played{Sites: []Site{{Name: "east", Capacity: 10}}, Strategies: []Strategy{{Name: "optimal"}}}
	for i := range 5000 {
		start := time.Unix(int64(i)*3600, 0).UTC()
		p.Windows = append(p.Windows, Span{start, start.Add(time.Hour)})
		p.Strategies[0].Windows = append(p.Strategies[0].Windows, StrategyWindow{Traffic: []int64{int64(i)}, Moves: 1})
	}
	var r Report
	p.Fill(&r)
	html, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(html, []byte("Greatest of 9 windows a step.")) || len(html) > 1<<20 {
		t.Errorf("%d bytes of page", len(html))
	}
	runs := r.steps(curve{values: []float64{1, 3, math.NaN(), math.NaN()}}, mean)
	if len(runs) != 1 || runs[0][0].Y != 2 {
		t.Errorf("runs %v", runs)
	}
}

func TestUnknownValuesAreGaps(t *testing.T) {
	var r Report
	for _, h := range []int64{0, 1, 2, 5} {
		r.Windows = append(r.Windows, WindowReport{Start: time.Unix(h*3600, 0).UTC(), End: time.Unix((h+1)*3600, 0).UTC()})
	}
	runs := r.steps(curve{values: []float64{1, math.NaN(), 3, 4}}, mean)
	// The first window; then the third; then, after hours without any, the last.
	if len(runs) != 3 || runs[0][1].X != 3600 || runs[1][0].X != 7200 || runs[1][1].X != 3*3600 || runs[2][0].Y != 4 {
		t.Errorf("runs %v", runs)
	}
}

func TestTextsForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{usdText(Unknown()), "–"},
		{usdText(0), "$0.00"},
		{usdText(0.00001), "< $0.0001"},
		{usdText(0.12345), "$0.1235"},
		{usdText(1234567.5), "$1\u202f234\u202f567.50"},
		{sizeText(Unknown()), "–"},
		{sizeText(1500), "1.5 KB"},
		{changeText(59.04), "−59.0"},
		{changeText(-3), "+3.0"},
		{changeText(0), "0"},
		{changeText(Unknown()), "–"},
		{grouped("999"), "999"},
		{grouped("-1000"), "-1\u202f000"},
	} {
		if c.got != c.want {
			t.Errorf("%q, expected %q", c.got, c.want)
		}
	}
	for _, c := range []struct {
		least, most float64
		want        string
	}{
		{0, 175, "0 20 40 60 80 100 120 140 160"}, {0, 0.08, "0.00 0.02 0.04 0.06 0.08"}, {0, 9, "0 2 4 6 8"}, {0, 1e-9 * 1.1, ""},
	} {
		var labels []string
		for _, k := range roundTicks(c.least, c.most) {
			labels = append(labels, k.Label)
		}
		if got := strings.Join(labels, " "); c.want != "" && got != c.want {
			t.Errorf("ticks from %v to %v: %s, expected %s", c.least, c.most, got, c.want)
		}
	}
}

// TestNotesOfSitesThatNobodyKnows: a configuration of other sites than those that
// served is told, and no strategy is said to have more requests than there are.
func TestNotesOfSitesThatNobodyKnows(t *testing.T) {
	t.Parallel()
	p := played()
	for i := range p.Strategies[0].Windows {
		p.Strategies[0].Windows[i] = StrategyWindow{}
	}
	var r Report
	p.Fill(&r)
	notes := strings.Join(r.notes(), "\n")
	for _, want := range []string{
		"optimal has a known site for no request: does the configuration name the sites that served?",
		"nearest-replica has a known site for 10 requests, optimal for 0: all its figures are over these.",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
}

// TestRequestsHaveAPrice: serving costs what leaves a site and what requests cost,
// also where nothing leaves for money.
func TestRequestsHaveAPrice(t *testing.T) {
	p := &Played{
		Sites: []Site{{Name: "east"}}, PerThousand: 0.4, Windows: []Span{{}},
		Strategies: []Strategy{{Name: "optimal", Windows: []StrategyWindow{{Traffic: []int64{5e9}, Requests: 2500}}}},
	}
	for egress, want := range map[float64]Figure{0: 1, 0.1: 1.5} {
		p.Sites[0].Egress = egress
		var r Report
		p.Fill(&r)
		if math.Abs(float64(r.ServingUSD-want)) > 1e-12 {
			t.Errorf("at %v a GB serving costs %v, expected %v", egress, r.ServingUSD, want)
		}
	}
}
