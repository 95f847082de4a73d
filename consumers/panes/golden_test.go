package panes

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"penstock/infra/golden"
	"penstock/schemas/window"
)

// hour is a window's width in µs.
const hour = int64(3600 * 1e6)

// script runs one golden script against an assembler. Each line is a command;
// what it did follows in lines that begin with "> ".
//
//	partitions N                                start anew with N partitions
//	pane p=0 flush=a owner=x@3:5 …              a pane: owner x, 5 requests in window 3
//	late p=0 flush=a owner=x@3:5                the same in the late rollup
//	commit p=0 flush=a panes=1 wm=4 [lost=3:4] [received=5] [counted=3:5]
//	                                            watermark at the end of window 4 − 1
//	gone p=0 received=5                         a flush that nobody will read
//	seen                                        the same messages again, from the first
//	restart                                     snapshot, restore into a new assembler
//	stats                                       what was set aside
type script struct {
	t    *testing.T
	asm  *Assembler
	seq  uint64
	sum  map[int]window.Account
	past []func() (*Flush, error)
	out  strings.Builder
}

func TestGoldenScripts(t *testing.T) {
	golden.Marked(t, "testdata/*.script", "> ", func(t *testing.T) func(string) string {
		s := &script{t: t}
		return func(line string) string {
			s.out.Reset()
			s.run(strings.Fields(line))
			return s.out.String()
		}
	})
}

func (s *script) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *script) run(words []string) {
	args := map[string]string{}
	var rows []string
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		if k == "owner" {
			rows = append(rows, v)
			continue
		}
		args[k] = v
	}
	num := func(k string) int64 {
		n, err := strconv.ParseInt(args[k], 10, 64)
		if err != nil && args[k] != "" {
			s.t.Fatalf("%v: %v", words, err)
		}
		return n
	}
	p := int(num("p"))
	switch words[0] {
	case "partitions":
		n, err := strconv.Atoi(words[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.asm, s.seq, s.sum, s.past = New(Options{Group: window.Owners, Partitions: n}), 0, map[int]window.Account{}, nil
	case "pane", "late":
		r := window.Traffic
		if words[0] == "late" {
			r = window.Late
		}
		t := table(s.t, r, rows)
		s.message(func(seq uint64) (*Flush, error) { return nil, s.asm.Pane(p, seq, args["flush"], t) })
	case "commit":
		a := window.Account{Received: num("received"), Counted: num("received")}
		total := s.sum[p]
		total.Add(a)
		s.sum[p] = total
		c := &window.Commit{
			Version: 1, Group: window.Owners, Partition: p, Flush: args["flush"], Panes: int(num("panes")),
			Watermark: num("wm") * hour, Account: a, Total: total,
		}
		if v, ok := args["lost"]; ok {
			from, to := pair(s.t, v)
			c.Incomplete = []window.Interval{{From: from * hour, To: to * hour, Reason: "lost"}}
		}
		if v, ok := args["counted"]; ok {
			w, n := pair(s.t, v)
			c.Windows = []window.WindowCount{{Start: w * hour, Counted: n}}
		}
		s.message(func(seq uint64) (*Flush, error) { return s.asm.Commit(p, seq, c) })
	case "gone":
		// Flushes that nobody will read: only the totals know them.
		total := s.sum[p]
		total.Add(window.Account{Received: num("received"), Counted: num("received")})
		s.sum[p] = total
		s.seq++
	case "seen":
		for _, m := range s.past {
			s.did(m())
		}
	case "restart":
		var b bytes.Buffer
		if err := s.asm.Snapshot(&b); err != nil {
			s.t.Fatal(err)
		}
		s.asm = New(s.asm.opts)
		if err := s.asm.Restore(&b); err != nil {
			s.t.Fatal(err)
		}
	case "stats":
		s.say("%s", strings.Trim(fmt.Sprintf("%+v", s.asm.Stats()), "{}"))
	default:
		s.t.Fatalf("unknown command %q", words[0])
	}
}

func (s *script) message(m func(seq uint64) (*Flush, error)) {
	s.seq++
	seq := s.seq
	again := func() (*Flush, error) { return m(seq) }
	s.past = append(s.past, again)
	s.did(again())
}

func (s *script) did(f *Flush, err error) {
	if err != nil {
		s.say("%v", err)
		return
	}
	if f != nil {
		for _, t := range f.Late {
			s.say("late %s", describe(t))
		}
	}
	for w := s.asm.Close(); w != nil; w = s.asm.Close() {
		s.say("window %d at %v counted %d", w.Start/hour, w.Sequences, w.Counted)
		for _, r := range window.Rollups {
			if t := w.Tables[r.Name]; t != nil {
				s.say("  %s %s", r.Name, describe(t))
			}
		}
		for _, i := range w.Incomplete {
			s.say("  incomplete %s %+d min to %+d min", i.Reason, (i.From-w.Start)/60e6, (i.To-w.Start)/60e6)
		}
	}
}

func describe(t *window.Table) string {
	var out []string
	for i := range t.Len() {
		out = append(out, fmt.Sprintf("%s@%d:%d", t.Keys[0].At(i), t.Start[i]/hour, t.Ints[0][i]))
	}
	return strings.Join(out, " ")
}

func table(t *testing.T, r *window.Rollup, rows []string) *window.Table {
	out := window.NewTable(r)
	for _, row := range rows {
		owner, rest, _ := strings.Cut(row, "@")
		w, n := pair(t, rest)
		out.Append(w*hour, []string{owner, "east"}, []int64{n, n, 0, 10 * n, 0})
	}
	out.Sort()
	return out
}

func pair(t *testing.T, s string) (int64, int64) {
	a, b, _ := strings.Cut(s, ":")
	x, err1 := strconv.ParseInt(a, 10, 64)
	y, err2 := strconv.ParseInt(b, 10, 64)
	if err1 != nil || err2 != nil {
		t.Fatalf("%q: expected two numbers", s)
	}
	return x, y
}
