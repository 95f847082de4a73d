package routertest

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/router"
	"penstock/infra/shares"
)

// What a World has: component Frontend at site East calls component Search, which
// is placed at the Sites; component Checkout calls it too.
const (
	Frontend = "frontend"
	Checkout = "checkout"
	Search   = "search"
	East     = "east"
	Absent   = "nowhere" // a site that the target knows nothing of
)

// Sites are where Search is placed.
var Sites = []string{East, "north", "west"}

// Link is what most cases are about.
var Link = shares.Link{From: Frontend, FromSite: East, To: Search}

// World is a target in a world of its own.
type World struct {
	Target router.Target
	// Second is another link of Frontend, to a component at the same sites.
	Second shares.Link
	// Resolution is by how much a share may be off.
	Resolution float64
	// Send sends requests over a link, one after the other, and returns how many came
	// to each site.
	Send func(l shares.Link, n int) map[string]int
	// Hold sends one request over Link that is running at one of the sites when it
	// returns, and ends with release.
	Hold func() (site string, release func())
	// Up makes a replica of Search able or unable to take requests, and returns when
	// the target knows.
	Up func(site string, up bool)
	// Foreign is all that the target holds and that isn't Frontend's, byte for byte,
	// but what it counts.
	Foreign func() string
	// Cut makes the target unreachable, until heal. Nil if it always can be reached.
	Cut func() (heal func())
}

// Run runs all cases, each with a World of its own.
func Run(t *testing.T, world func(t *testing.T) World) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, w World)
	}{
		{"shares", spread},
		{"little is never nothing", little},
		{"again", again},
		{"refused", refused},
		{"cleared", cleared},
		{"foreign", foreign},
		{"rows that go", rowsThatGo},
		{"not concerned", notConcerned},
		{"ready", ready},
		{"drain", drain},
		{"drain of none", drainOfNone},
		{"cut off", cutOff},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, world(t)) })
	}
}

// Table is a table of Link by the order of Sites.
func Table(epoch uint64, split ...float64) shares.Table {
	row := shares.Row{FromSite: Link.FromSite, To: Link.To}
	for i, s := range split {
		row.Ratios = append(row.Ratios, shares.Ratio{Site: Sites[i], Share: s})
	}
	return shares.Table{From: Link.From, Epoch: epoch, Rows: []shares.Row{row}}
}

