package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/infra/objectstore"
	"penstock/pipeline/config"
	"penstock/pipeline/report"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

const components = `
components:
  - {name: web, sites: [a, b]}
  - {name: cart, servers: {a: ["http://127.0.0.1:1"], b: ["http://127.0.0.1:2"]}}
`

func TestConfigurationsThatSplit(t *testing.T) {
	for name, c := range map[string]struct {
		text, what string
		verdict    Verdict
		says       string
	}{
		"a good one":      {components, "components", Fine, "2, split by policy greedy in windows of 10s"},
		"one site":        {components + "  - {name: search, sites: [d]}", "component search", Look, "runs at d only"},
		"pinned away":     {components + "  - {name: search, sites: [a, b], pin: [a, d]}", "component search", Look, "may be called at d, and does not run there"},
		"no servers":      {components + "  - {name: search, sites: [a, b], hosts: [search.internal]}\nentry: {internal: \"127.0.0.1:8081\"}", "component search", Broken, "it has no servers"},
		"public, and not": {components + "  - {name: search, sites: [a, b], path: \"/search/**\", public: true}", "component search", Broken, "it has no servers"},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, Run(t.Context(), Options{Config: read(t, sites+c.text)}), "configuration", c.what, c.verdict, c.says)
		})
	}
	refused := Options{Config: read(t, sites+components), Split: func() error { return fmt.Errorf("cart may be called nowhere") }}
	want(t, Run(t.Context(), refused), "configuration", "components", Broken, "cart may be called nowhere serve refuses")
	for _, f := range Run(t.Context(), Options{Config: read(t, sites)}).Findings {
		if strings.Contains(f.What, "component") {
			t.Errorf("nothing is split, and yet %+v", f)
		}
	}
}

// TestNothingToMove: where calls are split and no site has a store, what is about
// data does not apply, and that is said.
func TestNothingToMove(t *testing.T) {
	bare := "sites: [{name: a, lat: 10, lon: 20, capacity: 1MB/h}, {name: b, lat: 40, lon: 3, capacity: 9GB/h}]\n"
	c := read(t, bare+components)
	opened := false
	o := Options{Config: c, Stores: func(context.Context, *bus.Client) (map[string]objectstore.Store, func() error, error) {
		opened = true
		return nil, func() error { return nil }, errors.New("site a has no store")
	}}
	r := onBus(t, bustest.Start(t, listening), o)
	want(t, r, "configuration", "placement", Fine, "no data is moved")
	want(t, r, "stores", "configuration", Fine, "none is needed")
	want(t, r, "decisions", "placement", Fine, "nothing need be")
	want(t, r, "decisions", "split", Look, "nothing was decided yet")
	for _, f := range r.Findings {
		if f.Area == "capacity" || f.What == "placement.headroom" || f.Verdict == Broken {
			t.Errorf("%+v", f)
		}
	}
	if o.Config = read(t, bare); opened || Run(t.Context(), o).Count(Broken) != 1 {
		t.Errorf("stores were asked for: %v; or sites without stores and components are fine", opened)
	}
}

// steering is a bus on which split was decided.
type steering struct {
	t *testing.T
	b *bus.Bus
	c *bus.Client
	n uint64
}

func (x *steering) put(subj string, v any) {
	x.t.Helper()
	body, err := control.Encode(v)
	if err != nil {
		x.t.Fatal(err)
	}
	if _, err := x.c.Publish(x.t.Context(), bus.Msg{Subject: subj, Data: body}); err != nil {
		x.t.Fatal(err)
	}
}

// decide writes a window's record, and a table of cart's callers with that ttl.
func (x *steering) decide(mode control.Mode, ttl string, reasons ...control.Reason) {
	x.t.Helper()
	x.n++
	hash := "sha256:" + strings.Repeat("0", 64)
	end := time.Now().UTC().Truncate(time.Second)
	w := control.Window{Start: end.Add(-10 * time.Second), End: end}
	x.put(subject.Decisions(string(control.Split)), control.Decision{
		Version: 1, Kind: control.Split, Mode: mode, Window: w, Reasons: reasons, Commands: []control.CommandRef{{Scope: "web", Epoch: x.n}},
		Operator: control.Operator{Mode: mode}, Policy: hash, State: hash,
	})
	x.put(subject.Commands(string(control.Split), "web"), control.Command{
		Version: 1, Kind: control.Split, Scope: "web", Epoch: x.n, Window: w, Mode: mode, TTL: ttl, Reason: control.Reason{Code: "LowerDelay"},
		Split: &control.SplitTable{Table: []control.SplitRow{{FromSite: "a", To: "cart", Ratios: []control.SplitRatio{{Site: "a", Share: 1}}}}},
	})
}

