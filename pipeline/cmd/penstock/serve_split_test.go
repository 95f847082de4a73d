package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor"
	"penstock/consumers/executor/router"
	"penstock/infra/bus"
	"penstock/infra/publisher"
	"penstock/infra/shares"
	"penstock/infra/testserver"
	"penstock/pipeline/report"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// application is a service whose component web calls cart, at two sites, by the
// tables of a router of its own.
type application struct {
	t      *testing.T
	c      *bus.Client
	p      *publisher.Publisher
	router *shares.Router
	stop   func() // of the router, which must not outlive its bus
	window int    // the next one, of 10 s
	slow   bool
}

// deploy brings an application up.
func deploy(t *testing.T, c *bus.Client) *application {
	t.Helper()
	p, err := publisher.New(t.Context(), publisher.Options{Client: c, Entry: "web-1", Run: "calls", MaxRows: 500, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	a := &application{t: t, c: c, p: p, router: shares.New(shares.Options{Sites: []string{"east", "west", "north"}})}
	k, err := router.NewKeeper(router.KeeperOptions{Target: router.Local(a.router), History: router.History(c)})
	if err != nil {
		t.Fatal(err)
	}
	x, err := executor.New(executor.Options{Client: c, Target: k, Own: true, Role: "router-web-1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- x.Run(ctx) }()
	go func() { done <- k.Run(ctx) }()
	a.stop = sync.OnceFunc(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		_ = p.Close(ctx) // What a test left undone is of no interest here.
	})
	t.Cleanup(a.stop)
	return a
}

// call makes the calls of one window, and returns the window's end.
func (a *application) call() time.Time {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	start := epoch + int64(a.window)*10e6
	for i := range 60 {
		for s, site := range []string{"east", "west"} {
			r := event.NewRequest(start + int64(i)*100_000 + int64(s))
			r.FromComponent, r.FromSite, r.ToComponent = "web", site, "cart"
			r.ToSite = a.router.Pick(shares.Link{From: "web", FromSite: site, To: "cart"}, "").Site
			if i%10 == 0 { // as somebody does who follows no table
				r.ToSite = []string{"west", "east"}[s]
			}
			r.Status, r.Wait, r.Service, r.Network = 200, 0, 20_000, 500
			if r.ToSite != site {
				r.Network = 62_500
			}
			if r.ToSite == "east" && a.slow {
				r.Service = 320_000
			}
			if err := a.p.Send(ctx, &r); err != nil {
				a.t.Fatal(err)
			}
		}
	}
	a.window++
	end := start + 10e6
	a.p.Horizon(end)
	if err := a.p.Barrier(ctx, end); err != nil {
		a.t.Fatal(err)
	}
	return time.UnixMicro(end).UTC()
}

// decide makes the calls of a window and waits until it is decided and every router
// has answered its tables.
func (a *application) decide() (d *control.Decision) {
	a.t.Helper()
	end := a.call()
	eventually(a.t, "the decision of the window ending "+end.Format(time.RFC3339), func() bool {
		m, err := a.c.Last(a.t.Context(), subject.CommandsStream, subject.Decisions(string(control.Split)))
		if err != nil {
			return false
		}
		if d, err = control.DecodeDecision(m.Data); err != nil {
			a.t.Fatal(err)
		}
		return d.Window.End.Equal(end)
	})
	for _, ref := range d.Commands {
		eventually(a.t, fmt.Sprintf("the answer to epoch %d of %s", ref.Epoch, ref.Scope), func() bool {
			m, err := a.c.Last(a.t.Context(), subject.OutcomesStream, subject.Outcomes(string(control.Split), ref.Scope))
			if err != nil {
				return false
			}
			o, err := control.DecodeOutcome(m.Data)
			return err == nil && o.Epoch == ref.Epoch
		})
	}
	return d
}

// until decides windows until one is as wanted, at most 20.
func (a *application) until(what string, ok func(d *control.Decision) bool) *control.Decision {
	a.t.Helper()
	for range 20 {
		if d := a.decide(); ok(d) {
			return d
		}
	}
	a.t.Fatalf("20 windows without %s", what)
	return nil
}

// east is the share of web's calls at east that stays there.
func (a *application) east() float64 {
	t, _ := a.router.Table("web")
	for _, r := range t.Rows {
		if r.FromSite == "east" && r.To == "cart" {
			return r.Ratios[0].Share
		}
	}
	return 1
}

// TestServeSplits runs the loop of split over a process and its bus: advice until the
// operator says act, then calls leave what got slow; freeze, thaw and rollback do
// what they say, over a kill too; status and explain tell of all of it.
func TestServeSplits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := configure(t, dir, settings{2, 0.3})
	text, err := os.ReadFile(cfg)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, cfg, string(text)+"components:\n  - {name: web, sites: [east, west]}\n  - {name: cart, sites: [east, west]}\n")
	args := []string{"--config", cfg, "--state", filepath.Join(dir, "state"), "--listen", testserver.FreeAddress(t), "--name", "one"}
	s := serve(t, args...)
	at := []string{"--nats", s.bus}
	op := func(args ...string) string { t.Helper(); return must(t, append(args, at...)...) }
	a := deploy(t, connect(t, s.bus, ""))

	d := a.until("advice", func(d *control.Decision) bool { return len(d.Commands) > 0 })
	if d.Mode != control.Advise || a.east() != 1 {
		t.Fatalf("mode %s, %v of the calls stay: expected advice that nobody follows", d.Mode, a.east())
	}
	if out := op("status"); !strings.Contains(out, "split: mode advise, last decided window ") || !strings.Contains(out, " in mode advise, which nobody applies") ||
		!strings.Contains(out, "router router-web-1 router: epoch 1 advised") {
		t.Errorf("status:\n%s", out)
	}
	if out, errs, code := command(t, append([]string{"mode", "split", "act"}, at...)...); code != 0 || errs != "" {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	d = a.decide()
	before := d.Window.End
	if d.Mode != control.Act || a.east() < 0.9 {
		t.Fatalf("mode %s, %v of the calls stay", d.Mode, a.east())
	}
	a.slow = true
	a.until("calls that leave cart at east", func(*control.Decision) bool { return a.east() < 0.3 })
	epochNow := statusOf(t, at).Epoch
	for _, want := range []string{
		"split: mode act, ", fmt.Sprintf("  web: epoch %d, LowerDelay, ", epochNow), "    east → cart: ", fmt.Sprintf("    router router-web-1 router: epoch %d done\n", epochNow), "operator: mode act",
	} {
		if out := op("status"); !strings.Contains(out, want) {
			t.Errorf("%q is missing in status:\n%s", want, out)
		}
	}
	out := op("explain", "split", "web@east")
	for _, want := range []string{"web at east: policy greedy, ", "\neast → cart: 6.00 calls a second, ", "does not rise until ", "LowerDelay: east ", "    router router-web-1 (router): done\n"} {
		if !strings.Contains(out, want) || strings.Contains(out, "\nwest → cart: ") {
			t.Errorf("%q is missing, or west is there, in\n%s", want, out)
		}
	}

	for says, args := range map[string][]string{
		`there is no site "mars"; the last decision knew east, west`:   {"evacuate", "mars"},
		`there is no site "moon"; the last decision knew east, west`:   {"evacuate", "moon", "--off"},
		"expected SCOPE or SCOPE@SITE, of the scopes cart, entry, web": {"explain", "split", "wed"},
		"no site follows the @; its sites are east":                    {"explain", "split", "web@"},
		"web neither runs at that site nor":                            {"explain", "split", "web@eats"},
		"its sites are east":                                           {"explain", "split", "web@eats"},
	} {
		refused(t, 2, append(args, at...), says)
	}

	op("freeze", "split")
	left := a.east()
	if d := a.decide(); len(d.Commands) != 0 || codes(d)["Frozen"] == 0 || a.east() != left {
		t.Errorf("of a frozen kind: %d commands, reasons %v", len(d.Commands), codes(d))
	}
	if out := op("status"); !strings.Contains(out, "split: mode act") || !strings.Contains(out, "; FROZEN") {
		t.Errorf("status:\n%s", out)
	}
	op("thaw", "split")
	if d := a.decide(); codes(d)["Frozen"] != 0 {
		t.Errorf("after the thaw: reasons %v", codes(d))
	}
	op("rollback", "split", "--to", before.Format(time.RFC3339))
	if d := a.decide(); len(d.Commands) != 1 || codes(d)["RolledBack"] == 0 || a.east() < 0.9 {
		t.Errorf("%d commands, reasons %v, %v of the calls stay: expected a rollback", len(d.Commands), codes(d), a.east())
	}
	s.kill()
	s = serve(t, args...)
	if d := a.decide(); len(d.Commands) != 0 || codes(d)["Frozen"] == 0 || a.east() < 0.9 {
		t.Errorf("after the rollback: %d commands, reasons %v", len(d.Commands), codes(d))
	}
	op("thaw", "split")
	a.until("calls that leave again", func(*control.Decision) bool { return a.east() < 0.6 })
	a.told(op("--json", "explain", "split", "web"))
	a.stop()
	s.stop()
}

// statusOf is the table of web as status --json has it.
func statusOf(t *testing.T, at []string) report.TableStatus {
	t.Helper()
	var s report.Status
	if err := json.Unmarshal([]byte(must(t, append([]string{"--json", "status"}, at...)...)), &s); err != nil {
		t.Fatal(err)
	}
	for _, k := range s.Kinds {
		for _, x := range k.Tables {
			if k.Kind == control.Split && x.Scope == "web" {
				if x.AgeS == nil || x.LeftS == nil || *x.LeftS <= 0 || *x.AgeS+*x.LeftS < 599 || len(x.Routers) != 1 || x.Routers[0].InForce != x.Epoch {
					t.Errorf("table %+v", x)
				}
				return x
			}
		}
	}
	t.Fatalf("no table of web in %+v", s.Kinds)
	return report.TableStatus{}
}

// told checks what explain says of the past: every table with the answer of the one
// router, and what was rolled back.
func (a *application) told(text string) {
	a.t.Helper()
	var e topology.ExplainedSplit
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		a.t.Fatal(err)
	}
	var reasons []string
	for i, x := range e.History {
		// One that was being acknowledged when the bus died comes once more.
		if x.Epoch != uint64(i+1) || len(x.Answers) == 0 || len(x.Answers) > 1 && x.Answers[1].Status != control.AlreadyApplied || x.Answers[0].By != "router-web-1" {
			a.t.Fatalf("table %+v", x)
		}
		if want := map[control.Mode]control.Status{control.Advise: control.Advised, control.Act: control.Done}[x.Mode]; x.Answers[0].Status != want {
			a.t.Errorf("epoch %d in mode %s: %s", x.Epoch, x.Mode, x.Answers[0].Status)
		}
		reasons = append(reasons, x.Reason.Code)
	}
	if !slices.Contains(reasons, "RolledBack") || !slices.Contains(reasons, "LowerDelay") || e.Unreadable != 0 {
		a.t.Errorf("reasons %v", reasons)
	}
	if len(e.Calls) != 2 || len(e.Callees["cart"]) != 2 || e.Callees["cart"][0].ServiceUS < 200_000 || e.Table == nil || e.Table.Epoch != uint64(len(e.History)) {
		a.t.Errorf("explained %+v", e)
	}
}
