package main

import (
	"syscall"
	"testing"
	"time"
)

// Two services at two sites are traced by OpenTelemetry's SDK, and one by JSON over
// HTTP. The halves of a call go to different receivers, which share traces: the windows
// have every call, with what it took. A receiver that is killed loses what it had in
// memory and nothing else; one that is stopped loses nothing.
func TestReceiversOfSpans(t *testing.T) {
	t.Parallel()
	w := newTracing(t, time.Second, "recv-a", "recv-b")
	w.receive("recv-a", "recv-b")
	const near, far = 5 * time.Millisecond, 65 * time.Millisecond

	// Halves at different receivers, by gRPC.
	webEast, webWest := w.sender("web", "us-east", "recv-a"), w.sender("web", "us-west-2", "recv-a")
	cartEast, cartWest := w.sender("cart", "us-east", "recv-b"), w.sender("cart", "us-west-2", "recv-b")
	for _, c := range []struct {
		n        int
		from, to *sender
		network  time.Duration
	}{{60, webEast, cartEast, near}, {40, webEast, cartWest, far}, {50, webWest, cartWest, near}} {
		for range c.n {
			tracedCall(c.from, c.to, c.network)
		}
	}
	// The callee's half by JSON over HTTP.
	for range 30 {
		asked, began := traced(webEast, far)
		w.post("recv-b", "search", "us-west-2", asked, began)
	}
	flushSpans(t, webEast, webWest, cartEast, cartWest)
	eventually(t, "the calls to be made", func() bool { return w.calls("recv-a", "recv-b") == 360 })
	if a, b := w.calls("recv-a"), w.calls("recv-b"); a == 0 || b == 0 {
		t.Errorf("%d calls are made by one receiver, %d by the other: they share traces", a, b)
	}

	// One is killed under calls that nobody has seen through yet. What comes meanwhile
	// is the other's, and so it is when the first is back.
	killed, stock := w.sender("web-killed", "us-east", "recv-a"), w.sender("stock", "us-west-2", "recv-b")
	for range 50 {
		tracedCall(killed, stock, far)
	}
	flushSpans(t, killed, stock)
	w.receivers["recv-b"].signal(syscall.SIGKILL)
	w.receivers["recv-b"].code()
	alone, depot := w.sender("web-alone", "us-east", "recv-a"), w.sender("depot", "us-west-2", "recv-a")
	for range 30 {
		tracedCall(alone, depot, far)
	}
	flushSpans(t, alone, depot)
	eventually(t, "the other to make the calls", func() bool { return w.receivers["recv-a"].count("penstock_otlp_spans_open") == 0 })
	w.receive("recv-b")
	c := connect(t, "nats://"+w.bus, "")
	w.passed(c, time.Now())

	// Both are stopped under calls that they have just taken.
	last, till := w.sender("web-last", "us-west-2", "recv-a"), w.sender("till", "us-east", "recv-a")
	for range 50 {
		tracedCall(last, till, far)
	}
	flushSpans(t, last, till)
	w.receivers["recv-b"].stop()
	w.receivers["recv-a"].stop()

	a := w.account(c)
	if a.Late+a.Malformed+a.Quarantined+a.Duplicate+a.LostBatches > 0 {
		t.Errorf("the account is %+v", a)
	}
	closeWindows(t, c)
	got := delayLinks(t, c)
	us := func(n int64, d time.Duration) int64 { return n * d.Microseconds() }
	for l, n := range map[tracedLink]int64{
		{"", "us-east", "web", "us-east"}: 60 + 40 + 30, {"", "us-west", "web", "us-west"}: 50,
		{"web", "us-east", "cart", "us-east"}: 60, {"web", "us-east", "cart", "us-west"}: 40, {"web", "us-west", "cart", "us-west"}: 50,
		{"web", "us-east", "search", "us-west"}:      30,
		{"", "us-east", "web-alone", "us-east"}:      30,
		{"web-alone", "us-east", "depot", "us-west"}: 30,
		{"", "us-west", "web-last", "us-west"}:       50,
		{"web-last", "us-west", "till", "us-east"}:   50,
	} {
		want := linkTotal{requests: n, service: us(n, ownTime)} // its own time, without the call
		if l.from != "" {
			want.service, want.network = us(n, callTime), us(n, far)
			if l.fromSite == l.toSite {
				want.network = us(n, near)
			}
		}
		if got[l] != want {
			t.Errorf("%v: got %+v, expected %+v", l, got[l], want)
		}
		delete(got, l)
	}
	for _, l := range []tracedLink{{"", "us-east", "web-killed", "us-east"}, {"web-killed", "us-east", "stock", "us-west"}} {
		n := got[l].requests
		t.Logf("%v: %d of 50 calls outlived the receiver", l, n)
		if n > 50 {
			t.Errorf("%v: %d calls of 50", l, n)
		}
		delete(got, l)
	}
	if len(got) > 0 {
		t.Errorf("there are links of which nobody knows: %v", got)
	}
	w.server.stop()
	w.audited()
}
