package main

import (
	"math"
	"net/http"
	"regexp"
	"testing"
	"time"
)

var switching = regexp.MustCompile(`(?m)^server switch at [^;\n]*?(?:; metrics and health at (\S+))?\n`)

// TestAPoolBehindThreeEntryPoints is what issue 7 asks of a live pool: three entry points
// share five servers, which are processes, as they are. One gets ten times slower, one is killed, an
// entry point is killed and another one joins, and a server is added by the server switch.
// What servers count themselves tells that none ever has more than it may.
func TestAPoolBehindThreeEntryPoints(t *testing.T) {
	t.Parallel()
	const (
		most = 6
		ramp = 4 * time.Second
	)
	w := newPool(t, poolSettings{servers: 5, entries: 4, section: `
servers:
  policy: auto
  in_service: 6
  ramp: 4s
  trial: 1s
  classes: {other: {t_max: 300ms, penalty: 1}}
  switching: {policy: penalty, ready: /ready, hooks: [{kind: command, on: {hook}, off: {hook}}]}
`})
	for _, b := range w.boards {
		b.Delay.Store(int64(30 * time.Millisecond))
	}
	w.boards[4].Warm.Store(int64(500 * time.Millisecond))
	w.start(0, 1, 2, 3)
	w.serve()
	w.enter(0, 1, 2)
	w.switching("switch")
	w.put(1, []int{0, 1, 2, 3}, 3)
	v := visit(t, 15, 20*time.Millisecond, w.points[:3]...)
	w.more(300)

	// One gets slow.
	w.boards[0].Delay.Store(int64(300 * time.Millisecond))
	for at := time.Now(); time.Since(at) < time.Second; {
		before, quarter := w.begun(), time.Now()
		time.Sleep(250 * time.Millisecond)
		parts, n := sharesOf(before, w.begun())
		t.Logf("%v after server 0 got slow: %.0f %% of %d requests go there", quarter.Sub(at).Round(time.Millisecond), 100*parts[0], n)
	}
	slow := w.more(200)[0]
	t.Logf("a second after server 0 got slow, %.1f %% of the requests go there", 100*slow)
	if slow > 0.15 {
		t.Errorf("a second after a server got ten times slower it gets %.1f %% of the requests, expected at most 15 %%", 100*slow)
	}
	w.boards[0].Delay.Store(int64(30 * time.Millisecond))
	fast := time.Now()
	eventually(t, "the server that is fast again to get requests again", func() bool { return w.more(100)[0] > 0.1 })
	t.Logf("its share came back %v after server 0 was fast again", time.Since(fast).Round(time.Millisecond))
	if f := v.failures(); len(f) > 0 {
		t.Fatalf("failed requests, and no server had failed: %+v", f)
	}

	// One dies, with requests in service.
	eventually(t, "posts in service at server 3", func() bool { return w.boards[3].Posts.Load() > 0 })
	died := time.Now()
	w.kill(3)
	posts, inside := w.boards[3].Posts.Load(), w.boards[3].Inside.Load()
	w.more(400)
	failed := v.failures()
	t.Logf("server 3 was killed with %d requests in service, %d of them POST; %d failed", inside, posts, len(failed))
	for _, f := range failed {
		// What had its place there and was about to be sent may have been taken by the
		// kernel: such a POST is in flight there too.
		if f.Method != http.MethodPost || f.At.After(died.Add(time.Second)) {
			t.Errorf("%+v", f)
		}
	}
	if len(failed) > most {
		t.Errorf("%d requests failed, at most %d were in flight", len(failed), most)
	}

	// An entry point dies, and another joins.
	v.killed(w.points[2])
	w.entries[2].kill()
	w.more(200)
	w.enter(3)
	v.joined(w.points[3])
	joined := w.boards[0].Begun.Load()
	eventually(t, "the new entry point to have places", func() bool {
		n, _ := w.entries[3].metric("penstock_dispatcher_places", `server="`+w.names[0]+`"`)
		return n > 0
	})
	w.more(200)
	t.Logf("%d requests at server 0 since an entry point joined", w.boards[0].Begun.Load()-joined)

	// A server is added: the switch starts its process.
	if w.runs(4) || w.boards[4].Begun.Load() > 0 {
		t.Fatal("server 4 runs, and nobody has turned it on")
	}
	w.put(2, []int{0, 1, 2, 4}, 3)
	before := w.begun()
	eventually(t, "requests at the new server", func() bool { return w.boards[4].Begun.Load() > 0 })
	_, n := sharesOf(before, w.begun())
	t.Logf("the new server's first request came after %d others", n)
	const fair = 1. / 4
	all, began := w.begun(), time.Now()
	for time.Since(began) < ramp-time.Second {
		before, at := w.begun(), time.Now()
		time.Sleep(500 * time.Millisecond)
		parts, n := sharesOf(before, w.begun())
		t.Logf("%v into the ramp: %.1f %% of %d requests go to the new server", at.Sub(began).Round(time.Millisecond), 100*parts[4], n)
		if limit := fair + 3*math.Sqrt(fair*(1-fair)/float64(max(n, 1))); parts[4] > limit {
			t.Errorf("%.1f %% of %d requests, in the ramp: at most %.1f %% are fair", 100*parts[4], n, 100*limit)
		}
	}
	parts, n := sharesOf(all, w.begun())
	t.Logf("in the ramp %.1f %% of %d requests went to the new server", 100*parts[4], n)
	if parts[4] == 0 || parts[4] > fair {
		t.Errorf("in the ramp %.1f %% of %d requests went to the new server, expected some, and at most %.0f %%", 100*parts[4], n, 100*fair)
	}
	eventually(t, "the new server to have its share", func() bool { return w.more(200)[4] > 0.7*fair })
	if early := w.boards[4].Early.Load(); early > 0 {
		t.Errorf("%d requests came to the new server before it was ready", early)
	}
	v.end()
	if late := v.failures()[len(failed):]; len(late) > 0 {
		t.Errorf("%d requests failed after a server had died: %+v", len(late), late)
	}
	t.Logf("%d requests answered, %d lost with their entry point", v.Answered.Load(), v.lost)
	w.neverAbove(most)
	for _, i := range []int{0, 1, 3} {
		w.entries[i].stop()
	}
	w.neverAbove(most)
}