func (x *steering) answer(by string, status control.Status, reason string) {
	x.t.Helper()
	x.put(subject.Outcomes(string(control.Split), "web"), control.Outcome{
		Version: 1, Kind: control.Split, Scope: "web", Epoch: x.n, Status: status, Reason: reason, By: by, At: time.Now().UTC(),
	})
}

func TestASplitThatNobodyFollows(t *testing.T) {
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
	want(t, looks(sites+components), "decisions", "split", Look, "nothing was decided yet")
	x.decide(control.Advise, "10m")
	x.answer("router-1", control.Advised, "")
	r := looks(sites + components)
	want(t, r, "decisions", "split", Fine, "decided in mode advise")
	want(t, r, "decisions", "split of web", Look, "router router-1: epoch 1 advised: it records what is decided and applies nothing penstock mode split act")
	want(t, looks(sites), "decisions", "split", Look, "has no components")
	x.decide(control.Act, "10m", control.Reason{Code: "UnknownSite", Scope: "mars", Text: "x"}, control.Reason{Code: "UnknownSite", Text: "x"}, control.Reason{Code: "NoRoom", Scope: "cart", Text: "too many calls"})
	x.answer("router-1", control.Done, "")
	x.answer("router-2", control.Failed, "no such backend")
	r = looks(sites + components)
	want(t, r, "decisions", "split of web", Broken, "router router-2: epoch 2 failed: no such backend")
	want(t, r, "decisions", "split", Look, `from or to "mars" are left out`)
	want(t, r, "decisions", "split", Look, "calls without a site")
	want(t, r, "decisions", "split", Look, "cart: too many calls")
	for _, f := range find(r, "decisions", "split of web") {
		if strings.Contains(f.Text, "router-1") || strings.Contains(f.Text, "ttl") {
			t.Errorf("what works is no finding: %+v", f)
		}
	}
	x.decide(control.Act, "1ns")
	want(t, looks(""), "decisions", "split of web", Look, "the ttl of its last table is over")
}

// TestRoutersThatDoNotAnswer are told of until they are taken to be gone, and not
// while a table is new.
func TestRoutersThatDoNotAnswer(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		age   int64
		at    time.Time
		epoch uint64
		told  bool
	}{
		"new":      {9, now.Add(-time.Minute), 1, false},
		"old":      {11, now.Add(-time.Minute), 1, true},
		"gone":     {11, now.Add(-2 * time.Hour), 1, false},
		"answered": {11, now.Add(-time.Minute), 2, false},
	} {
		left := int64(60)
		x := &examination{Options: Options{Clock: clock.System()}}
		x.table(&report.KindStatus{Kind: control.Split}, &report.TableStatus{Scope: "web", Epoch: 2, AgeS: &c.age, LeftS: &left, Routers: []report.RouterStatus{
			{By: "proxies", Target: "xds", Epoch: c.epoch, Status: control.Done, At: c.at},
		}})
		if told := len(x.report.Findings) == 1 && strings.Contains(x.report.Findings[0].Text, "router proxies xds has not answered epoch 2; its last answer was to 1"); told != c.told {
			t.Errorf("%s: told %v, expected %v: %+v", name, told, c.told, x.report.Findings)
		}
	}
	for _, alone := range []bool{true, false} {
		age, left := int64(11), int64(60)
		x := &examination{Options: Options{Clock: clock.System()}}
		table := &report.TableStatus{Scope: "web", Epoch: 2, AgeS: &age, LeftS: &left, Routers: []report.RouterStatus{
			{By: "proxies", Target: "haproxy", Epoch: 2, Status: control.Advised, Reason: control.NotConcerned, At: now},
		}}
		if !alone {
			table.Routers = append(table.Routers, report.RouterStatus{By: "entry-1", Target: "router", Epoch: 2, Status: control.Done, At: now})
		}
		x.table(&report.KindStatus{Kind: control.Split}, table)
		if told := len(x.report.Findings) == 1 && strings.Contains(x.report.Findings[0].Text, "no router that has answered epoch 2 carries these calls"); told != alone || len(x.report.Findings) > 1 {
			t.Errorf("not concerned, alone %v: %+v", alone, x.report.Findings)
		}
	}
	x := &examination{Options: Options{Clock: clock.System()}}
	age, left := int64(11), int64(60)
	x.table(&report.KindStatus{Kind: control.Split}, &report.TableStatus{Scope: "web", Epoch: 2, AgeS: &age, LeftS: &left})
	want(t, &x.report, "decisions", "split of web", Look, "no router has answered epoch 2: nobody follows it")
}
