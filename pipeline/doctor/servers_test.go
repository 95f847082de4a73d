package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/pipeline/config"
	"penstock/pipeline/report"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// pools are sites with servers and no store, so that what is about data does not apply.
const pools = `
sites:
  - {name: a, lat: 10, lon: 20, capacity: 10MB/h, url: "http://127.0.0.1:1", servers: ["http://10.0.0.1:80", "http://10.0.0.2:80", "http://10.0.0.3:80"]}
  - {name: b, lat: 40, lon: 3, capacity: 20MB/h}
`

const (
	classed  = "entry: {class: [{path: \"/**\", class: page}], retry: {attempts: 2}}\n"
	dispatch = "servers: {classes: {page: {t_max: 100ms, penalty: 2}}}\n"
	switches = "servers: {classes: {page: {t_max: 100ms, penalty: 2}}, switching: {policy: penalty, hooks: [{kind: none}]}}\n"
)

func TestConfigurationsThatDispatch(t *testing.T) {
	for name, c := range map[string]struct {
		text, what string
		verdict    Verdict
		says       string
	}{
		"a good one":          {classed + dispatch, "servers", Fine, "policy A1 with 1 classes, at most 16 requests in service at a server; switching: none"},
		"without data":        {classed + dispatch, "placement", Fine, "no site has a store: requests are given to servers, and no data is moved"},
		"one that switches":   {classed + switches, "servers", Fine, "switching: penalty"},
		"no limits":           {"entry: {retry: {attempts: 2}}\n" + dispatch, "servers", Look, "no request has a limit a class other, or rules"},
		"no second attempt":   {"entry: {class: [{path: \"/**\", class: page}], retry: {attempts: 1}}\n" + dispatch, "servers", Look, "requests in service at a server that dies fail, also those"},
		"none to turn off":    {classed + strings.Replace(switches, "policy: penalty", "policy: penalty, least: 3", 1), "servers of a", Look, "it has 3 servers, and 3 are on at least: none is ever turned off"},
		"no hooks":            {classed + strings.Replace(switches, ", hooks: [{kind: none}]", "", 1), "file", Look, "servers that are to be off get no requests, and go on running"},
		"an unheard-of class": {strings.Replace(classed, "class: page", "class: image", 1) + dispatch, "file", Look, "no rule of entry.class gives a request this class"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, Run(t.Context(), Options{Config: read(t, pools+c.text)}), "configuration", c.what, c.verdict, c.says)
		})
	}
	for _, text := range []string{classed + dispatch, classed + switches, "entry: {retry: {attempts: 2}}\n" + strings.Replace(dispatch, "page:", "other:", 1)} {
		for _, f := range Run(t.Context(), Options{Config: read(t, pools+text)}).Findings {
			if strings.HasPrefix(f.What, "servers") && f.Verdict != Fine {
				t.Errorf("of a good one: %+v\n%s", f, text)
			}
		}
	}
	missing := Options{Config: read(t, pools+classed+switches), Programs: config.Faults{{File: "f", Line: 7, Path: "servers.switching.hooks[0].on", Got: "no-such", Expected: "a program"}}}
	want(t, Run(t.Context(), missing), "configuration", "servers", Look, `f:7: servers.switching.hooks[0].on: got "no-such", expected a program on the machines of penstock serverswitch`)
	refused := Options{Config: read(t, pools+classed+dispatch), Servers: func() error { return errors.New("slots beyond all") }}
	want(t, Run(t.Context(), refused), "configuration", "servers", Broken, "slots beyond all serve refuses to start, and so do entry points")
	refused.Config = read(t, pools)
	for _, f := range Run(t.Context(), refused).Findings {
		if f.What == "servers" {
			t.Errorf("nothing is dispatched, and yet %+v", f)
		}
	}
}