func (w World) put(t *testing.T, table shares.Table) int {
	t.Helper()
	n, err := w.Target.Put(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// shown checks that the target shows the shares of a table, and its requests too.
func (w World) shown(t *testing.T, want shares.Table) {
	t.Helper()
	w.observed(t, want)
	for _, row := range want.Rows {
		const n = 120
		got := w.Send(shares.Link{From: want.From, FromSite: row.FromSite, To: row.To}, n)
		sum := 0
		for _, ratio := range row.Ratios {
			if off := math.Abs(float64(got[ratio.Site]) - n*ratio.Share); off >= 2+n*w.Resolution {
				t.Errorf("epoch %d: %d of %d requests came to %s, not %v", want.Epoch, got[ratio.Site], n, ratio.Site, n*ratio.Share)
			}
			sum += got[ratio.Site]
		}
		if sum != n {
			t.Errorf("epoch %d: of %d requests, %v", want.Epoch, n, got)
		}
	}
}

func (w World) observed(t *testing.T, want shares.Table) {
	t.Helper()
	rows, err := w.Target.Observe(t.Context(), want.From)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range want.Rows {
		have := map[string]float64{}
		for _, r := range rows {
			if r.FromSite == row.FromSite && r.To == row.To {
				for _, ratio := range r.Ratios {
					have[ratio.Site] = ratio.Share
				}
			}
		}
		for _, ratio := range row.Ratios {
			if math.Abs(have[ratio.Site]-ratio.Share) > w.Resolution || (have[ratio.Site] == 0) != (ratio.Share == 0) {
				t.Errorf("epoch %d: %s shows %v, not %v", want.Epoch, ratio.Site, have[ratio.Site], ratio.Share)
			}
		}
	}
}

// spread has shares follow one another, and requests with them.
func spread(t *testing.T, w World) {
	for i, s := range [][]float64{{0.62, 0, 0.38}, {0, 0, 1}, {1, 0, 0}, {0.25, 0.5, 0.25}, {1. / 3, 1. / 3, 1. / 3}, {0.9, 0.07, 0.03}} {
		table := Table(uint64(i+1), s...)
		w.put(t, table)
		w.shown(t, table)
	}
}

func little(t *testing.T, w World) {
	table := Table(1, 0.9998, 0.0001, 0.0001)
	w.put(t, table)
	w.observed(t, table)
}

// again changes nothing.
func again(t *testing.T, w World) {
	for epoch, s := range [][]float64{{0.62, 0, 0.38}, {0.5, 0.1, 0.4}} {
		table := Table(uint64(epoch+1), s...)
		if n := w.put(t, table); n == 0 {
			t.Error("a new table changed nothing")
		}
		for range 2 {
			if n := w.put(t, table); n != 0 {
				t.Errorf("the same table again changed %d things", n)
			}
		}
	}
}

// refused are tables that can't be; the last good one stays.
func refused(t *testing.T, w World) {
	good := Table(1, 0.25, 0.25, 0.5)
	w.put(t, good)
	absent := Table(2, 0.5, 0.5)
	absent.Rows[0].Ratios[1].Site = Absent
	partly := Table(2, 1, 0, 0)
	partly.Rows = append(partly.Rows, absent.Rows[0])
	partly.Rows[1].FromSite, partly.Rows[1].To = w.Second.FromSite, w.Second.To // good and bad rows together
	for name, tc := range map[string]struct {
		table shares.Table
		err   error
	}{
		"absent": {absent, shares.ErrAbsent},
		"partly": {partly, shares.ErrAbsent},
		"all 0":  {Table(2, 0, 0, 0), shares.ErrShares},
		"less":   {Table(2, 1, -1, 0), shares.ErrShares},
		"nobody": {shares.Table{Epoch: 2, Rows: good.Rows}, shares.ErrTable},
	} {
		if _, err := w.Target.Put(t.Context(), tc.table); !errors.Is(err, tc.err) || errors.Is(err, executor.ErrAgain) {
			t.Errorf("%s: %v, want %v", name, err, tc.err)
		}
		w.observed(t, good)
	}
	w.shown(t, good)
}

// cleared tables leave the target to its own configuration, and come again.
func cleared(t *testing.T, w World) {
	before := w.Send(Link, 60)
	table := Table(1, 0, 0, 1)
	w.put(t, table)
	if err := w.Target.Clear(t.Context(), Frontend); err != nil {
		t.Fatal(err)
	}
	after := w.Send(Link, 60)
	for site, n := range before {
		if d := n - after[site]; d < -2 || d > 2 {
			t.Errorf("%v before the table and %v after", before, after)
		}
	}
	if n := w.put(t, table); n == 0 {
		t.Error("a table that was cleared changed nothing")
	}
	w.shown(t, table)
	if err := w.Target.Clear(t.Context(), "nobody"); err != nil {
		t.Errorf("nothing to clear: %v", err)
	}
}

// foreign is what isn't the table's.
func foreign(t *testing.T, w World) {
	before := w.Foreign()
	for epoch, s := range [][]float64{{0.62, 0, 0.38}, {0, 0, 1}} {
		w.put(t, Table(uint64(epoch+1), s...))
	}
	if err := w.Target.Clear(t.Context(), Frontend); err != nil {
		t.Fatal(err)
	}
	if after := w.Foreign(); before == "" || after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	other := Table(7, 0.5, 0, 0.5)
	other.From = Checkout
	w.put(t, other)
	w.put(t, Table(8, 1, 0, 0))
	w.shown(t, other)
}

func ready(t *testing.T, w World) {
	w.put(t, Table(1, 0.5, 0.5, 0))
	at := func(site string) error {
		return w.Target.Ready(t.Context(), shares.Replica{Component: Search, Site: site})
	}
	if err := at("west"); err != nil {
		t.Error(err)
	}
	if err := at(Absent); !errors.Is(err, shares.ErrAbsent) {
		t.Errorf("at a site that isn't: %v", err)
	}
	w.Up("west", false)
	if err := at("west"); !errors.Is(err, router.ErrNotReady) || !errors.Is(err, executor.ErrAgain) {
		t.Errorf("down: %v", err)
	}
	w.Up("west", true)
	if err := at("west"); err != nil {
		t.Errorf("up again: %v", err)
	}
	w.Up("north", false)
	if got := w.Send(Link, 40); got["north"] != 0 || got[East] != 40 {
		t.Errorf("with north down: %v", got)
	}
	w.put(t, Table(2, 0.25, 0.75, 0)) // a dead site holds up no table
	w.Up("north", true)
	w.shown(t, Table(2, 0.25, 0.75, 0))
}

// drain gives no new requests and waits for the running ones (P38).
func drain(t *testing.T, w World) {
	w.put(t, Table(1, 0.4, 0.3, 0.3))
	site, release := w.Hold()
	replica := shares.Replica{Component: Search, Site: site}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if n, err := w.Target.Drain(short, replica); n != 1 || !errors.Is(err, shares.ErrRemaining) {
		t.Errorf("with a request at %s: %d remaining, %v", site, n, err)
	}
	if got := w.Send(Link, 60); got[site] != 0 {
		t.Errorf("draining %s: %v", site, got)
	}
	if err := w.Target.Ready(t.Context(), replica); !errors.Is(err, router.ErrNotReady) {
		t.Errorf("draining %s: ready says %v", site, err)
	}
	table := Table(2, 0.2, 0.2, 0.6)
	w.put(t, table)
	if got := w.Send(Link, 60); got[site] != 0 {
		t.Errorf("draining %s, under another table: %v", site, got)
	}
	release()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if n, err := w.Target.Drain(ctx, replica); n != 0 || err != nil {
		t.Errorf("with no request left at %s: %d remaining, %v", site, n, err)
	}
	if got := w.Send(Link, 60); got[site] != 0 {
		t.Errorf("drained %s: %v", site, got)
	}
	if n := w.put(t, table); n != 0 {
		t.Errorf("a drain made the table change %d things", n)
	}
	if err := w.Target.Undrain(t.Context(), replica); err != nil {
		t.Fatal(err)
	}
	w.shown(t, table)
}

func drainOfNone(t *testing.T, w World) {
	w.put(t, Table(1, 0.4, 0.3, 0.3))
	for range 2 {
		if n, err := w.Target.Drain(t.Context(), shares.Replica{Component: Search, Site: "west"}); n != 0 || err != nil {
			t.Errorf("%d remaining, %v", n, err)
		}
	}
}

// cutOff targets are to be asked again, and keep what they had.
func cutOff(t *testing.T, w World) {
	if w.Cut == nil {
		return
	}
	good := Table(1, 0.25, 0.25, 0.5)
	w.put(t, good)
	heal := w.Cut()
	replica := shares.Replica{Component: Search, Site: "west"}
	_, put := w.Target.Put(t.Context(), Table(2, 1, 0, 0))
	_, observe := w.Target.Observe(t.Context(), Frontend)
	_, drained := w.Target.Drain(t.Context(), replica)
	for name, err := range map[string]error{
		"put": put, "observe": observe, "drain": drained, "clear": w.Target.Clear(t.Context(), Frontend),
		"ready": w.Target.Ready(t.Context(), replica), "undrain": w.Target.Undrain(t.Context(), replica),
	} {
		if !errors.Is(err, router.ErrUnreachable) || !errors.Is(err, executor.ErrAgain) {
			t.Errorf("%s: %v", name, err)
		}
	}
	heal()
	w.shown(t, good)
	w.put(t, Table(2, 1, 0, 0))
	w.shown(t, Table(2, 1, 0, 0))
}
