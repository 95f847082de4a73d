package window_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/schemas/window"
)

func TestWidthsThatWindowsCanHave(t *testing.T) {
	good := map[time.Duration]bool{}
	const day = 24 * time.Hour
	for n := 1; n <= 86400; n++ {
		if 86400%n == 0 {
			good[day/time.Duration(n)] = true // A day in n windows.
		}
	}
	for d := -time.Second; d <= day+time.Second; d += time.Second {
		if err := window.CheckWidth(d); (err == nil) != good[d] {
			t.Fatalf("%s: %v", d, err)
		}
	}
	for _, d := range []time.Duration{time.Millisecond, 1500 * time.Millisecond, time.Second + 1, 48 * time.Hour} {
		if err := window.CheckWidth(d); !errors.Is(err, window.ErrWidth) {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// TestPanesCarryTheirWidth: a pane of a bus with other windows says so, and its
// windows are checked against that. One that says nothing is of the rollup's own.
func TestPanesCarryTheirWidth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	ten := window.Widths{Owners: 10 * time.Minute}
	for _, u := range window.Rollups {
		usual := randomTable(r, u, 20, 3)
		usual.Sort()
		plain, err := usual.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		told := ten.Table(u)
		for i := range usual.Len() {
			told.AppendRow(usual, i)
			told.Start[i] += int64(i%2) * ten.Of(u).Microseconds() // which no hour begins with
		}
		body, err := told.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := window.DecodeTable(body)
		if err != nil {
			t.Fatal(err)
		}
		if want := window.Merge(u, told); back.Wide() != ten.Of(u) || dump(back) != dump(want) || want.Wide() != ten.Of(u) {
			t.Errorf("%s comes back %s wide:\n%s\nexpected\n%s", u.Name, back.Wide(), dump(back), dump(want))
		}
		if back, err = window.DecodeTable(plain); err != nil || back.Wide() != u.Width || back.End(0) != back.Start[0]+u.Width.Microseconds() {
			t.Errorf("%s without a width: %v", u.Name, err)
		}
		// The same rows without the word on their width.
		told.Width = 0
		if told, err = again(told); u.Group == window.Owners && (err == nil || !errors.Is(err, window.ErrUndecodable)) {
			t.Errorf("%s in windows of ten minutes passes for %s: %v", u.Name, told.Wide(), err)
		}
		parts := back.Split(5000)
		for _, p := range parts {
			if p.Wide() != back.Wide() {
				t.Errorf("a part of %s is %s wide", u.Name, p.Wide())
			}
		}
	}
}

func again(t *window.Table) (*window.Table, error) {
	body, err := t.Encode(nil)
	if err != nil {
		return t, err
	}
	_, err = window.DecodeTable(body)
	return t, err
}

// TestImpossibleWidthsAreRefused changes what a pane says of its width, in place.
func TestImpossibleWidthsAreRefused(t *testing.T) {
	tab := window.Widths{Owners: 600 * time.Second}.Table(window.Traffic)
	tab.Append(0, []string{"x", "east"}, []int64{1, 1, 0, 10, 0})
	for _, c := range []struct {
		width time.Duration
		want  string
	}{{600 * time.Second, ""}, {700 * time.Second, "expected a width of windows"}, {0, ""}, {48 * time.Hour, "expected a width of windows"}} {
		tab.Width = c.width
		body, err := tab.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = window.DecodeTable(body)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, window.ErrUndecodable)) {
			t.Errorf("%s: %v", c.width, err)
		}
	}
	fast := window.NewTable(window.Delay)
	fast.Width = time.Second
	if _, err := again(fast); err == nil {
		t.Error("the width of delay is its own, and passes for another")
	}
}

// TestOneHourIsSpeltAsBefore: whoever names the usual width writes the same bytes
// as whoever names none.
func TestOneHourIsSpeltAsBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, u := range window.Rollups {
		tab := randomTable(r, u, 10, 3)
		tab.Width = 0
		a, err := tab.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		tab.Width = window.Widths{Owners: time.Hour}.Of(u)
		b, err := tab.Encode(nil)
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: %d and %d bytes, %v", u.Name, len(a), len(b), err)
		}
	}
}

// TestEndIsBehindEveryWindow compares with a search step by step.
func TestEndIsBehindEveryWindow(t *testing.T) {
	widths := []time.Duration{0, time.Second, 16 * time.Second, 25 * time.Second, time.Minute, time.Hour, 24 * time.Hour}
	rapid.Check(t, func(t *rapid.T) {
		w := window.Widths{Owners: rapid.SampledFrom(widths).Draw(t, "owners")}
		more := rapid.SampledFrom(widths).Draw(t, "more")
		at := rapid.Int64Range(-1e14, 1e15).Draw(t, "time")
		got := w.End(at, more)
		all := []time.Duration{w.Of(window.Traffic), w.Of(window.Delay), more}
		closed := func(end int64) bool { // whether every window that holds the time has ended by then
			for _, d := range all {
				if d > 0 && window.Start(at, d)+d.Microseconds() > end {
					return false
				}
			}
			return true
		}
		if !closed(got) || closed(got-1) {
			t.Fatalf("%d: end %d with widths %v", at, got, all)
		}
		if w.Owners == 0 && more == 0 && got != window.Start(at, time.Hour)+time.Hour.Microseconds() {
			t.Fatalf("%d: end %d, expected that of its hour", at, got)
		}
	})
}
