package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"penstock/consumers/panes"
	"penstock/infra/bus/bustest"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// delays is a closed window of the group fast: calls of web at east to cart, by site.
func delays(n int, ms map[string]float64) *panes.Window {
	t := window.NewTable(window.Delay)
	w := splitWindow(n)
	for _, site := range []string{"east", "mars", "west"} {
		us := int64(ms[site] * 1000)
		if us == 0 {
			continue
		}
		var service, network window.Bins
		service.Add(us-1000, 10)
		network.Add(1000, 5)
		t.Append(w.Start.UnixMicro(), []string{"web", "east", "cart", site}, []int64{10, 1, 10 * (us - 1000), 0, 5 * 1000, 0}, service, network)
	}
	t.Sort()
	return &panes.Window{Start: w.Start.UnixMicro(), End: w.End.UnixMicro(), Tables: map[string]*window.Table{window.Delay.Name: t}}
}

// TestWhatAReportSaysOfSplit: shifts are counted from table to table, delays are of
// what was called, and what did not move is not drawn.
func TestWhatAReportSaysOfSplit(t *testing.T) {
	t.Parallel()
	x := &steered{t, bustest.Client(t, bustest.Start(t))}
	for n := range 4 {
		x.decide(n, control.Act, control.Reason{Code: "LowerDelay", Count: 2}, control.Reason{Code: "NoChange"})
	}
	x.order(0, "web", 1, control.Act, "LowerDelay", map[string]float64{"cart": 1, "search": 1})
	x.order(1, "web", 2, control.Act, "HigherErrors", map[string]float64{"cart": 0.3, "search": 1})
	x.order(2, "web", 3, control.Act, "Renewed", map[string]float64{"cart": 0.3, "search": 1})
	x.order(3, "web", 4, control.Act, "LowerDelay", map[string]float64{"cart": 0.5, "search": 1})
	s, err := ReadSplits(t.Context(), x.c, SplitsOf{Config: "sha256:x", Policy: "lp", Sites: []string{"east", "west"}})
	if err != nil {
		t.Fatal(err)
	}
	for n, ms := range []map[string]float64{{"east": 20, "west": 80}, {"east": 320, "mars": 1}, {}, {"east": 20, "west": 80}} {
		s.Watch(delays(n, ms))
	}
	s.Watch(&panes.Window{}) // without calls
	r := &Report{Kind: KindReplay, Baselines: map[string]Baseline{}}
	s.Fill(r)
	sp := r.Split
	if sp.Windows != 4 || sp.Tables != 4 || sp.Changes != 2 || sp.Reasons["LowerDelay"] != 8 || sp.Reasons["NoChange"] != 4 || sp.Policy != "lp" {
		t.Errorf("%+v", sp)
	}
	if got := *sp.Largest; got != (SplitShift{splitWindow(1).End, "web", "east", "cart", 0.7, "east", "west", "HigherErrors"}) {
		t.Errorf("largest shift %+v", got)
	}
	cart, search := sp.Links[0], sp.Links[1]
	if len(sp.Links) != 2 || cart.To != "cart" || cart.Changes != 2 || cart.Moved != 0.9 || len(cart.Series) != 3 || !cart.drawn || search.Changes != 0 || len(search.Series) != 1 || search.drawn {
		t.Errorf("links %+v", sp.Links)
	}
	// (19 + 319 + 19) ÷ 3 in service, 1 in network; mars is no site of ours.
	if got := fmt.Sprint(cart.Calls); got != "[{east 30 3 119 1} {west 20 2 79 1}]" {
		t.Errorf("calls %s", got)
	}
	pictures, err := sp.plots()
	if err != nil || len(pictures) != 2 || pictures[0].Title != "web at east → cart: shares" || pictures[1].Title != "web at east → cart: delay" {
		t.Errorf("plots %+v, %v", pictures, err)
	}
	if got := cart.delayRuns(); len(got) != 2 || got[0].site != "east" || len(got[0].lines) != 1 || len(got[0].lines[0]) != 3 || got[0].lines[0][1].Y != 320 {
		t.Errorf("delays over time %+v", got)
	}
	if got := cart.shareRuns(splitWindow(5).End); len(got[0].lines[0]) != 4 || got[0].lines[0][3].Y != 50 || got[1].lines[0][1].Y != 70 {
		t.Errorf("shares over time %+v", got)
	}
	var text strings.Builder
	if err := r.Summary(&text); err != nil || !strings.Contains(text.String(), "split    4 windows decided by policy lp, 4 tables, 2 of them with other shares; 1 of 2 links moved\n"+
		"  largest shift: 70.0 % of web at east → cart, east to west, HigherErrors, window to 2026-03-01 10:00:20\n") {
		t.Errorf("%v\n%s", err, &text)
	}
	page, err := r.HTML()
	if err != nil || !strings.Contains(string(page), "<td class=\"left\">east 50.0 % west 50.0 % </td>") {
		t.Errorf("the page: %v", err)
	}
	var again Report
	body, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(body, &again)
	}
	if err != nil || again.Split == nil || len(again.Split.Links) != 2 || again.Version != r.Version {
		t.Errorf("%v\n%s", err, body)
	}
}

