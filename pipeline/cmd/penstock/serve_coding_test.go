package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/decider/coding"
	"penstock/consumers/decider/coding/threshold"
	"penstock/consumers/executor"
	codesof "penstock/consumers/executor/coder/codes"
	"penstock/consumers/executor/coder/queue"
	"penstock/consumers/executor/coder/tasklog"
	"penstock/consumers/executor/inforce"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/infra/publisher"
	"penstock/infra/testserver"
	"penstock/pipeline/report"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// storefront is what a coder shows of itself: the log of its tasks, as its publisher
// sends it, its queue, and the codes that it has in force. Its store has delays that are
// known. It has a clock of its own, of which ten seconds take a moment.
type storefront struct {
	t       *testing.T
	c       *bus.Client
	clk     *clock.Manual
	p       *publisher.Publisher
	log     *tasklog.Log
	chooser *codesof.Chooser
	rng     *rand.Rand
	truth   threshold.Model
	backlog int
	stop    func() // which must be before its bus does
}

// openFront brings one up.
func openFront(t *testing.T, c *bus.Client, truth threshold.Model) *storefront {
	t.Helper()
	f := &storefront{t: t, c: c, clk: clock.NewManual(time.UnixMicro(epoch)), rng: rand.New(rand.NewPCG(6, 6)), truth: truth, backlog: 3}
	var err error
	if f.p, err = publisher.New(t.Context(), publisher.Options{
		Client: c, Entry: "coder-1", MaxAge: 100 * time.Millisecond, SpoolDir: t.TempDir(), Clock: f.clk, AckTimeout: time.Hour, Logger: zerolog.Nop(),
	}); err != nil {
		t.Fatal(err)
	}
	state := func() queue.State { return queue.State{Backlog: f.backlog} }
	if f.log, err = tasklog.New(tasklog.Options{Coder: "objects", Site: "east", Publisher: f.p, Clock: f.clk, State: state}); err != nil {
		t.Fatal(err)
	}
	table, _, err := coding.Default(coding.Config{Coders: []coding.Coder{{Name: "objects", Members: []string{"east-1"}}}}, "objects")
	if err != nil {
		t.Fatal(err)
	}
	if f.chooser, err = codesof.New(codesof.Options{Default: table}); err != nil {
		t.Fatal(err)
	}
	target, err := codesof.NewTarget(map[string]*codesof.Chooser{"objects": f.chooser}, inforce.Options{History: executor.History(c, control.Coding)})
	if err != nil {
		t.Fatal(err)
	}
	x, err := executor.New(executor.Options{Client: c, Target: target, Own: true, Role: "coder-1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	for _, run := range []func(context.Context) error{f.log.Run, x.Run, target.Run} {
		tasks.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	f.stop = sync.OnceFunc(func() {
		cancel()
		tasks.Wait()
		_ = f.p.Close(ctx) // What a test left undone is of no interest here.
	})
	t.Cleanup(f.stop)
	if err := f.clk.Await(t.Context(), 3); err != nil { // two of the publisher, and the log's
		t.Fatal(err)
	}
	return f
}

// request logs the tasks of a request, and the request.
func (f *storefront) request(op queue.Op, n, k int) {
	b := 3 / float64(k)
	took := make([]float64, n)
	for i := range took {
		took[i] = f.truth.Fixed(b) + f.rng.ExpFloat64()*f.truth.Mean(b)
	}
	slices.Sort(took)
	for i, ms := range took {
		r := queue.Record{Op: op, Store: "east-1", Bytes: int64(3e6) / int64(k), N: n, K: k, Wait: time.Millisecond, Outcome: queue.OutcomeDone}
		if i >= k {
			ms, r.Outcome = took[k-1], queue.OutcomeCancelled
		}
		r.Took = time.Duration(ms * 1e6)
		f.log.Task(r)
	}
	f.log.Request(tasklog.Request{Op: op, Bytes: 3e6, Wait: time.Millisecond, Service: time.Duration(took[k-1] * 1e6), Status: 200})
}

// second passes a second of the front's time, with or without requests, and waits
// until the bus has what it brought: rows, a gauge, a heartbeat.
func (f *storefront) second(requests int) {
	f.t.Helper()
	for i := range requests {
		c := [][2]int{{12, 6}, {6, 3}, {2, 1}}[i%3]
		f.request(queue.Op(i%2), c[0], c[1])
	}
	was := f.p.Stats()
	f.clk.Advance(time.Second)
	eventually(f.t, "the bus to have a second's events", func() bool {
		s := f.p.Stats()
		if s.Dropped != nil || s.Invalid > 0 {
			f.t.Fatalf("rows were lost: %+v", s)
		}
		return s.Waiting == 0 && s.HeartbeatsConfirmed > was.HeartbeatsConfirmed && s.Sent > was.Sent
	})
}

// decide passes ten seconds and more and waits until a window is decided that was not
// before.
func (f *storefront) decide(requests int) (d *control.Decision) {
	f.t.Helper()
	last := func() *control.Decision {
		m, err := f.c.Last(f.t.Context(), subject.CommandsStream, subject.Decisions(string(control.Coding)))
		if err != nil {
			return nil
		}
		d, err := control.DecodeDecision(m.Data)
		if err != nil {
			f.t.Fatal(err)
		}
		return d
	}
	was := last()
	for range 10 {
		f.second(requests / 10)
	}
	for range 2 { // a watermark stays a second behind the clock
		f.second(1)
	}
	end := f.clk.Now().Add(-time.Second).Truncate(10 * time.Second).UTC()
	eventually(f.t, "the decision of the window ending "+end.Format(time.RFC3339), func() bool {
		d = last()
		return d != nil && d.Window.End.Equal(end) && (was == nil || d.Window.End.After(was.Window.End))
	})
	for _, ref := range d.Commands {
		eventually(f.t, fmt.Sprintf("the answer to epoch %d", ref.Epoch), func() bool {
			m, err := f.c.Last(f.t.Context(), subject.OutcomesStream, subject.Outcomes(string(control.Coding), ref.Scope))
			if err != nil {
				return false
			}
			o, err := control.DecodeOutcome(m.Data)
			return err == nil && o.Epoch == ref.Epoch
		})
	}
	return d
}

// TestServeCodes runs the loop of coding over a process and its bus: the tasks that a
// coder logs become windows, windows a model of its store, and that a table which the
// coder has in force; advice, freeze, thaw and rollback do what they say, over a kill
// too; status, explain and doctor tell of it.
func TestServeCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := configure(t, dir, settings{2, 0.3})
	text, err := os.ReadFile(cfg)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, cfg, string(text)+`
coding: {history: 3}
coders:
  - {name: objects, site: east, listen: "127.0.0.1:9200", keys_file: keys, stores: [{name: east-1, url: "dir:objects"}]}
`)
	args := []string{"--config", cfg, "--state", filepath.Join(dir, "state"), "--listen", testserver.FreeAddress(t), "--name", "one"}
	s := serve(t, args...)
	at := []string{"--nats", s.bus}
	op := func(args ...string) string { t.Helper(); return must(t, append(args, at...)...) }
	if _, errs, code := command(t, append([]string{"mode", "coding", "advise"}, at...)...); code != 0 || errs != "" {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	f := openFront(t, connect(t, s.bus, ""), threshold.Model{Delta: 60, DeltaPerMB: 10, Psi: 25, PsiPerMB: 50})

	d := f.decide(300)
	if d.Mode != control.Advise || len(d.Commands) != 1 || f.chooser.State().Epoch != 0 {
		t.Fatalf("mode %s, %d commands, epoch %d in force: expected advice that nobody follows", d.Mode, len(d.Commands), f.chooser.State().Epoch)
	}
	if out := op("status"); !strings.Contains(out, "coding: mode advise, last decided window ") || !strings.Contains(out, "coder coder-1 ") {
		t.Errorf("status:\n%s", out)
	}
	op("mode", "coding", "act")
	d = f.decide(300)
	in := f.chooser.State()
	if d.Mode != control.Act || len(d.Commands) != 1 || in.Epoch != d.Commands[0].Epoch {
		t.Fatalf("mode %s, commands %+v, epoch %d in force", d.Mode, d.Commands, in.Epoch)
	}
	f.learned(&in.Table)
	before := d.Window.End
	if n := codes(d)[coding.Waiting]; n != 1 {
		t.Errorf("reasons %v: what the queue said is missing", codes(d))
	}
	for _, want := range []string{"coding: mode act, ", fmt.Sprintf("  objects: epoch %d, FirstTable, ", in.Epoch), "    tofec, reads: k by backlog below [", fmt.Sprintf("epoch %d done\n", in.Epoch)} {
		if out := op("status"); !strings.Contains(out, want) {
			t.Errorf("%q is missing in status:\n%s", want, out)
		}
	}
	if out := op("doctor", "--config", cfg, "--no-stores"); !strings.Contains(out, "coders: 1, coded by policy tofec in windows of 10s") || !strings.Contains(out, "decisions: coding: window to ") {
		t.Errorf("doctor:\n%s", out)
	}

	op("freeze", "coding")
	f.truth.Psi, f.truth.PsiPerMB = 5, 10
	if d := f.decide(300); len(d.Commands) != 0 || codes(d)["Frozen"] == 0 {
		t.Errorf("of a frozen kind: %d commands, reasons %v", len(d.Commands), codes(d))
	}
	op("thaw", "coding")
	d = f.decide(600)
	if len(d.Commands) != 1 || codes(d)[coding.ModelChanged] != 1 || f.chooser.State().Epoch == in.Epoch {
		t.Errorf("%d commands, reasons %v: expected another table for a store of other delays", len(d.Commands), codes(d))
	}
	op("rollback", "coding", "--to", before.Format(time.RFC3339))
	d = f.decide(300)
	if len(d.Commands) != 1 || codes(d)[coding.RolledBack] != 1 {
		t.Errorf("%d commands, reasons %v: expected a rollback", len(d.Commands), codes(d))
	}
	if now := f.chooser.State().Table; fmt.Sprint(now.Read) != fmt.Sprint(in.Table.Read) {
		t.Errorf("the table of before is not in force again: %+v, was %+v", now.Read, in.Table.Read)
	}
	f.told(op("--json", "explain", "coding", "east-1"), op("explain", "coding", "objects"))
	refused(t, 2, append([]string{"explain", "coding", "mars"}, at...), "expected a coder or one of its stores, of the coders objects")
	f.stop()
	s.kill()
	s = serve(t, args...)
	if out := op("status"); !strings.Contains(out, "coding: mode act, last decided window ") || !strings.Contains(out, "; FROZEN") {
		t.Errorf("status after a kill:\n%s", out)
	}
	s.stop()
}

// learned compares what a table says of the store with what is so.
func (f *storefront) learned(table *control.CodingTable) {
	f.t.Helper()
	for op, m := range map[string]control.CodingDelay{"read": table.Model.Read, "write": table.Model.Write} {
		for name, x := range map[string][2]float64{"Δ": {m.Delta, f.truth.Delta}, "Δ/MB": {m.DeltaPerMB, f.truth.DeltaPerMB}, "Ψ": {m.Psi, f.truth.Psi}, "Ψ/MB": {m.PsiPerMB, f.truth.PsiPerMB}} {
			// Of 600 requests Ψ is known to a fifth; the replay of a longer recording knows it better.
			if most := map[bool]float64{true: 0.1, false: 0.35}[strings.HasPrefix(name, "Δ")]; math.Abs(x[0]/x[1]-1) > most {
				f.t.Errorf("%s: %s is %.1f, found %.1f", op, name, x[1], x[0])
			}
		}
	}
}

// told checks what explain says.
func (f *storefront) told(body, text string) {
	f.t.Helper()
	var e topology.ExplainedCoding
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		f.t.Fatal(err)
	}
	var reasons []string
	for i, x := range e.History {
		if x.Epoch != uint64(i+1) || len(x.Answers) != 1 || x.Answers[0].By != "coder-1" {
			f.t.Fatalf("table %+v", x)
		}
		if want := map[control.Mode]control.Status{control.Advise: control.Advised, control.Act: control.Done}[x.Mode]; x.Answers[0].Status != want {
			f.t.Errorf("epoch %d in mode %s: %s", x.Epoch, x.Mode, x.Answers[0].Status)
		}
		reasons = append(reasons, x.Reason.Code)
	}
	if want := []string{coding.FirstTable, coding.FirstTable, coding.ModelChanged, coding.RolledBack}; !slices.Equal(reasons, want) {
		f.t.Errorf("tables for %v, expected %v", reasons, want)
	}
	if e.Coder != "objects" || len(e.Members) != 1 || !e.Members[0].Read.Fitted || len(e.Used.Read) != 3 || e.Unreadable != 0 || e.InForce == nil || e.InForce.Coding == nil || len(e.Reasons) == 0 {
		f.t.Errorf("explained %+v", e)
	}
	for _, want := range []string{
		"objects: policy tofec, any code can be read, ", "  coder coder-1", "reads of 3 MB on average, over 16 connections: an empty queue gets (",
		"codes of the windows that count: (2,1) 3", "east-1   read  60.0", "a million reads: $", "the table that would be made now differs by ", "  RolledBack", "    reads: k by backlog below [",
	} {
		if !strings.Contains(text, want) {
			f.t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if e.InForce != nil && len(e.InForce.Routers) == 1 {
		if r := e.InForce.Routers[0]; r != (report.RouterStatus{By: "coder-1", Target: r.Target, Epoch: e.Epoch, Status: control.Done, At: r.At, InForce: e.Epoch}) {
			f.t.Errorf("answer %+v", r)
		}
	}
}
