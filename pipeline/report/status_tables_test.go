package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// steered is a bus on which split was decided.
type steered struct {
	t *testing.T
	c *bus.Client
}

func (x *steered) put(subj string, v any) {
	x.t.Helper()
	body, err := control.Encode(v)
	if err != nil {
		x.t.Fatal(err)
	}
	if _, err := x.c.Publish(x.t.Context(), bus.Msg{Subject: subj, Data: body}); err != nil {
		x.t.Fatal(err)
	}
}

var splitStart = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func splitWindow(n int) control.Window {
	start := splitStart.Add(time.Duration(n) * 10 * time.Second)
	return control.Window{Start: start, End: start.Add(10 * time.Second)}
}

// decide writes the record of window n.
func (x *steered) decide(n int, mode control.Mode, reasons ...control.Reason) {
	x.t.Helper()
	hash := "sha256:" + strings.Repeat("0", 64)
	x.put(subject.Decisions(string(control.Split)), control.Decision{
		Version: 1, Kind: control.Split, Mode: mode, Window: splitWindow(n), Reasons: reasons, Commands: []control.CommandRef{},
		Operator: control.Operator{Mode: mode}, Policy: hash, State: hash,
	})
}

// order writes a table of a scope: the share that stays in the east, by callee; the
// rest goes west.
func (x *steered) order(n int, scope string, epoch uint64, mode control.Mode, code string, stays map[string]float64) {
	x.t.Helper()
	table := &control.SplitTable{}
	for _, to := range []string{"cart", "search"} {
		if s, ok := stays[to]; ok {
			table.Table = append(table.Table, control.SplitRow{FromSite: "east", To: to, Ratios: []control.SplitRatio{{Site: "east", Share: s}, {Site: "west", Share: 1 - s}}})
		}
	}
	x.put(subject.Commands(string(control.Split), scope), control.Command{
		Version: 1, Kind: control.Split, Scope: scope, Epoch: epoch, Window: splitWindow(n), Mode: mode, TTL: "10m", Reason: control.Reason{Code: code}, Split: table,
	})
}

func (x *steered) answer(by, target string, epoch uint64, status control.Status, reason string) {
	x.t.Helper()
	x.put(subject.Outcomes(string(control.Split), "web"), control.Outcome{
		Version: 1, Kind: control.Split, Scope: "web", Epoch: epoch, Status: status, Reason: reason, By: by, Target: target, At: splitStart,
	})
}

func (x *steered) status(now time.Time) (*Status, string) {
	x.t.Helper()
	s, err := StatusAt(x.t.Context(), x.c, now)
	if err != nil {
		x.t.Fatal(err)
	}
	var text strings.Builder
	if err := s.Print(&text); err != nil {
		x.t.Fatal(err)
	}
	return s, text.String()
}

