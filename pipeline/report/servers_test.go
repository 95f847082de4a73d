package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider/servers"
	"penstock/consumers/panes"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/golden"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// switched writes the record of window n of servers and, with servers that are on, a
// table of the site; the others of s1 to s4 are off.
func (x *steered) switched(n int, scope string, epoch uint64, code string, on string, reasons ...control.Reason) {
	x.t.Helper()
	hash := "sha256:" + strings.Repeat("0", 64)
	x.put(subject.Decisions(string(control.Servers)), control.Decision{
		Version: 1, Kind: control.Servers, Mode: control.Act, Window: splitWindow(n), Reasons: append([]control.Reason{}, reasons...), Commands: []control.CommandRef{},
		Operator: control.Operator{Mode: control.Act}, Policy: hash, State: hash,
	})
	if on == "" {
		return
	}
	table := &control.ServersTable{On: strings.Fields(on), Off: without([]string{"s1", "s2", "s3", "s4"}, strings.Fields(on)), ZoneWeights: map[string]float64{"fast": 0.75, "slow": 0.25}}
	x.put(subject.Commands(string(control.Servers), scope), control.Command{
		Version: 1, Kind: control.Servers, Scope: scope, Epoch: epoch, Window: splitWindow(n), Mode: control.Act, TTL: "10m",
		Reason: control.Reason{Code: code, Text: "the reason of " + code}, Servers: table,
	})
}

// served is a row of the rollup service: what the servers of a site did in second n.
type served struct {
	n                                  int
	site, server, class                string
	requests, errors, served, limited  int64
	serviceMS, overdueMS, late         int64
	gauges, potentialMS, mostPotential int64
}

func (s served) append(t *window.Table) {
	most := int64(window.NullInt)
	if s.gauges > 0 {
		most = 1000 * s.mostPotential
	}
	t.Append(splitStart.Add(time.Duration(s.n)*time.Second).UnixMicro(), []string{s.site, s.server, s.class}, []int64{
		s.requests, s.errors, 0, s.served, 1000 * s.serviceMS, s.limited, 1000 * s.overdueMS, s.late,
		s.gauges, 0, window.NullInt, 0, window.NullInt, 0, 0, 1000 * s.potentialMS, most,
	}, window.Bins{})
}

func servedWindow(rows ...served) *panes.Window {
	t := window.NewTable(window.Service)
	for _, r := range rows {
		r.append(t)
	}
	t.Sort()
	w := splitWindow(rows[0].n / 10)
	return &panes.Window{Start: w.Start.UnixMicro(), End: w.End.UnixMicro(), Tables: map[string]*window.Table{window.Service.Name: t}}
}

// ofServers are two sites: one of two zones whose servers are not alike, and one that
// never gets a request.
func ofServers() ServersOf {
	return ServersOf{Config: "sha256:x", Policy: servers.Config{
		Policy: servers.Penalty, Slots: 4, ServerCost: 1, Penalty: 0.5,
		Classes: []servers.Class{{Name: "page", Limit: 100 * time.Millisecond, Penalty: 2}, {Name: "free", Limit: time.Second, Penalty: -1}},
		Sites: []servers.Site{
			{Name: "east", Zones: []servers.Zone{
				{Name: "fast", Servers: []servers.Server{{Name: "s1", Slots: 8, Cost: 3}, {Name: "s2", Off: true}}},
				{Name: "slow", Servers: []servers.Server{{Name: "s3", Off: true}, {Name: "s4", Off: true}}},
			}},
			{Name: "idle", Zones: []servers.Zone{{Name: "idle", Servers: []servers.Server{{Name: "s1"}, {Name: "s2"}}}}},
		},
	}}
}

