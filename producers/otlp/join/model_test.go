package join

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"penstock/producers/otlp/span"
)

// model makes traces of which it knows the calls: it runs requests through
// components by one true clock, and lets each process write its spans by its own.
// What is expected is written down as it happens, by other means than spans are
// joined: own time is counted moment by moment.
type model struct {
	t     *rapid.T
	trace byte
	next  byte
	spans []span.Span
	calls []string
	want  Account
}

type process struct {
	Party
	off int64 // its clock less the true one, ns
}

const begin = 1_000_000

// processes are two of each of four components, at two sites.
func drawProcesses(t *rapid.T) []process {
	var out []process
	for c := range 4 {
		for i := range 2 {
			out = append(out, process{
				Party{fmt.Sprintf("c%d", c), fmt.Sprintf("site-%d", i), fmt.Sprintf("c%d-%d", c, i)},
				rapid.SampledFrom([]int64{0, 0, 0, 137, -5_000, 90_000}).Draw(t, "clock"),
			})
		}
	}
	return out
}

func (m *model) id() span.ID {
	m.next++
	return span.ID{7: m.next}
}

// write adds a span of a process, from and to by the true clock.
func (m *model) write(p process, id, parent span.ID, k span.Kind, from, to int64) *span.Span {
	var s span.Span
	s.Reset()
	s.Trace[15], s.ID, s.Parent, s.Kind = m.trace, id, parent, k
	s.Start, s.Duration = from+p.off, to-from
	s.Component, s.Site, s.Server = p.Component, p.Site, p.Server
	m.spans = append(m.spans, s)
	return &m.spans[len(m.spans)-1]
}

// serve is a process at work for [from, to): it returns how long of that it was
// not waiting. Its spans hang below id.
func (m *model) serve(ps []process, p process, id span.ID, from, to int64, depth int) (own int64) {
	busy := make([]bool, to-from)
	for i := range busy {
		busy[i] = true
	}
	wait := func(a, b int64) {
		for i := a; i < b; i++ {
			busy[i-from] = false
		}
	}
	for range rapid.IntRange(0, 3).Draw(m.t, "steps") {
		a := rapid.Int64Range(from, to-1).Draw(m.t, "a")
		b := rapid.Int64Range(a+1, to).Draw(m.t, "b")
		above, above2 := id, to
		if rapid.Bool().Draw(m.t, "inner") {
			above = m.id()
			above2 = rapid.Int64Range(b, to).Draw(m.t, "inner end")
			m.write(p, above, id, span.Internal, a, above2)
			m.want[Inside]++
		}
		switch step := rapid.IntRange(0, 5).Draw(m.t, "step"); step {
		case 0: // a message
			m.write(p, m.id(), above, span.Producer, a, b)
			m.want[Message]++
		case 1: // a call to what has no spans, waited for
			s := m.write(p, m.id(), above, span.Client, a, b)
			s.Callee = "db"
			m.call(p.Party, Party{Component: "db"}, b+p.off, b-a, span.Unknown, span.Unknown, "one-sided")
			m.want[Called]++
			wait(a, b)
		case 2: // the same, but it goes on after its parent
			end := above2 + rapid.Int64Range(1, 50).Draw(m.t, "after")
			s := m.write(p, m.id(), above, span.Client, a, end)
			s.Callee = "log"
			m.call(p.Party, Party{Component: "log"}, end+p.off, end-a, span.Unknown, span.Unknown, "one-sided")
			m.want[Called]++
		default: // a call
			if depth == 0 || b-a < 3 {
				continue
			}
			m.request(ps, p, above, a, b, step == 3, depth)
			wait(a, b)
		}
	}
	for _, b := range busy {
		if b {
			own++
		}
	}
	return own
}

// request is a call for [a, b) at the client, within it at the server.
func (m *model) request(ps []process, p process, above span.ID, a, b int64, shared bool, depth int) {
	callee := rapid.SampledFrom(ps).Filter(func(q process) bool { return q.Server != p.Server }).Draw(m.t, "callee")
	sFrom := rapid.Int64Range(a, b-1).Draw(m.t, "server from")
	sTo := rapid.Int64Range(sFrom+1, b).Draw(m.t, "server to")
	id := m.id()
	m.write(p, id, above, span.Client, a, b)
	sID, sParent := id, above
	if !shared {
		sID, sParent = m.id(), id
	}
	m.write(callee, sID, sParent, span.Server, sFrom, sTo).Shared = shared
	own := m.serve(ps, callee, sID, sFrom, sTo, depth-1)
	flags := ""
	if sFrom+callee.off < a+p.off || sTo+callee.off > b+p.off {
		flags = "skewed"
	}
	m.call(p.Party, callee.Party, b+p.off, b-a, sTo-sFrom, own, flags)
	m.want[Called]++
	m.want[Half]++
}

