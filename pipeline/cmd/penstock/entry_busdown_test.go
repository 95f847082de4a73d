package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/panes"
	"penstock/infra/bus"
	"penstock/infra/clock/stall"
	"penstock/infra/publisher"
	"penstock/pipeline/report"
	"penstock/schemas/window"
)

// outage is how long the bus is away, calm how long it is there before and after,
// and calls how many requests a second are sent meanwhile.
func outage() (away, calm time.Duration, calls float64) {
	if whole {
		return time.Minute, 30 * time.Second, 5000
	}
	return 5 * time.Second, 2 * time.Second, 1500
}

// theBusGoesAway takes the bus from three entry points under load: once the
// process that holds it is killed, and once it is frozen. No request fails or is
// slower than before; afterwards each row is in the window in which it was
// answered, and none is late.
func theBusGoesAway(t *testing.T) {
	away, calm, rate := outage()
	e := newFront(t, frontOptions{services: answerers(t)})
	e.serve()
	e.enter(frontSites...)
	c := e.call(rate, frontSites...)
	start := time.Now()
	time.Sleep(calm)

	killed := time.Now()
	e.server.kill()
	time.Sleep(away)
	e.serve()
	back := time.Now()
	time.Sleep(calm)

	frozen := time.Now()
	e.server.signal(syscall.SIGSTOP)
	time.Sleep(away)
	e.server.signal(syscall.SIGCONT)
	thawed := time.Now()
	time.Sleep(calm)
	c.end()
	c.none(nil)
	for _, s := range frontSites {
		e.entries[s].stop()
	}

	with := c.latencies(start, killed)
	t.Logf("%d answers; p99 with the bus %v, killed %v, frozen %v; p50 %v, %v, %v", len(c.answered), with.Quantile(0.99),
		c.latencies(killed, back).Quantile(0.99), c.latencies(frozen, thawed).Quantile(0.99),
		with.Quantile(0.5), c.latencies(killed, back).Quantile(0.5), c.latencies(frozen, thawed).Quantile(0.5))
	// The machine may be busy with something else meanwhile: this is to see a
	// request that waits for the bus, which would take seconds.
	for _, without := range [][2]time.Time{{killed, back}, {frozen, thawed}} {
		if p := c.latencies(without[0], without[1]).Quantile(0.99); p > 5*with.Quantile(0.99)+200*time.Millisecond {
			t.Errorf("p99 without the bus is %v, with it %v", p, with.Quantile(0.99))
		}
	}
	a := e.settled()
	for _, g := range a.Groups {
		if g.Total.Counted != int64(len(c.answered)) || g.Total.Late != 0 || g.Total.LostBatches != 0 || len(g.Incomplete) > 0 {
			t.Errorf("%s: %+v, incomplete %v; %d requests were answered", g.Group, g.Total, g.Incomplete, len(c.answered))
		}
	}
	c.inWindows()
	e.audited()
}

// settled waits until all that is on the bus is in windows, and returns the
// account.
func (e *front) settled() (a *report.Audit) {
	e.t.Helper()
	c := connect(e.t, e.nats(), "")
	eventually(e.t, "everything to be in windows", func() bool {
		var err error
		if a, err = report.NewAudit(e.t.Context(), c); err != nil {
			return false
		}
		return !slices.ContainsFunc(a.Groups, func(g report.GroupAudit) bool { return g.Behind > 0 })
	})
	if !a.Holds() {
		e.t.Errorf("the account does not hold: %v", a.Faults)
	}
	return a
}

// audited stops the process that holds the bus and has it audited.
func (e *front) audited() {
	e.t.Helper()
	e.server.stop()
	if out := must(e.t, "audit", "--state", filepath.Join(e.dir, "state")); !strings.Contains(out, "every event is accounted for") {
		e.t.Errorf("audit:\n%s", out)
	}
}