// servedReport is a report of a bus with 40 s of decisions: s1 alone for 20 s, then with s2
// and s3 for 10 s, then s1 and s2.
func (x *steered) servedReport() *Report {
	x.t.Helper()
	x.switched(0, "east", 1, "FirstTable", "s1", control.Reason{Code: "WithinCost", Count: 2})
	x.switched(1, "east", 2, "PenaltyAboveCost", "s1 s2 s3", control.Reason{Code: "PenaltyAboveCost", Scope: "east"})
	x.switched(2, "east", 3, "IdleServer", "s1 s2", control.Reason{Code: "IdleServer", Scope: "east"})
	x.switched(3, "east", 4, "Renewed", "s1 s2")
	x.switched(3, "mars", 1, "FirstTable", "s1") // of a configuration that had it
	s, err := ReadServers(x.t.Context(), x.c, ofServers())
	if err != nil {
		x.t.Fatal(err)
	}
	s.Watch(&panes.Window{}) // without rows
	s.Watch(servedWindow(
		// Half of the times are known, and stand for the rest: 8 s in service in 1 s of 8 places.
		served{n: 0, site: "east", server: "s1", class: "page", requests: 20, served: 10, limited: 20, serviceMS: 4000, overdueMS: 3000, late: 10},
		served{n: 0, site: "east", server: "s1", class: "free", requests: 4, served: 0, limited: 4, overdueMS: 9000, late: 4},
		served{n: 0, site: "east", server: "s1", gauges: 2, potentialMS: 5000, mostPotential: 4000},
		served{n: 0, site: "east", server: "s2", gauges: 2, potentialMS: 1000, mostPotential: 600},
		served{n: 1, site: "east", server: "s1", gauges: 2, potentialMS: 2000, mostPotential: 1500},
		served{n: 1, site: "mars", server: "s1", class: "page", requests: 9, limited: 9, overdueMS: 9, late: 9},
	))
	s.Watch(servedWindow(
		served{n: 25, site: "east", server: "s2", class: "odd", requests: 10, served: 10, limited: 10, serviceMS: 6000, overdueMS: 2000, late: 2},
		served{n: 25, site: "east", class: "page", requests: 5, errors: 5}, // which no server got: 5 × 100 ms
		served{n: 26, site: "east", server: "s2", class: "page", requests: 3},
	))
	r := &Report{Kind: KindReplay, Baselines: map[string]Baseline{}}
	s.Fill(r)
	return r
}

// TestWhatAReportSaysOfServers: servers count while the tables have them on, penalties are
// those of the recording, and of what would have come of other servers nothing is said.
func TestWhatAReportSaysOfServers(t *testing.T) {
	t.Parallel()
	x := &steered{t, bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 }))}
	r := x.servedReport()
	v := r.Servers
	if v.Windows != 5 || v.Tables != 5 || v.Changes != 2 || v.StepS != 1 || len(v.Sites) != 2 || v.Reasons["WithinCost"] != 2 || !v.From.Equal(splitStart) || !v.Upto.Equal(splitWindow(3).End) {
		t.Errorf("%+v", v)
	}
	east := &v.Sites[0]
	if want := (ServersOn{Configured: 4, Mean: 1.75, Least: 1, Most: 3, Last: 2}); east.On != want {
		t.Errorf("on: %+v, expected %+v", east.On, want)
	}
	// 20 s × 3, 10 s × (3+1+1), 10 s × (3+1); with all on 40 s × 6.
	if want := (ServersCost{Hours: rounded(70.0 / 3600), ServerTime: 150, AllOn: 240}); east.Cost != want {
		t.Errorf("cost: %+v, expected %+v", east.Cost, want)
	}
	if got := fmt.Sprint(east.Changes); !strings.Contains(got, "3 [s2 s3] [] PenaltyAboveCost") || !strings.Contains(got, "2 [] [s3] IdleServer") || len(east.Changes) != 2 {
		t.Errorf("changes: %s", got)
	}
	// 3 s × 2, none for free, 2 s × 0.5, 5 × 0.1 s × 2.
	got := east.Recorded
	potential := *got.Potential
	got.Potential = nil
	if want := (ServersRecorded{Requests: 42, Turned: 5, Limited: 34, Late: 16, LateShare: 0.470588, Penalties: 8}); got != want || potential != (PotentialSeen{4, 4}) {
		t.Errorf("recorded: %+v, potential %+v, expected %+v", got, potential, want)
	}
	at := func(n int) string {
		p := east.Series[n]
		p.Start = time.Time{}
		return fmt.Sprint(p)[len("{0001-01-01 00:00:00 +0000 UTC "):]
	}
	for n, want := range map[int]string{
		0:  "1 24 14 6 3 1 6}",      // gauges: 5 + 1
		1:  "1 0 0 0 3 0 2}",        //
		25: "3 15 2 2 5 0.375 NaN}", // 6 s in 16 places
		26: "3 3 0 0 5 NaN NaN}",    // nobody knows how long they took
		35: "2 0 0 0 4 0 NaN}",      //
	} {
		if got := at(n); got != want {
			t.Errorf("second %d: %s, expected %s", n, got, want)
		}
	}
	idle := &v.Sites[1]
	if idle.On != (ServersOn{2, 2, 2, 2, 2}) || idle.Cost.ServerTime != 80 || idle.Cost.AllOn != 80 || idle.Recorded.LateShare.Known() || idle.Recorded.Potential != nil {
		t.Errorf("a site without requests: %+v", idle)
	}
	var again Report
	body, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(body, &again)
	}
	if err != nil || again.Servers == nil || len(again.Servers.Sites) != 2 || !strings.Contains(string(body), `"late_share":null`) {
		t.Errorf("%v\n%s", err, body)
	}
	x.put(subject.Commands(string(control.Servers), "east"), "no table")
	if _, err := ReadServers(t.Context(), x.c, ofServers()); !errors.Is(err, control.ErrUndecodable) {
		t.Errorf("a table that cannot be read: %v", err)
	}
}