// TestServersThatNobodyTurns: what was decided of servers, and what became of it at those
// who give requests and at those who turn machines on and off.
func TestServersThatNobodyTurns(t *testing.T) {
	b := bustest.Start(t, listening)
	x := &steering{t: t, b: b, c: bustest.Client(t, b)}
	looks := func(text string) *Report {
		t.Helper()
		var cfg *config.Config
		if text != "" {
			cfg = read(t, text)
		}
		return onBus(t, b, Options{Config: cfg})
	}
	kind, hash := string(control.Servers), "sha256:"+strings.Repeat("0", 64)
	end := time.Now().UTC().Truncate(time.Second)
	w := control.Window{Start: end.Add(-time.Second), End: end}
	decide := func(epoch uint64, mode control.Mode, ttl string, reasons ...control.Reason) {
		t.Helper()
		x.put(subject.Decisions(kind), control.Decision{
			Version: 1, Kind: control.Servers, Mode: mode, Window: w, Reasons: append([]control.Reason{}, reasons...), Commands: []control.CommandRef{{Scope: "a", Epoch: epoch}},
			Operator: control.Operator{Mode: mode}, Policy: hash, State: hash,
		})
		x.put(subject.Commands(kind, "a"), control.Command{
			Version: 1, Kind: control.Servers, Scope: "a", Epoch: epoch, Window: w, Mode: mode, TTL: ttl, Reason: control.Reason{Code: "FirstTable"},
			Servers: &control.ServersTable{On: []string{"10.0.0.1:80"}, Off: []string{"10.0.0.2:80"}, ZoneWeights: map[string]float64{"a": 1}},
		})
	}
	answer := func(by, target string, epoch uint64, status control.Status, reason string, failed ...string) {
		t.Helper()
		x.put(subject.Outcomes(kind, "a"), control.Outcome{
			Version: 1, Kind: control.Servers, Scope: "a", Epoch: epoch, Status: status, Reason: reason, By: by, Target: target, Failed: failed, At: time.Now().UTC(),
		})
	}
	good := pools + classed + switches
	want(t, looks(good), "decisions", "servers", Look, "nothing was decided yet it takes requests or gauges, which entry points send")
	decide(1, control.Advise, "10m")
	answer("entry-1", "", 1, control.Advised, "")
	r := looks(good)
	want(t, r, "decisions", "servers", Fine, "decided in mode advise")
	want(t, r, "decisions", "servers of a", Look, "follower entry-1: epoch 1 advised: it records what is decided and applies nothing penstock mode servers act")
	want(t, looks(pools), "decisions", "servers", Look, "has no servers.classes: nobody decides it any more dispatchers do without")
	decide(
		2, control.Act, "10m", control.Reason{Code: "BadRow", Count: 3, Text: "rows with a number that cannot be"},
		control.Reason{Code: "UnknownSite", Scope: "mars", Text: "x"}, control.Reason{Code: "UnknownServer", Scope: "a", Text: "x", Evidence: map[string]any{"server": "10.9.9.9:80", "rows": 2}},
		control.Reason{Code: "Turned", Scope: "a", Text: "x", Evidence: map[string]any{"requests": 17}},
		control.Reason{Code: "ServerFailed", Scope: "a", Text: "it could not be turned on", Evidence: map[string]any{"server": "10.0.0.3:80"}},
		control.Reason{Code: "SwitchRefused", Scope: "a", Text: "the server switch could not apply the table"}, control.Reason{Code: "Panic", Scope: "a", Text: "every server has failed"},
	)
	answer("entry-1", "", 2, control.Done, "")
	answer("switch-1", control.SwitchTarget, 2, control.Failed, "10.0.0.1:80: exit status 1", "10.0.0.1:80")
	r = looks(good)
	for _, says := range []string{
		"follower switch-1 serverswitch: epoch 2 failed: 10.0.0.1:80: exit status 1", "10.0.0.3:80: it could not be turned on look at the server switch: penstock explain servers a",
		"the server switch could not apply the table look at", "every server has failed look at",
	} {
		want(t, r, "decisions", "servers of a", Broken, says)
	}
	want(t, r, "decisions", "servers of a", Look, `requests of the server 10.9.9.9:80 are left out`)
	want(t, r, "decisions", "servers of a", Look, "no server got 17 requests of the last window")
	want(t, r, "decisions", "servers", Look, `requests of the site "mars" are left out`)
	want(t, r, "decisions", "servers", Look, "3 rows cannot be used rows with a number that cannot be")
	for _, f := range find(r, "decisions", "servers of a") {
		if strings.Contains(f.Text, "entry-1") || strings.Contains(f.Text, "ttl") {
			t.Errorf("what works is no finding: %+v", f)
		}
	}
	decide(3, control.Act, "1ns")
	want(t, looks(""), "decisions", "servers of a", Look, "the ttl of its last table is over: followers do without one")
}

// TestFollowersThatAreGone are left out as long as there are others.
func TestFollowersThatAreGone(t *testing.T) {
	t.Parallel()
	age, left := int64(60), int64(60)
	table := &report.TableStatus{Scope: "a", Epoch: 2, AgeS: &age, LeftS: &left, Routers: []report.RouterStatus{
		{By: "entry-1", Epoch: 1, Gone: true, Status: control.Done, At: time.Now()}, {By: "entry-2", Epoch: 2, Status: control.Done},
	}}
	x := &examination{Options: Options{Clock: clock.System()}}
	x.table(&report.KindStatus{Kind: control.Servers}, table)
	if len(x.report.Findings) > 0 {
		t.Errorf("one is gone, another lives: %+v", x.report.Findings)
	}
	table.Routers = table.Routers[:1]
	x.table(&report.KindStatus{Kind: control.Servers}, table)
	want(t, &x.report, "decisions", "servers of a", Look, "nothing is heard any more of any follower that has answered its tables: nobody follows them")
}

// TestServersWithoutFollowers: a table that nobody has answered is told of once it is not
// new any more.
func TestServersWithoutFollowers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		age  int64
		told bool
	}{{9, false}, {11, true}} {
		left := int64(60)
		x := &examination{Options: Options{Clock: clock.System()}}
		x.table(&report.KindStatus{Kind: control.Servers}, &report.TableStatus{Scope: "a", Epoch: 2, AgeS: &c.age, LeftS: &left})
		r := &x.report
		if told := len(r.Findings) == 1; told != c.told {
			t.Errorf("after %d s: %+v", c.age, r.Findings)
		}
		if c.told {
			want(t, r, "decisions", "servers of a", Look, "no follower has answered epoch 2: nobody follows it entry points of the site do, and penstock serverswitch")
		}
	}
}
