package join

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"penstock/producers/otlp/span"
)

// arrival is a span and when it comes, µs.
type arrival struct {
	span.Span
	at int64
}

// arrivals lets each span of a model come when an exporter sent it: after its end,
// by less than delay. Times are stretched, so that traces go on for longer than
// that; clocks are left within 137 µs of each other.
func arrivals(t *rapid.T, spans []span.Span, delay int64) (out []arrival) {
	for _, s := range spans {
		switch off := s.Start - begin; {
		case off < 0:
			s.Start += 5_000 - 5
		case off > 50_000:
			s.Start -= 90_000 - 90
		}
		if s.Start != span.Unknown {
			s.Start *= 1000
		}
		if s.Duration != span.Unknown {
			s.Duration *= 1000
		}
		at := s.Start / 1000
		if s.Duration != span.Unknown {
			at = s.End()/1000 + rapid.Int64Range(0, delay).Draw(t, "exported")
		}
		out = append(out, arrival{s, at})
	}
	slices.SortStableFunc(out, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return out
}

// soon reports whether no answer is on its way for longer than a receiver waits for a
// client that still waits.
func soon(in []arrival) bool {
	for i := range in {
		for j := range in {
			c, s := &in[i], &in[j]
			below := s.Parent == c.ID || s.Shared && s.ID == c.ID
			if c.Asks() && s.Serves() && below && s.Trace == c.Trace && c.End()-s.End() > 200_000 {
				return false
			}
		}
	}
	return true
}

// A receiver makes each call a window after its end, however long the trace goes on,
// and it is the call that is made where all spans of the trace are there.
func TestLiveCallsAreThoseOfWholeTraces(t *testing.T) {
	early := 0
	rapid.Check(t, func(t *rapid.T) {
		delay := rapid.Int64Range(1, 300).Draw(t, "delay")
		in := rapid.Custom(func(t *rapid.T) []arrival {
			spans, _, _ := drawTraces(t)
			return arrivals(t, spans, delay)
		}).Filter(soon).Draw(t, "arrivals")
		var stretched []span.Span
		for _, a := range in {
			stretched = append(stretched, a.Span)
		}
		want, wantStats := run(Options{}, stretched)

		const step = 10
		o := Options{Live: true, Step: step, Window: delay + 300, MaxAge: 1 << 40}
		var calls []string
		now := int64(0)
		j := New(o, func(c *Call) {
			calls = append(calls, text(c))
			if age := now - c.Time/1000; age > o.Window+3*step+142 {
				t.Fatalf("made %d µs after its end, the window is %d: %s", age, o.Window, text(c))
			}
		})
		for end := int64(1 << 62); len(in) > 0 || now < end; {
			for len(in) > 0 && in[0].at <= now {
				j.Add(now, &in[0].Span)
				in = in[1:]
			}
			if end == 1<<62 && len(in) == 0 {
				end = now + o.Window + 4*step
			}
			if j.Held() == 0 && len(in) > 0 {
				now = in[0].at
				continue
			}
			before := len(calls)
			if j.Advance(now); len(calls) > before && j.Held() > 0 && len(j.traces) == 1 {
				early++
			}
			now += step / 2
		}
		j.Flush()
		slices.Sort(calls)
		if fmt.Sprint(calls) != fmt.Sprint(want) {
			t.Fatalf("got\n%sexpected\n%s", lines(calls), lines(want))
		}
		got := j.Stats()
		if got.Traces >= wantStats.Traces {
			got.Traces = wantStats.Traces // A pause makes two of one.
		}
		if got.Account[Called] != wantStats.Account[Called] || got.Account.Sum() != wantStats.Account.Sum() || got.OneSided != wantStats.OneSided || got.Negative != wantStats.Negative {
			t.Fatalf("got %+v\nexpected %+v", got, wantStats)
		}
	})
	if early == 0 {
		t.Error("no call was made while its trace went on")
	}
}

// With spans that make no sense, clocks that are off, and little room, every span
// still has one fate, and calls are as many as fates say.
func TestLiveJunkAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans, _, _ := drawTraces(t)
		spans = shuffle(t, append(spans, drawJunk(t)...))
		o := Options{
			Live: true, Step: rapid.Int64Range(0, 3).Draw(t, "step"), Entries: EntryAll,
			MaxSpans: rapid.IntRange(1, 40).Draw(t, "room"), Memory: rapid.IntRange(1, 10).Draw(t, "memory"),
			Window: rapid.Int64Range(1, 10).Draw(t, "window"), MaxAge: rapid.Int64Range(1, 40).Draw(t, "age"),
		}
		emitted, now := int64(0), int64(0)
		j := New(o, func(*Call) { emitted++ })
		for i := range spans {
			if s := &spans[i]; s.Start != span.Unknown && rapid.Bool().Draw(t, "believed") {
				s.Start = (now + rapid.Int64Range(-15, 5).Draw(t, "clock")) * 1000
			}
			j.Add(now, &spans[i])
			now += rapid.Int64Range(0, 4).Draw(t, "pause")
			j.Advance(now)
		}
		j.Flush()
		st := j.Stats()
		if j.Held() != 0 || len(j.traces) != 0 || st.Account.Sum() != int64(len(spans)) || st.Account[Called] != emitted {
			t.Fatalf("%d held, %d calls, %s of %d", j.Held(), emitted, &st.Account, len(spans))
		}
	})
}