// TestServersForPeople prints what a person is told at a terminal and on the page. Run
// with -update after a change and read the difference.
func TestServersForPeople(t *testing.T) {
	t.Parallel()
	x := &steered{t, bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 }))}
	r := x.servedReport()
	var text strings.Builder
	r.Servers.summary(&text)
	text.WriteString("\n")
	page, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "<h2>Servers</h2>")
	text.WriteString(regexp.MustCompile(`src="[^"]*"`).ReplaceAllString(section, "src"))
	golden.File(t, "servers.golden", text.String())
	r.Servers.Incomplete = 3
	text.Reset()
	if r.Servers.summary(&text); !strings.Contains(text.String(), "turn servers on or off; 3 windows lack events\n") {
		t.Error(text.String())
	}
}

// TestLinesOfServers end where nothing is known, and with the time.
func TestLinesOfServers(t *testing.T) {
	t.Parallel()
	x := &steered{t, bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 }))}
	v := x.servedReport().Servers
	east := &v.Sites[0]
	runs := v.runs(east, line{curve: curve{values: east.values(func(p *ServersPoint) float64 { return float64(p.Utilisation) })}})
	if len(runs) != 2 || len(runs[0]) != 27 || len(runs[1]) != 14 || runs[0][26].X != runs[0][25].X+1 || runs[1][13].X != float64(v.Upto.Unix()) {
		t.Errorf("runs: %v", runs)
	}
	pictures, err := v.plots()
	if err != nil || len(pictures) != 6 || pictures[1].Title != "east: penalties and server time" || pictures[5].Title != "idle: utilisation" {
		t.Errorf("%v, %+v", err, pictures)
	}
	many := &ServersReport{From: v.From, Upto: v.Upto, StepS: 1}
	for range maxDrawn + 2 {
		many.Sites = append(many.Sites, *east)
	}
	if pictures, err := many.plots(); err != nil || len(pictures) != 3*maxDrawn {
		t.Errorf("%d pictures, %v", len(pictures), err)
	}
}

// TestServersOfLongRecordings: a step covers as many seconds as it takes for a line to be
// no longer than others, and what is outside of what was decided is in the sums alone.
func TestServersOfLongRecordings(t *testing.T) {
	t.Parallel()
	x := &steered{t, bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 }))}
	x.switched(0, "", 0, "", "")
	x.switched(899, "", 0, "", "") // 9,000 s: 15 s a step
	s, err := ReadServers(t.Context(), x.c, ofServers())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{-5, 14, 15, 8999, 9000} {
		s.Watch(servedWindow(served{n: n, site: "east", server: "s1", class: "page", requests: 1, served: 1, limited: 1, serviceMS: 12000, late: 1, overdueMS: 500}))
	}
	r := &Report{}
	s.Fill(r)
	east := &r.Servers.Sites[0]
	if r.Servers.StepS != 15 || len(east.Series) != 600 || east.Series[0].Requests != 1 || east.Series[1].Utilisation != 0.1 || east.Series[599].Penalties != 1 || east.Recorded.Requests != 5 || east.Recorded.Penalties != 5 {
		t.Errorf("%+v, %+v", east.Recorded, east.Series[:2])
	}
}