func (m *model) call(from, to Party, at, client, server, own int64, flags string) {
	c := Call{Trace: span.Trace{15: m.trace}, From: from, To: to, Time: at, Client: client, Server: server, Own: own}
	s := text(&c)
	if flags != "" {
		s += " " + flags
	}
	m.calls = append(m.calls, s)
}

// drawTraces makes some traces.
func drawTraces(t *rapid.T) (spans []span.Span, calls []string, want Account) {
	ps := drawProcesses(t)
	for tr := range rapid.IntRange(1, 4).Draw(t, "traces") {
		m := &model{t: t, trace: byte(tr + 1)}
		root := rapid.SampledFrom(ps).Draw(t, "root")
		from := begin + rapid.Int64Range(0, 1000).Draw(t, "from")
		to := from + rapid.Int64Range(50, 400).Draw(t, "length")
		id := m.id()
		m.write(root, id, span.ID{}, span.Server, from, to)
		own := m.serve(ps, root, id, from, to, 3)
		m.call(Party{Site: root.Site}, root.Party, to+root.off, span.Unknown, to-from, own, "entry one-sided")
		m.want[Called]++
		spans, calls = append(spans, m.spans...), append(calls, m.calls...)
		for f, n := range m.want {
			want[f] += n
		}
	}
	return spans, calls, want
}

func shuffle(t *rapid.T, spans []span.Span) []span.Span {
	return rapid.Permutation(spans).Draw(t, "order")
}

// Whatever the order in which spans of several traces arrive, and however often,
// the calls are those that were made, with the times that they took.
func TestJoinsWhatWasCalled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans, calls, want := drawTraces(t)
		if repeats := rapid.IntRange(0, 3).Draw(t, "repeats"); len(spans) > 0 {
			for range repeats {
				spans = append(spans, rapid.SampledFrom(spans).Draw(t, "repeat"))
				want[Duplicate]++
			}
		}
		got, st := run(Options{}, shuffle(t, spans))
		slices.Sort(calls)
		if fmt.Sprint(got) != fmt.Sprint(calls) {
			t.Fatalf("calls:\n%s\nexpected:\n%s", lines(got), lines(calls))
		}
		if st.Account != want || st.Read != want.Sum() {
			t.Fatalf("%s, expected %s", &st.Account, &want)
		}
	})
}

func lines(v []string) (out string) {
	for _, s := range v {
		out += s + "\n"
	}
	return out
}

// drawJunk makes spans of any kind, below anything.
func drawJunk(t *rapid.T) []span.Span {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) span.Span {
		var s span.Span
		s.Reset()
		s.Trace = span.Trace{15: rapid.Byte().Draw(t, "trace") % 3}
		s.ID = span.ID{7: rapid.Byte().Draw(t, "id") % 8}
		s.Parent = span.ID{7: rapid.Byte().Draw(t, "parent") % 8}
		s.Kind = span.Kind(rapid.IntRange(0, 5).Draw(t, "kind"))
		s.Shared, s.Follows = rapid.Bool().Draw(t, "shared"), rapid.IntRange(0, 5).Draw(t, "follows") == 0
		if rapid.IntRange(0, 4).Draw(t, "no start") > 0 {
			s.Start = rapid.Int64Range(1, 100).Draw(t, "start")
		}
		if rapid.IntRange(0, 4).Draw(t, "no duration") > 0 {
			s.Duration = rapid.Int64Range(0, 50).Draw(t, "duration")
		}
		s.Component = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "component")
		s.Server = rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "server")
		s.Callee = rapid.SampledFrom([]string{"", "c"}).Draw(t, "callee")
		s.Caller = rapid.SampledFrom([]string{"", "d"}).Draw(t, "caller")
		return s
	}), 0, 40).Draw(t, "spans")
}

