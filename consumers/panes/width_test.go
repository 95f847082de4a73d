package panes

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"penstock/schemas/window"
)

// TestWindowsAreAsWideAsTheBusHasThem puts windows of ten minutes together, and of
// twenty out of those; panes and snapshots of another width are refused.
func TestWindowsAreAsWideAsTheBusHasThem(t *testing.T) {
	const minute = int64(time.Minute / time.Microsecond)
	ten := window.Widths{Owners: 10 * time.Minute}
	pane := func(w window.Widths, starts ...int64) *window.Table {
		tab := w.Table(window.Traffic)
		for _, s := range starts {
			tab.Append(s*minute, []string{"x", "east"}, []int64{1, 1, 0, s + 1, 0})
		}
		return tab
	}
	for _, c := range []struct {
		width time.Duration
		ends  []int64
		bytes [][]int64
	}{
		{0, []int64{10, 20, 40}, [][]int64{{1}, {11}, {31}}},
		{20 * time.Minute, []int64{20, 40}, [][]int64{{1, 11}, {31}}},
	} {
		o := Options{Group: window.Owners, Partitions: 1, Width: c.width, Widths: ten}
		a := New(o)
		if err := a.Pane(0, 1, "a", pane(ten, 0, 10, 30)); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Commit(0, 2, &window.Commit{Group: window.Owners, Flush: "a", Panes: 1, Watermark: 0}); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := a.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		snapshot := bytes.Clone(b.Bytes())
		a = New(o)
		if err := a.Restore(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Commit(0, 3, &window.Commit{Group: window.Owners, Flush: "b", Watermark: 40 * minute}); err != nil {
			t.Fatal(err)
		}
		for i, end := range c.ends {
			w := a.Close()
			if w == nil || w.End != end*minute {
				t.Fatalf("windows of %s: window %d is %+v, expected one that ends at %d min", c.width, i, w, end)
			}
			tab := w.Tables["traffic"]
			if got := tab.Column("bytes"); len(got) != len(c.bytes[i]) || got[0] != c.bytes[i][0] || tab.Wide() != 10*time.Minute {
				t.Errorf("windows of %s: window %d holds %v, expected %v", c.width, i, got, c.bytes[i])
			}
		}
		if w := a.Close(); w != nil {
			t.Errorf("one more window: %+v", w)
		}
		if err := New(Options{Group: window.Owners, Partitions: 1, Width: max(c.width, 10*time.Minute), Widths: window.Widths{Owners: 5 * time.Minute}}).Restore(bytes.NewReader(snapshot)); !errors.Is(err, ErrSnapshot) {
			t.Errorf("a snapshot of windows of another width: %v", err)
		}
	}
	a := New(Options{Group: window.Owners, Partitions: 1, Width: time.Hour, Widths: ten})
	for _, w := range []window.Widths{{}, {Owners: 5 * time.Minute}} {
		if err := a.Pane(0, 1, "a", pane(w, 0)); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "expected 10m0s") {
			t.Errorf("a pane of windows of %s: %v", w.Owners, err)
		}
	}
}

// Windows narrower than some rollups of the group are put together of the others alone:
// the rest opens no window, and nothing of it is missing.
func TestNarrowWindowsLeaveWideRollupsOut(t *testing.T) {
	const second = int64(time.Second / time.Microsecond)
	a := New(Options{Group: window.Fast, Partitions: 1, Width: time.Second})
	storage, service := window.NewTable(window.Storage), window.NewTable(window.Service)
	for _, s := range []int64{0, 10} {
		storage.Append(s*second, make([]string, len(window.Storage.Keys)), make([]int64, len(window.Storage.Values)), window.Bins{})
	}
	for _, s := range []int64{3, 4} {
		service.Append(s*second, []string{"east", "web-1", ""}, make([]int64, len(window.Service.Values)))
	}
	for i, p := range []*window.Table{storage, service} {
		if err := a.Pane(0, uint64(i+1), "a", p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Commit(0, 3, &window.Commit{Group: window.Fast, Flush: "a", Panes: 2, Watermark: 20 * second}); err != nil {
		t.Fatal(err)
	}
	for _, start := range []int64{3, 4} {
		if w := a.Close(); w == nil || w.Start != start*second || len(w.Tables) != 1 || w.Tables["service"].Len() != 1 || len(w.Incomplete) > 0 {
			t.Errorf("got %+v, expected the service of second %d, whole", w, start)
		}
	}
	if w := a.Close(); w != nil {
		t.Errorf("one more window: %+v", w)
	}
	if s := a.Stats(); s.Cut+s.TooLate+s.Missed > 0 || s.Panes != 2 {
		t.Errorf("%+v", s)
	}
}
