package reorder

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/infra/golden"
	"penstock/schemas/event"
)

// TestGoldenScripts runs testdata/*.script. A step is an options line and rows in
// input order as name@time (a duration after the epoch); its output is what the
// buffer hands on after each row and at the end.
func TestGoldenScripts(t *testing.T) {
	golden.Scripts(t, "testdata/*.script", func(t *testing.T) golden.Step {
		return func(lines []string) string { return play(t, lines) }
	})
}

func play(t *testing.T, lines []string) string {
	t.Helper()
	var b *Buffer
	var out strings.Builder
	drain := func(after string) {
		var rows []string
		for r := b.Next(); r != nil; r = b.Next() {
			rows = append(rows, r.ID+" "+marks[r.Mark])
		}
		if rows != nil {
			fmt.Fprintf(&out, "%s: %s\n", after, strings.Join(rows, ", "))
		}
	}
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "options "); ok {
			b = New(options(t, rest))
			continue
		}
		for _, word := range strings.Fields(line) {
			name, at, _ := strings.Cut(word, "@")
			d, err := time.ParseDuration(at)
			if err != nil {
				t.Fatalf("%q: %v", word, err)
			}
			r := event.NewRequest(d.Microseconds())
			r.ID = name
			if err := b.Push(&r); err != nil {
				fmt.Fprintf(&out, "%s: %v\n", name, err)
				return out.String()
			}
			drain(name)
		}
	}
	b.Finish()
	drain("end")
	if out.Len() == 0 {
		out.WriteString("nothing\n")
	}
	return out.String()
}

var marks = map[event.Timing]string{event.InTime: "in time", event.Late: "late", event.Future: "future"}

func options(t *testing.T, line string) Options {
	t.Helper()
	var o Options
	for _, f := range strings.Fields(line) {
		k, v, _ := strings.Cut(f, "=")
		var err error
		switch k {
		case "disorder":
			o.Disorder, err = time.ParseDuration(v)
		case "skew":
			o.MaxSkew, err = time.ParseDuration(v)
		case "limit":
			_, err = fmt.Sscan(v, &o.Limit)
		default:
			err = errors.New("unknown option")
		}
		if err != nil {
			t.Fatalf("option %q: %v", f, err)
		}
	}
	return o
}

// row of the oracle.
type row struct {
	time int64
	pos  int
	mark event.Timing
}

// classify is the rule of DESIGN §3 read off the page, over the whole input.
func classify(times []int64, disorder, skew int64) []row {
	rows := make([]row, len(times))
	first, last, greatest := true, int64(0), int64(0)
	for i, t := range times {
		rows[i] = row{time: t, pos: i}
		next := times[i+1 : min(i+1+followers, len(times))]
		behind := 0
		for _, n := range next {
			if n < t-skew {
				behind++
			}
		}
		switch {
		case first:
			if len(next) == followers && behind == followers {
				rows[i].mark = event.Future
				continue
			}
		case t > last+skew:
			if len(next) < followers || behind > 0 {
				rows[i].mark = event.Future
				continue
			}
		}
		if !first && t < greatest-disorder {
			rows[i].mark = event.Late
			continue
		}
		if first || t > greatest {
			greatest = t
		}
		first, last = false, t
	}
	return rows
}

func TestBufferAgreesWithTheRuleOnTheWholeInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disorder := rapid.Int64Range(0, 30).Draw(t, "disorder")
		skew := rapid.Int64Range(0, 40).Draw(t, "skew")
		// Times wander on, and now and then jump ahead, for one row or for good.
		n := rapid.IntRange(0, 80).Draw(t, "rows")
		times, base := make([]int64, n), int64(1000)
		for i := range times {
			switch rapid.IntRange(0, 11).Draw(t, "kind") {
			case 0:
				times[i] = base + rapid.Int64Range(0, 500).Draw(t, "ahead")
			case 1:
				base += rapid.Int64Range(0, 300).Draw(t, "pause")
				times[i] = base
			default:
				base += rapid.Int64Range(0, 5).Draw(t, "step")
				times[i] = base - rapid.Int64Range(0, 40).Draw(t, "back")
			}
		}
		want := classify(times, disorder, skew)
		b := New(Options{Disorder: time.Duration(disorder) * time.Microsecond, MaxSkew: time.Duration(skew) * time.Microsecond})
		var got, inTime []row
		drain := func() {
			for r := b.Next(); r != nil; r = b.Next() {
				x := row{time: r.Time, pos: int(r.Bytes), mark: r.Mark}
				got = append(got, x)
				if x.mark == event.InTime {
					if h := b.Horizon(); !b.finished && x.time > h {
						t.Fatalf("row %d at %d was handed on before the horizon %d reached it", x.pos, x.time, h)
					}
					inTime = append(inTime, x)
				}
			}
		}
		for i, at := range times {
			r := event.NewRequest(at)
			r.Bytes = int64(i)
			if err := b.Push(&r); err != nil {
				t.Fatal(err)
			}
			drain()
		}
		b.Finish()
		drain()
		slices.SortFunc(got, func(a, b row) int { return a.pos - b.pos })
		if !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
		byTime := func(a, b row) int { return cmp.Or(cmp.Compare(a.time, b.time), a.pos-b.pos) }
		if !slices.IsSortedFunc(inTime, byTime) {
			t.Fatalf("rows in time came as %v", inTime)
		}
	})
}

func TestTheDisorderIsReported(t *testing.T) {
	b := New(Options{Disorder: time.Minute, MaxSkew: time.Hour})
	for _, s := range []int64{10, 30, 5, 31, 30, 31, 200, 12} {
		r := event.NewRequest(s * 1e6)
		if err := b.Push(&r); err != nil {
			t.Fatal(err)
		}
	}
	b.Finish()
	if got, want := b.Stats(), (Stats{Disordered: 3, Disorder: 188 * time.Second}); got != want {
		t.Errorf("got %+v, expected %+v", got, want)
	}
}

func TestARowIsCopied(t *testing.T) {
	b := New(Options{MaxSkew: time.Hour})
	for i := range 3 {
		r := event.NewRequest(int64(i))
		r.User = fmt.Sprint("u", i)
		if err := b.Push(&r); err != nil {
			t.Fatal(err)
		}
		r.User = "changed"
	}
	b.Finish()
	for i := range 3 {
		if r := b.Next(); r == nil || r.User != fmt.Sprint("u", i) {
			t.Fatalf("row %d came back as %+v", i, r)
		}
	}
}

func BenchmarkInOrder(b *testing.B) { bench(b, func(int) int64 { return 0 }) }
func BenchmarkShuffledInside2s(b *testing.B) {
	bench(b, func(i int) int64 { return int64(i*7919%2000) * 1000 })
}

// bench pushes rows 20 ms apart, as of the paper's day in its busiest hour.
func bench(b *testing.B, back func(int) int64) {
	buf := New(Options{Disorder: time.Minute, MaxSkew: 10 * time.Minute})
	r := event.NewRequest(0)
	b.ReportAllocs()
	n := 0
	for i := range b.N {
		r.Time = int64(i)*20_000 - back(i)
		if err := buf.Push(&r); err != nil {
			b.Fatal(err)
		}
		for buf.Next() != nil {
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}