// closeWindows ends the fast windows that are open: entry points that stop say only that
// nothing more comes from them.
func closeWindows(t testing.TB, c *bus.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := publisher.New(ctx, publisher.Options{Client: c, Entry: "test", Run: "closes-windows", Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(time.Minute).UnixMicro()
	p.Horizon(end)
	if err := errors.Join(p.Barrier(ctx, end), p.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the windows to be closed", func() bool {
		a, err := report.NewAudit(ctx, c)
		return err == nil && !slices.ContainsFunc(a.Groups, func(g report.GroupAudit) bool {
			return g.Group == window.Fast && g.Watermark.UnixMicro() < end
		})
	})
}

// tally is what the windows of delays hold.
type tally struct {
	start, end, requests int64
	incomplete           []window.Interval
}

func tallies(t testing.TB, c *bus.Client) (out []tally) {
	t.Helper()
	_, err := panes.Each(t.Context(), c, panes.Options{Group: window.Fast}, panes.Visitor{Window: func(w *panes.Window) error {
		n := tally{start: w.Start, end: w.End, incomplete: w.Incomplete}
		if d := w.Tables[window.Delay.Name]; d != nil {
			for _, requests := range d.Ints[0] {
				n.requests += requests
			}
		}
		out = append(out, n)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// inWindows compares the windows with what callers have seen: a request is in the
// window of an instant between its sending and its answer.
func (c *callers) inWindows() {
	t := c.e.t
	t.Helper()
	b := connect(t, c.e.nats(), "")
	closeWindows(t, b)
	sum := int64(0)
	for _, w := range tallies(t, b) {
		surely, perhaps := int64(0), int64(0)
		for _, a := range c.answered {
			if a.from >= w.start && a.to < w.end {
				surely++
			}
			if a.to >= w.start && a.from < w.end {
				perhaps++
			}
		}
		if w.requests < surely || w.requests > perhaps || len(w.incomplete) > 0 {
			t.Errorf("the window from %s has %d requests, expected %d to %d; incomplete %v",
				time.UnixMicro(w.start).UTC().Format(time.TimeOnly), w.requests, surely, perhaps, w.incomplete)
		}
		sum += w.requests
	}
	if sum != int64(len(c.answered)) {
		t.Errorf("%d requests are in windows, %d were answered", sum, len(c.answered))
	}
}

// entriesStartWithoutTheBus starts entry points while the bus is away: one
// that was there before and is killed meanwhile, and two that have never seen it.
// They serve at once. Of the killed one's rows no more are missing than those of
// its last moments.
func entriesStartWithoutTheBus(t *testing.T) {
	away, calm, rate := outage()
	e := newFront(t, frontOptions{services: answerers(t)})
	e.serve()
	const doomed = "east"
	e.enter(doomed)
	c := e.call(rate/3, doomed)
	time.Sleep(calm)
	e.server.kill()
	others := frontSites[1:]
	for _, s := range others {
		e.entries[s] = e.part(e.entryArgs(s)...)
	}
	fresh := e.call(rate*2/3, others...)
	time.Sleep(away / 2)

	killed := time.Now()
	e.entries[doomed].kill()
	e.entries[doomed] = e.part(e.entryArgs(doomed)...)
	waited, meter := time.Now(), stall.Start(t.Context())
	eventually(t, "the new process to serve", func() bool { return c.since(waited) > 0 })
	again := time.Now()
	if took := again.Sub(waited); took > 5*time.Second+meter.Total() {
		t.Errorf("the first answer came %v after the start", took)
	}
	time.Sleep(away / 2)
	e.serve()
	time.Sleep(calm)
	c.end()
	fresh.end()
	fresh.none(nil)
	// Those of the killed one see it go, until the next one is there.
	c.none(func(f failure) bool { return f.at >= killed.UnixMicro() && f.at <= again.UnixMicro() })
	for _, s := range frontSites {
		e.entries[s].stop()
	}

	// What an entry point had not cut yet is the stated loss; writing to the disk
	// takes a moment more.
	const uncut = 300 * time.Millisecond
	gone := int64(0)
	for _, a := range c.answered {
		if a.to >= killed.Add(-uncut).UnixMicro() && a.to <= killed.UnixMicro() {
			gone++
		}
	}
	most := int64(len(c.answered) + len(fresh.answered) + len(c.failures)) // It may have recorded an answer that nobody got.
	least := int64(len(c.answered)+len(fresh.answered)) - gone
	a := e.settled()
	for _, g := range a.Groups {
		t.Logf("%s: %+v of %d; at most %d may be missing", g.Group, g.Total, most, gone)
		if g.Total.Counted < least || g.Total.Counted > most || g.Total.Late != 0 || g.Total.LostBatches != 0 {
			t.Errorf("%s: %+v, expected %d to %d", g.Group, g.Total, least, most)
		}
	}
	e.audited()
}

// since is how much of what was sent since an instant was answered.
func (c *callers) since(at time.Time) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.answered {
		if a.from >= at.UnixMicro() {
			n++
		}
	}
	return n
}

// theSpoolIsFull keeps the bus away for longer than the spools hold. Requests
// are served all the same, what is dropped is counted with its reason, and the
// windows that miss it say so.
func theSpoolIsFull(t *testing.T) {
	_, calm, rate := outage()
	e := newFront(t, frontOptions{services: answerers(t), entry: "  spool: 1MB\n"})
	e.serve()
	e.enter(frontSites...)
	c := e.call(rate, frontSites...)
	time.Sleep(calm)
	e.server.kill()
	for _, s := range frontSites {
		eventually(t, s+" to drop what it has no room for", func() bool { return e.entries[s].published("dropped") > 0 })
	}
	e.serve()
	time.Sleep(calm)
	c.end()
	c.none(nil)
	dropped := 0
	for _, s := range frontSites {
		n := e.entries[s].published("dropped")
		if full := e.entries[s].count("penstock_publisher_rows_total", `outcome="dropped"`, `reason="spool-full"`); n == 0 || n != full {
			t.Errorf("%s dropped %d rows, %d of them because the spool was full", s, n, full)
		}
		dropped += n
		e.entries[s].stop()
	}
	a := e.settled()
	for _, g := range a.Groups {
		t.Logf("%s: %+v, %d answered, %d dropped, incomplete %d", g.Group, g.Total, len(c.answered), dropped, len(g.Incomplete))
		if g.Total.Counted+int64(dropped) != int64(len(c.answered)) || g.Total.Late != 0 {
			t.Errorf("%s: %+v and %d dropped; %d requests were answered", g.Group, g.Total, dropped, len(c.answered))
		}
		if len(g.Incomplete) == 0 || slices.ContainsFunc(g.Incomplete, func(i window.Interval) bool { return i.Reason != "dropped" }) {
			t.Errorf("%s: incomplete %v", g.Group, g.Incomplete)
		}
	}
	e.audited()
}

// entriesStopUnderLoad stops entry points while they are called (P25). What
// they have taken they answer; callers see at most that nobody listens any more.
// All rows are in windows, and the exit code is 0.
func entriesStopUnderLoad(t *testing.T) {
	_, calm, rate := outage()
	e := newFront(t, frontOptions{services: answerers(t)})
	e.serve()
	least, most := int64(0), int64(0)
	for round := range 3 {
		e.enter(frontSites...)
		c := e.call(2*rate, frontSites...)
		time.Sleep(calm / 2)
		stopping := time.Now()
		for _, s := range frontSites {
			e.entries[s].signal(syscall.SIGTERM)
		}
		for _, s := range frontSites {
			if code := e.entries[s].code(); code != 0 {
				t.Errorf("round %d: exit code %d of %s", round, code, s)
			}
		}
		c.end()
		// An idle connection may be closed while a request is on the way to it: HTTP/1
		// can't tell such a client that it was not served. It is rare.
		if c.cut > len(frontSites)*callersEach/4 {
			t.Errorf("round %d: %d requests were sent and not answered", round, c.cut)
		}
		c.none(func(f failure) bool { return f.at >= stopping.UnixMicro() && (f.refused() || f.closed()) })
		least, most = least+int64(len(c.answered)), most+int64(len(c.answered)+c.cut)
		a := e.settled()
		for _, g := range a.Groups {
			if g.Total.Counted < least || g.Total.Counted > most || g.Total.Late != 0 {
				t.Errorf("round %d: %s: %+v; %d requests were answered, %d cut", round, g.Group, g.Total, least, most-least)
			}
		}
	}
	e.audited()
}

// twoEntriesOfOneName: what two entry points cannot share is named by the one
// that comes second, and the first goes on.
func twoEntriesOfOneName(t *testing.T) {
	e := newFront(t, frontOptions{services: answerers(t)})
	e.serve()
	e.enter("east")
	for name, x := range map[string]struct {
		change map[string]string
		want   string
	}{
		"address": {map[string]string{"--state": filepath.Join(e.dir, "another")}, "address already in use"},
		"folder":  {map[string]string{"--listen": "127.0.0.1:0"}, "in use by another process"},
	} {
		args := e.entryArgs("east")
		for i := range args {
			if v, is := x.change[args[i]]; is {
				args[i+1] = v
			}
		}
		s := start(t, args...)
		if code := s.code(); code != 1 || !strings.Contains(s.errs.String(), x.want) {
			t.Errorf("%s: exit code %d, expected %q in %s", name, code, x.want, s.errs.String())
		}
	}
	c := e.call(100, "east")
	eventually(t, "the first one to go on", func() bool { return e.entries["east"].published("sent") > 20 })
	c.end()
	c.none(nil)
	e.entries["east"].stop()
	e.settled()
	e.audited()
}