// Of spans that make no sense every one has one fate, calls are as many as fates
// say, own times are within the callee's, and the order does not matter.
func TestJunkAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := drawJunk(t)
		o := Options{Entries: Entries(rapid.IntRange(0, 2).Draw(t, "entries"))}
		calls, st := run(o, spans)
		if st.Read != int64(len(spans)) || st.Account.Sum() != st.Read || st.Account[Called] != int64(len(calls)) {
			t.Fatalf("%d spans, %d calls: read %d, %s", len(spans), len(calls), st.Read, &st.Account)
		}
		again, st2 := run(o, shuffle(t, spans))
		if fmt.Sprint(calls) != fmt.Sprint(again) || st != st2 {
			t.Fatalf("in another order:\n%s%+v\n%s%+v", lines(calls), st, lines(again), st2)
		}
		j := New(o, func(c *Call) {
			if c.Server != span.Unknown && (c.Own < 0 || c.Own > c.Server) {
				t.Fatalf("own time: %s", text(c))
			}
			if c.From.Component == c.To.Component && c.From.Component == "" {
				t.Fatalf("nobody called nobody: %s", text(c))
			}
		})
		for i := range spans {
			j.Add(0, &spans[i])
		}
		j.Flush()
	})
}

// With little room and short windows every span still has one fate, and the room
// is not exceeded.
func TestLittleRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans, _, _ := drawTraces(t)
		spans = append(spans, drawJunk(t)...)
		spans = shuffle(t, spans)
		o := Options{
			MaxSpans: rapid.IntRange(1, 20).Draw(t, "room"), Memory: rapid.IntRange(1, 10).Draw(t, "memory"),
			Window: rapid.Int64Range(0, 10).Draw(t, "window"), MaxAge: rapid.Int64Range(0, 20).Draw(t, "age"),
		}
		emitted := int64(0)
		j := New(o, func(*Call) { emitted++ })
		for i := range spans {
			j.Add(int64(i), &spans[i])
			if j.Held() > o.MaxSpans {
				t.Fatalf("%d spans held, expected at most %d", j.Held(), o.MaxSpans)
			}
		}
		j.Flush()
		st := j.Stats()
		if j.Held() != 0 || len(j.traces) != 0 || st.Account.Sum() != int64(len(spans)) || st.Account[Called] != emitted {
			t.Fatalf("%d held, %d calls, %s of %d", j.Held(), emitted, &st.Account, len(spans))
		}
		if len(j.memory.known) > 2*o.Memory {
			t.Fatalf("%d halves remembered, expected at most %d", len(j.memory.known), 2*o.Memory)
		}
	})
}

// A call is made once, however far apart its halves come: together if both are
// within the window, else of the first one, and the other is late.
func TestNoCallTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shared := rapid.Bool().Draw(t, "shared")
		client := sp(t2(t), "1.2 client shop 1000+500 callee=cart")
		server := sp(t2(t), "1.3<2 server cart 1100+300 caller=shop")
		if shared {
			server = sp(t2(t), "1.2<1 server cart 1100+300 caller=shop shared")
		}
		halves := []span.Span{client, server}
		if rapid.Bool().Draw(t, "server first") {
			slices.Reverse(halves)
		}
		window, gap := rapid.Int64Range(1, 10).Draw(t, "window"), rapid.Int64Range(0, 20).Draw(t, "gap")
		repeats := rapid.IntRange(0, 2).Draw(t, "repeats")
		var calls []string
		j := New(Options{Window: window}, func(c *Call) { calls = append(calls, text(c)) })
		j.Add(0, &halves[0])
		j.Advance(gap)
		j.Add(gap, &halves[1])
		for i := range repeats {
			j.Advance(gap * int64(i+2))
			j.Add(gap*int64(i+2), &halves[i%2])
		}
		j.Flush()
		st := j.Stats()
		if len(calls) != 1 || (st.Account[Late] > 0) != (gap >= window) || st.Account.Sum() != int64(2+repeats) {
			t.Fatalf("%d calls, %s:\n%s", len(calls), &st.Account, lines(calls))
		}
	})
}

func t2(t *rapid.T) testing.TB { return failer{t: t} }

// failer lets sp fail a property.
type failer struct {
	testing.TB
	t *rapid.T
}

func (f failer) Helper()                        {}
func (f failer) Fatal(a ...any)                 { f.t.Fatal(a...) }
func (f failer) Fatalf(format string, a ...any) { f.t.Fatalf(format, a...) }