// TestShifts of tables that do not name the same sites.
func TestShifts(t *testing.T) {
	t.Parallel()
	ratios := func(pairs ...any) (out []control.SplitRatio) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, control.SplitRatio{Site: pairs[i].(string), Share: pairs[i+1].(float64)})
		}
		return out
	}
	for _, c := range []struct {
		was, is   []control.SplitRatio
		moved     float64
		off, onto string
	}{
		{ratios("a", 1.0), ratios("a", 1.0), 0, "", ""},
		{ratios("a", 1.0), ratios("b", 1.0), 1, "a", "b"},
		{ratios("a", 0.5, "b", 0.5), ratios("b", 0.2, "c", 0.7, "a", 0.1), 0.7, "a", "c"},
		{nil, ratios("a", 0.4, "b", 0.6), 1, "", "b"},
		{ratios("a", 0.1+0.2, "b", 0.7), ratios("a", 0.3, "b", 0.7), 0, "", ""},
	} {
		moved, off, onto := ShiftOf(c.was, c.is)
		if math.Abs(moved-c.moved) > 1e-9 || off != c.off || onto != c.onto {
			t.Errorf("%v to %v: %v from %q to %q", c.was, c.is, moved, off, onto)
		}
	}
}

// TestManyLinks: the page lists and draws those that moved most, in an order that
// does not depend on that of a map.
func TestManyLinks(t *testing.T) {
	t.Parallel()
	s := &SplitReport{}
	for i := range maxListed + 5 {
		s.Links = append(s.Links, SplitLink{From: fmt.Sprint("c", i), Moved: float64(i)})
	}
	if got := s.listed(); len(got) != maxListed || got[0].From != fmt.Sprint("c", maxListed+4) {
		t.Errorf("%d links, first %s", len(got), got[0].From)
	}
	x := &steered{t, bustest.Client(t, bustest.Start(t))}
	for i := range maxDrawn + 3 {
		scope := fmt.Sprint("caller-", i)
		x.order(0, scope, 1, control.Act, "LowerDelay", map[string]float64{"cart": 1})
		x.order(1, scope, 2, control.Act, "LowerDelay", map[string]float64{"cart": 0.9 - float64(i)/100})
	}
	sp, err := ReadSplits(t.Context(), x.c, SplitsOf{Sites: []string{"east", "west"}})
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[linkKey]bool{}
	for key, l := range sp.links {
		if l.drawn {
			drawn[key] = true
		}
	}
	if len(drawn) != maxDrawn || drawn[linkKey{"caller-2", "east", "cart"}] || !drawn[linkKey{"caller-3", "east", "cart"}] {
		t.Errorf("drawn %v", drawn)
	}
	x.put(subject.Decisions(string(control.Split)), "no decision")
	if _, err := ReadSplits(t.Context(), x.c, SplitsOf{}); err == nil {
		t.Error("a decision that cannot be read is left out without a word")
	}
}

// TestStrangeTables: a command of another kind among tables is told, not read as one.
func TestStrangeTables(t *testing.T) {
	t.Parallel()
	x := &steered{t, bustest.Client(t, bustest.Start(t))}
	x.put(subject.Commands(string(control.Split), "web"), control.Command{
		Version: 1, Kind: control.Placement, Scope: "web", Epoch: 1, Window: splitWindow(0), Mode: control.Act, TTL: "10m",
		Reason: control.Reason{Code: "LowerDelay"}, Placement: &control.Moves{Moves: []control.Move{{Owner: "a", From: "east", To: "west", Version: 1}}},
	})
	if _, err := ReadSplits(t.Context(), x.c, SplitsOf{}); !errors.Is(err, control.ErrUndecodable) {
		t.Errorf("read: %v", err)
	}
	if _, err := TableOf(t.Context(), x.c, control.Split, "web"); !errors.Is(err, control.ErrUndecodable) {
		t.Errorf("table: %v", err)
	}
}

// TestTicksOfMinutes are round and no more than ten.
func TestTicksOfMinutes(t *testing.T) {
	t.Parallel()
	from := float64(splitStart.Unix() + 7)
	for span, want := range map[time.Duration]string{
		10 * time.Second: "Mar 1 10:00:08", 3 * time.Minute: "Mar 1 10:00:30", 20 * time.Minute: "Mar 1 10:05", 5 * time.Hour: "Mar 1 11:00", 9 * time.Hour: "Mar 1 12:00",
	} {
		ticks := splitTicks(from, from+span.Seconds())
		if len(ticks) < 2 || len(ticks) > 10 || ticks[0].Label != want {
			t.Errorf("%s: %+v, expected %q first", span, ticks, want)
		}
	}
}
