package ledger

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/event"
	"penstock/schemas/window"
)

// message is one message of EVENTS as the books see it.
type message struct {
	at    Position
	batch *event.Header
	times []int64
	marks []uint8
	mark  *event.Mark
}

func (m message) String() string {
	if m.mark != nil {
		return fmt.Sprintf("%+v mark %+v", m.at, *m.mark)
	}
	return fmt.Sprintf("%+v batch %+v times %v marks %v", m.at, *m.batch, m.times, m.marks)
}

// feed gives a message to the books as the shell does.
func feed(l *Ledger, m message) []Class {
	if m.mark != nil {
		l.Mark(m.at, m.mark)
		return nil
	}
	switch l.Look(m.batch.Run, m.batch.Seq) {
	case Duplicate, Retired:
		l.Skip(m.at, m.batch)
		return nil
	}
	return slices.Clone(l.Take(m.at, m.batch, m.times, m.marks))
}

// messages draws a stream: three runs with losses, repeats, reorderings, jumps
// and marks, on a server whose clock moves unevenly.
func messages(t *rapid.T) []message {
	n := rapid.IntRange(1, 120).Draw(t, "messages")
	next := map[string]uint64{}
	clock := int64(1_000_000_000_000)
	var out []message
	for i := range n {
		clock += rapid.SampledFrom([]int64{0, 1000, second / 2, second, 3 * second, 3600 * second, -2 * second}).Draw(t, "clock")
		at := Position{Seq: uint64(i*3 + 1), Time: clock}
		run := rapid.SampledFrom([]string{"A", "A", "A", "B", "C"}).Draw(t, "run")
		watermark := int64(i)*second/4 + rapid.Int64Range(-second, second).Draw(t, "watermark")
		var words []event.Dropped
		if rapid.IntRange(0, 14).Draw(t, "word") == 0 {
			first := rapid.Uint64Range(1, next[run]+3).Draw(t, "first")
			words = append(words, event.Dropped{First: first, Last: first + rapid.Uint64Range(0, 3).Draw(t, "more"), From: watermark, To: watermark + 5})
		}
		if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
			kind := rapid.SampledFrom([]event.MarkKind{event.Heartbeat, event.Heartbeat, event.Barrier, event.End}).Draw(t, "mark")
			upto := next[run] + rapid.Uint64Range(0, 2).Draw(t, "beyond")
			out = append(out, message{at: at, mark: &event.Mark{Kind: kind, Run: run, Watermark: watermark, Upto: []uint64{upto}, Dropped: words}})
			continue
		}
		seq := next[run] + 1
		switch rapid.IntRange(0, 9).Draw(t, "order") {
		case 0, 1, 2:
			seq = rapid.Uint64Range(1, next[run]+1).Draw(t, "repeat")
		case 3:
			seq += rapid.Uint64Range(1, 5).Draw(t, "skip")
		case 4:
			if rapid.IntRange(0, 9).Draw(t, "far") == 0 {
				seq += rapid.Uint64Range(500, 1500).Draw(t, "jump")
			}
		}
		next[run] = max(next[run], seq)
		m := message{at: at, batch: &event.Header{Schema: event.RequestSchema, Run: run, Seq: seq, Watermark: watermark, Dropped: words}}
		for range rapid.IntRange(0, 3).Draw(t, "rows") {
			m.times = append(m.times, watermark+rapid.Int64Range(-2*second, 2*second).Draw(t, "time"))
			m.marks = append(m.marks, rapid.SampledFrom([]uint8{0, 0, 0, 0, 1, 2}).Draw(t, "row"))
		}
		m.batch.Rows = len(m.times)
		m.batch.Malformed = rapid.Int64Range(0, 1).Draw(t, "malformed")
		out = append(out, m)
	}
	return out
}

func config(idle int64) Config {
	return Config{Group: window.Fast, Idle: idle, Widths: []int64{10 * second}, Disorder: second}
}

func TestBooksAgreeWithTheSlowOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		idle := rapid.SampledFrom([]int64{0, 3 * second, 30 * second}).Draw(t, "idle")
		l, o := New(config(idle)), newOracle(idle)
		for _, m := range messages(t) {
			var want []Class
			if m.mark != nil {
				o.mark(m.at, m.mark)
			} else {
				if got, want := l.Look(m.batch.Run, m.batch.Seq), o.look(m.batch.Run, m.batch.Seq); got != want {
					t.Fatalf("%v: verdict %v, want %v", m, got, want)
				}
				want = o.batch(m.at, m.batch, m.times, m.marks)
			}
			if got := feed(l, m); !slices.Equal(got, want) {
				t.Fatalf("%v: classes %v, want %v", m, got, want)
			}
			if l.Watermark() != o.watermark || l.stream != o.stream {
				t.Fatalf("%v: watermark %d at %d, want %d at %d", m, l.Watermark(), l.stream, o.watermark, o.stream)
			}
			if l.Total() != o.total || !l.Total().Holds() {
				t.Fatalf("%v: account %+v, want %+v", m, l.Total(), o.total)
			}
			for _, r := range l.runs {
				if r.contiguous != o.runs[r.name].contiguous() || r.crowded() {
					t.Fatalf("%v: run %s contiguous to %d, want %d", m, r.name, r.contiguous, o.runs[r.name].contiguous())
				}
			}
		}
	})
}

// TestRestartsChangeNothing commits and restarts at random points; what was not
// committed is read again.
func TestRestartsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := config(rapid.SampledFrom([]int64{0, 3 * second}).Draw(t, "idle"))
		in := messages(t)
		still := New(cfg)
		for _, m := range in {
			feed(still, m)
		}
		want := still.Commit()

		l := New(cfg)
		var deltas window.Account
		counts := map[int64]window.WindowCount{}
		var gone []window.Interval
		var last *window.Commit
		commit := func() {
			c := l.Commit()
			deltas.Add(c.Account)
			gone = append(gone, c.Incomplete...)
			for _, w := range c.Windows {
				s := counts[w.Start]
				counts[w.Start] = window.WindowCount{Start: w.Start, Counted: s.Counted + w.Counted, Late: s.Late + w.Late}
			}
			c.Flush = "F"
			body, err := c.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if last, err = window.DecodeCommit(body); err != nil {
				t.Fatal(err)
			}
		}
		covered := 0
		for i := 0; i < len(in); i++ {
			feed(l, in[i])
			switch rapid.IntRange(0, 7).Draw(t, "then") {
			case 0:
				commit()
				covered = i + 1
			case 1:
				if last != nil {
					l, i = Restore(cfg, last), covered-1
				} else {
					l, i = New(cfg), -1
				}
				// What follows is the same messages, and draws no more restarts
				// than rapid's budget allows.
				if rapid.IntRange(0, 1).Draw(t, "enough") == 0 {
					for ; i+1 < len(in); i++ {
						feed(l, in[i+1])
					}
				}
			}
		}
		commit()
		if deltas != want.Total || last.Total != want.Total {
			t.Fatalf("deltas %+v and total %+v, want %+v", deltas, last.Total, want.Total)
		}
		if got := joined(gone); !slices.Equal(got, want.Incomplete) {
			t.Fatalf("incomplete %+v, want %+v", got, want.Incomplete)
		}
		for _, w := range want.Windows {
			if counts[w.Start] != w {
				t.Fatalf("window %d: %+v, want %+v", w.Start, counts[w.Start], w)
			}
			delete(counts, w.Start)
		}
		if len(counts) > 0 {
			t.Fatalf("windows too many: %+v", counts)
		}
		if last.Watermark != want.Watermark || last.StreamTime != want.StreamTime || last.Reach != want.Reach {
			t.Fatalf("watermark %d, want %d", last.Watermark, want.Watermark)
		}
		live := func(c *window.Commit) []window.Run {
			return slices.DeleteFunc(slices.Clone(c.Runs), func(r window.Run) bool { return r.Ended })
		}
		a, b := live(last), live(want)
		if len(a) != len(b) {
			t.Fatalf("runs %+v, want %+v", a, b)
		}
		if !reflect.DeepEqual(fmt.Sprintf("%+v %+v", a, last.Retired), fmt.Sprintf("%+v %+v", b, want.Retired)) {
			t.Fatalf("runs %+v %+v,\nwant %+v %+v", a, last.Retired, b, want.Retired)
		}
	})
}