// A long request: what it calls is told while it runs, and its own time is right when
// it ends, for the calls that it waited for are still known then.
func TestLongRequest(t *testing.T) {
	const second = int64(1e6)
	at := func(line string, from, to int64) span.Span {
		s := sp(t, line)
		s.Start, s.Duration = from*1e9, (to-from)*1e9
		return s
	}
	var calls []string
	j := New(Options{Live: true, Step: second / 4, Window: 6 * second, MaxAge: 60 * second}, func(c *Call) { calls = append(calls, text(c)) })
	for i, want := range []struct {
		now   int64
		span  span.Span
		calls int
	}{
		{104, at("1.3<2 client shop/s 1+1", 102, 104), 0},
		{105, at("1.4<3 server cart/c 1+1", 103, 104), 0},
		{109, at("1.5<2 client shop/s callee=db 1+1", 108, 109), 0},
		{112, at("1.6<2 shop/s 1+1", 111, 112), 1},
		{121, at("1.2 server shop/s 1+1", 100, 120), 2},
	} {
		j.Advance(want.now * second)
		j.Add(want.now*second, &want.span)
		if len(calls) != want.calls {
			t.Errorf("%d calls at step %d, expected %d: %v", len(calls), i, want.calls, calls)
		}
	}
	j.Advance(127 * second)
	want := []string{
		"1 shop/s→cart/c at 104000000000 client=2000000000 server=1000000000 own=1000000000 network=1000000000",
		"1 shop/s→db at 109000000000 client=1000000000 server=? own=? network=? one-sided",
		"1 ·→shop/s at 120000000000 client=? server=20000000000 own=17000000000 network=? entry one-sided",
	}
	if !slices.Equal(calls, want) {
		t.Errorf("got\n%sexpected\n%s", lines(calls), lines(want))
	}
	if st := j.Stats(); st.Account.Sum() != 5 || st.Account[Called] != 3 || st.Account[Half] != 1 || st.Account[Inside] != 1 || j.Held() != 0 {
		t.Errorf("%s", &st.Account)
	}
}

// A user thinks for five minutes within a trace: each call is made in time, with its own
// delay, and the trace does not take up room meanwhile.
func TestAUserInTheLoop(t *testing.T) {
	const second = int64(1e6)
	var calls []string
	j := New(Options{Live: true, Step: second / 10, Window: 6 * second, MaxAge: 60 * second}, func(c *Call) { calls = append(calls, text(c)) })
	for n, at := range []int64{100_000, 401_700} { // ms
		client, server := sp(t, fmt.Sprintf("1.%d client shop/s", 2*n+2)), sp(t, fmt.Sprintf("1.%d<%d server cart/c", 2*n+3, 2*n+2))
		client.Start, client.Duration = at*1e6, 500e6
		server.Start, server.Duration = (at+100)*1e6, 300e6
		now := at*1000 + second
		j.Add(now, &client)
		j.Add(now+2*second, &server)
		j.Advance(now + 7*second)
		if len(calls) != n+1 || j.Held() != 0 {
			t.Errorf("%d calls and %d spans held 7 s after call %d", len(calls), j.Held(), n+1)
		}
	}
	want := []string{
		"1 shop/s→cart/c at 100500000000 client=500000000 server=300000000 own=300000000 network=200000000",
		"1 shop/s→cart/c at 402200000000 client=500000000 server=300000000 own=300000000 network=200000000",
	}
	if !slices.Equal(calls, want) {
		t.Errorf("got\n%sexpected\n%s", lines(calls), lines(want))
	}
}