// TestStatusOfTables tells what is in force by scope, for how long, and what each
// router and target has said last.
func TestStatusOfTables(t *testing.T) {
	t.Parallel()
	x := &steered{t, bustest.Client(t, bustest.Start(t))}
	x.order(0, "web", 1, control.Act, "LowerDelay", map[string]float64{"cart": 1})
	if s, text := x.status(time.Now()); len(s.Kinds[1].Tables) != 0 || strings.Contains(text, "web") {
		t.Errorf("tables without a decision:\n%s", text)
	}
	x.decide(0, control.Act)
	x.order(1, "web", 2, control.Act, "HigherErrors", map[string]float64{"cart": 0.625, "search": 0})
	x.order(1, "a component, far off", 1, control.Advise, "LowerDelay", map[string]float64{"cart": 0.33333})
	x.answer("proxies", "haproxy", 1, control.Done, "")
	x.answer("proxies", "xds", 1, control.Done, "")
	x.answer("entry-1", "", 1, control.Advised, "")
	x.answer("gone", "router", 1, control.Done, "")
	x.answer("entry-1", "router", 2, control.Done, "")
	x.answer("proxies", "", 2, control.Failed, "no such backend")
	x.answer("proxies", "xds", 2, control.AlreadyApplied, "")
	x.answer("proxies", "gateway", 1, control.Done, "")
	x.answer("proxies", "gateway", 2, control.Advised, control.NotConcerned)
	x.put(subject.Outcomes(string(control.Split), "other"), "no outcome")
	now := time.Now()
	_, text := x.status(now)
	for _, want := range []string{
		"split: mode act, last decided window 2026-03-01 10:00 to 10:00:10, 0 tables; reasons: none",
		"  a component, far off: epoch 1 in mode advise, which nobody applies, LowerDelay, ", "    east → cart: east 33.33 %, west 66.67 %\n    no router has answered\n",
		"  web: epoch 2, HigherErrors, ", " old, in force for 9m5",
		"    east → cart: east 62.5 %, west 37.5 %\n    east → search: west 100 %\n" +
			"    router entry-1 router: epoch 2 done\n" +
			"    router gone router: HAS NOT ANSWERED this one; last, at 2026-03-01 10:00: epoch 1 done\n" +
			"    router proxies gateway: epoch 2: not concerned, it carries none of these calls\n" +
			"    router proxies haproxy: epoch 2 failed no such backend; in force there: 1\n" +
			"    router proxies xds: epoch 2 already-applied\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	s, text := x.status(now.Add(11 * time.Minute))
	if want := "11m"; !strings.Contains(text, "old: its ttl of 10m is OVER, and routers do without") || !strings.Contains(text, want) {
		t.Errorf("a table whose time is over:\n%s", text)
	}
	if body, err := json.Marshal(s); err != nil || strings.Contains(string(body), "0001-01-01") || !strings.Contains(string(body), `"left_s":-6`) {
		t.Errorf("%s, %v", body, err)
	}
	if got, err := TableOf(t.Context(), x.c, control.Split, "web"); err != nil || got.Epoch != 2 || len(got.Routers) != 5 || *got.LeftS < 500 {
		t.Errorf("table %+v, %v", got, err)
	}
	if got, err := TableOf(t.Context(), x.c, control.Split, "nobody"); err != nil || got != nil {
		t.Errorf("table %+v, %v", got, err)
	}
	if _, err := x.c.Publish(t.Context(), bus.Msg{Subject: subject.Commands("split", "web"), Data: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	if _, text := x.status(now); !strings.Contains(text, "FAULT: commands.split.web, sequence ") {
		t.Errorf("a table that cannot be read:\n%s", text)
	}
	if _, err := TableOf(t.Context(), x.c, control.Split, "web"); err == nil {
		t.Error("a table that cannot be read is one")
	}
}

// TestAnswersOutOfOrder: an answer to an earlier table than one that was answered says
// nothing of what is in force, unless the decider counts anew.
func TestAnswersOutOfOrder(t *testing.T) {
	t.Parallel()
	x := &steered{t, bustest.Client(t, bustest.Start(t))}
	x.decide(0, control.Act)
	x.order(0, "web", 5, control.Act, "LowerDelay", map[string]float64{"cart": 1})
	x.order(1, "web", 6, control.Act, "LowerDelay", map[string]float64{"cart": 0})
	x.answer("late", "router", 6, control.Done, "")
	x.answer("late", "router", 5, control.Refused, "older-epoch")
	x.answer("beside", "router", 6, control.Done, "")
	x.answer("beside", "router", 5, control.Done, "")
	_, text := x.status(time.Now())
	if want := "    router beside router: epoch 6 done\n    router late router: epoch 6 done\n"; !strings.Contains(text, want) {
		t.Errorf("%q is missing in\n%s", want, text)
	}
	x.order(2, "web", 1, control.Act, "LowerDelay", map[string]float64{"cart": 1})
	x.answer("late", "router", 1, control.Refused, "older-epoch")
	if _, text := x.status(time.Now()); !strings.Contains(text, "    router late router: epoch 1 refused older-epoch; in force there: 6\n") {
		t.Errorf("of a decider that counts anew:\n%s", text)
	}
	got, err := TableOf(t.Context(), x.c, control.Split, "web")
	if err != nil || len(got.Routers) != 2 || got.Routers[1].Epoch != 1 || got.Routers[1].InForce != 6 {
		t.Errorf("table %+v, %v", got, err)
	}
}

// TestTablesOfAReplayHaveNoAge: its time is that of the recording.
func TestTablesOfAReplayHaveNoAge(t *testing.T) {
	t.Parallel()
	x := &steered{t, bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Purpose = bus.Replay }))}
	x.decide(3, control.Act)
	x.order(3, "web", 7, control.Act, "LowerDelay", map[string]float64{"cart": 1})
	s, text := x.status(time.Now())
	if k := s.Kinds[1]; k.Stale || k.Tables[0].AgeS != nil || k.Tables[0].LeftS != nil || !strings.Contains(text, "  web: epoch 7, LowerDelay, window to 2026-03-01 10:00:40\n") {
		t.Errorf("%+v\n%s", k, text)
	}
}
