package panes

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/window"
)

// part is a partition as the property deals it out: rows in the order in which
// they arrive, each with the watermark that holds before it.
type part struct {
	rows []drawn
	at   int
	wm   int64 // in windows
}

type drawn struct {
	owner  string
	start  int64 // in windows
	amount int64
}

// TestAnyCutGivesTheSameWindows deals rows out to partitions by owner, cuts each
// partition into flushes at random, interleaves the flushes at random, sends
// some flushes again, restarts at random, and compares the closed windows with a
// sum over the rows.
func TestAnyCutGivesTheSameWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := int64(rapid.IntRange(1, 6).Draw(t, "windows"))
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) drawn {
			return drawn{
				owner: fmt.Sprintf("o%d", rapid.IntRange(0, 5).Draw(t, "owner")),
				start: int64(rapid.IntRange(0, int(last)-1).Draw(t, "window")), amount: int64(rapid.IntRange(1, 9).Draw(t, "amount")),
			}
		}), 0, 40).Draw(t, "rows")
		want := map[string]int64{}
		for _, r := range rows {
			want[fmt.Sprintf("%d %s", r.start, r.owner)] += r.amount
		}
		got := assemble(t, rows, last)
		if !maps.Equal(got, want) {
			t.Fatalf("got %v, expected %v", got, want)
		}
	})
}

func assemble(t *rapid.T, rows []drawn, last int64) map[string]int64 {
	parts := make([]part, rapid.IntRange(1, 4).Draw(t, "partitions"))
	for _, r := range rows {
		p := &parts[int(r.owner[1])%len(parts)]
		p.rows = append(p.rows, r)
	}
	// Rows of a partition come in any order that its watermark allows.
	for i := range parts {
		slices.SortStableFunc(parts[i].rows, func(a, b drawn) int { return int(a.start - b.start) })
	}
	asm := New(Options{Group: window.Owners, Partitions: len(parts)})
	got := map[string]int64{}
	ended := int64(-1)
	seq := uint64(0)
	for {
		var live []int
		for i := range parts {
			if parts[i].wm < last {
				live = append(live, i)
			}
		}
		if len(live) == 0 {
			break
		}
		i := rapid.SampledFrom(live).Draw(t, "partition")
		flush(t, asm, &parts[i], i, last, &seq)
		if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
			asm = restarted(t, asm)
		}
		for w := asm.Close(); w != nil; w = asm.Close() {
			if w.End <= ended {
				t.Fatalf("window ending %d after one ending %d", w.End, ended)
			}
			ended = w.End
			for i := range parts {
				if parts[i].wm*hour < w.End {
					t.Fatalf("window ending %d closed at watermark %d of partition %d", w.End/hour, parts[i].wm, i)
				}
			}
			tab := w.Tables["traffic"]
			for r := range tab.Len() {
				key := fmt.Sprintf("%d %s", tab.Start[r]/hour, tab.Keys[0].At(r))
				if _, twice := got[key]; twice {
					t.Fatalf("%s comes twice", key)
				}
				got[key] = tab.Column("requests")[r]
			}
		}
	}
	if s := asm.Stats(); s.TooLate != 0 || s.Missed != 0 || s.Cut != 0 {
		t.Fatalf("stats %+v", s)
	}
	return got
}

// flush sends a flush of some of the partition's next rows and moves its
// watermark as far as they allow, or less.
func flush(t *rapid.T, asm *Assembler, p *part, i int, last int64, seq *uint64) {
	n := rapid.IntRange(0, len(p.rows)-p.at).Draw(t, "rows in flush")
	rows := p.rows[p.at : p.at+n]
	p.at += n
	most := last
	if p.at < len(p.rows) {
		most = p.rows[p.at].start
	}
	if p.wm < most {
		p.wm = int64(rapid.IntRange(int(p.wm), int(most)).Draw(t, "watermark"))
	}
	var panes []*window.Table
	for len(rows) > 0 {
		n := rapid.IntRange(1, len(rows)).Draw(t, "rows in pane")
		tab := window.NewTable(window.Traffic)
		for _, r := range rows[:n] {
			tab.Append(r.start*hour, []string{r.owner, "east"}, []int64{r.amount, 0, 0, 0, 0})
		}
		tab.Sort()
		panes, rows = append(panes, tab), rows[n:]
	}
	id := fmt.Sprintf("f%d", *seq)
	send := func(flush string, panes []*window.Table) {
		for _, tab := range panes {
			*seq++
			if err := asm.Pane(i, *seq, flush, tab); err != nil {
				t.Fatal(err)
			}
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "trouble") {
	case 0: // a first attempt that was cut off
		send(id, panes[:rapid.IntRange(0, len(panes)).Draw(t, "cut at")])
	case 1: // somebody else's flush that never got its commit
		send("fenced", panes)
	}
	send(id, panes)
	*seq++
	c := &window.Commit{Version: 1, Group: window.Owners, Partition: i, Flush: id, Panes: len(panes), Watermark: p.wm * hour}
	if _, err := asm.Commit(i, *seq, c); err != nil {
		t.Fatal(err)
	}
}

func restarted(t *rapid.T, asm *Assembler) *Assembler {
	var b bytes.Buffer
	if err := asm.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	b.WriteString("rest")
	out := New(asm.opts)
	if err := out.Restore(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() != "rest" {
		t.Fatalf("restore read past its end: %q is left", b.String())
	}
	return out
}

func FuzzRestore(f *testing.F) {
	asm := New(Options{Group: window.Owners, Partitions: 2})
	tab := window.NewTable(window.Traffic)
	tab.Append(hour, []string{"x", "east"}, []int64{1, 1, 0, 10, 0})
	if err := asm.Pane(0, 1, "a", tab); err != nil {
		f.Fatal(err)
	}
	if _, err := asm.Commit(0, 2, &window.Commit{Group: window.Owners, Flush: "a", Panes: 1, Watermark: 0}); err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := asm.Snapshot(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()/2])
	f.Add([]byte(strings.Repeat("\xff", 20)))
	f.Fuzz(func(t *testing.T, data []byte) {
		a := New(Options{Group: window.Owners, Partitions: 2})
		if err := a.Restore(bytes.NewReader(data)); err == nil {
			a.Close()
		}
	})
}