// TestServersOfNothing: a replay of no window has the section, and one without servers
// has none.
func TestServersOfNothing(t *testing.T) {
	t.Parallel()
	client := bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 }))
	s, err := ReadServers(t.Context(), client, ofServers())
	if err != nil {
		t.Fatal(err)
	}
	s.Watch(servedWindow(served{site: "east", server: "s1", class: "page", requests: 1}))
	r := &Report{Kind: KindReplay, Baselines: map[string]Baseline{}}
	s.Fill(r)
	if e := &r.Servers.Sites[0]; e.On.Mean != 0 || e.On.Last != 1 || e.Cost != (ServersCost{}) || len(e.Series) != 0 || e.Recorded.Requests != 1 {
		t.Errorf("%+v", e)
	}
	if _, err := r.HTML(); err != nil {
		t.Error(err)
	}
	r.Servers, s = nil, nil
	s.Watch(&panes.Window{})
	s.Fill(r)
	page, err := r.HTML()
	if err != nil || r.Servers != nil || strings.Contains(string(page), "<h2>Servers") {
		t.Errorf("a replay without servers: %v", err)
	}
}

// TestStatusOfServers: the last table of a site, in brief, and who follows it.
func TestStatusOfServers(t *testing.T) {
	t.Parallel()
	x := &steered{t, bustest.Client(t, bustest.Start(t))}
	x.switched(0, "east", 1, "FirstTable", "s1 s2")
	answer := func(by, target string, epoch uint64, status control.Status, reason string, failed ...string) {
		x.put(subject.Outcomes(string(control.Servers), "east"), control.Outcome{
			Version: 1, Kind: control.Servers, Scope: "east", Epoch: epoch, Status: status, Reason: reason, By: by, Target: target, Failed: failed, At: time.Now(), // Its beats may be on their way.
		})
	}
	answer("entry-1", "dispatcher", 1, control.Done, "")
	answer("switch-1", control.SwitchTarget, 1, control.Done, "")
	x.switched(1, "east", 2, "IdleServer", "s1")
	answer("entry-1", "dispatcher", 2, control.Done, "")
	answer("switch-1", control.SwitchTarget, 2, control.Failed, "s2: exit status 1", "s2")
	now := time.Now()
	_, text := x.status(now)
	for _, want := range []string{
		"servers: mode act, last decided window 2026-03-01 10:00:10 to 10:00:20, 0 tables; reasons: none", "  east: epoch 2, IdleServer, ",
		"    1 on: s1; 3 off: s2, s3, s4; zones fast 0.75, slow 0.25\n" +
			"    follower entry-1 dispatcher: epoch 2 done\n" +
			"    follower switch-1 serverswitch: epoch 2 failed s2: exit status 1; in force there: 1\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if _, text := x.status(now.Add(11 * time.Minute)); !strings.Contains(text, "its ttl of 10m is OVER, and followers do without") {
		t.Errorf("a table whose time is over:\n%s", text)
	}
	got, err := TableOf(t.Context(), x.c, control.Servers, "east")
	if err != nil || got.Servers == nil || got.Rows != nil || got.Coding != nil || len(got.Routers) != 2 {
		t.Errorf("table %+v, %v", got, err)
	}
}

// TestServersText names the first of many, and the zones if there are several.
func TestServersText(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 10 {
		many = append(many, fmt.Sprint("s", i))
	}
	for want, table := range map[string]control.ServersTable{
		"1 on: a": {On: []string{"a"}, ZoneWeights: map[string]float64{"x": 1}},
		"1 on: a; 2 off: b, c; zones x 0.33, y 0":          {On: []string{"a"}, Off: []string{"b", "c"}, ZoneWeights: map[string]float64{"y": 0, "x": 1.0 / 3}},
		"10 on: s0, s1, s2, s3, s4, s5, s6, s7 and 2 more": {On: many},
	} {
		if got := ServersText(&table); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}
