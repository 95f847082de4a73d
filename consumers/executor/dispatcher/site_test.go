package dispatcher

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A request has its place at once, or waits for it; who is done lets the next one in.
func TestPlaces(t *testing.T) {
	t.Parallel()
	w := begin(t, nil, zoneOf("z", "a", "b"))
	one, two, three := w.ask(Facts{Class: "static"}), w.ask(Facts{Class: "static"}), w.ask(Facts{Class: "static"})
	if one.at() != "a" || two.at() != "b" || !three.waits() {
		t.Fatalf("got %s and %s, the third waits: %v", one.at(), two.at(), three.waits())
	}
	w.expect("a:1+1 b:1+0 ")
	w.clock.Advance(300 * time.Millisecond)
	one.served(250 * time.Millisecond)
	one.served(time.Hour) // once is all that counts
	if three.at() != "a" || three.ticket.Waited() != 300*time.Millisecond {
		t.Errorf("got %s after %v", three.at(), three.ticket.Waited())
	}
	w.expect("a:1+0 b:1+0 ")
	w.clock.Advance(time.Second)
	three.served(900 * time.Millisecond)
	two.ticket.Done(Result{Gone: true})
	w.expect("")
	got := w.State().Counts
	want := Counts{Arrived: 3, Started: 3, Answered: 2, Gone: 1, Late: 1, Penalty: 0.2, Waited: 300 * time.Millisecond}
	if got.Penalty = float64(int(got.Penalty*1e6+0.5)) / 1e6; got != want {
		t.Errorf("counted %+v, expected %+v", got, want)
	}
}

// A client that leaves frees its place, in the queue and at a server.
func TestClientsLeave(t *testing.T) {
	t.Parallel()
	w := begin(t, nil, zoneOf("z", "a"))
	one, two, three := w.ask(Facts{}), w.ask(Facts{}), w.ask(Facts{})
	w.expect("a:1+2 ")
	two.cancel()
	two.await()
	if !errors.Is(two.err, context.Canceled) || two.ticket != nil {
		t.Errorf("got %v", two.err)
	}
	w.expect("a:1+1 ")
	one.ticket.Done(Result{Gone: true})
	if three.at() != "a" {
		t.Error("the third has no place")
	}
	three.served(0)
	if _, err := w.Admit(cancelled(), Facts{}); !errors.Is(err, errLeft) {
		t.Errorf("got %v, expected the cause", err)
	}
	if c := w.State().Counts; c.Left != 1 || c.Gone != 1 || c.Arrived != 3 {
		t.Errorf("counted %+v", c)
	}
}

var errLeft = errors.New("left")

func cancelled() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errLeft)
	return ctx
}

// What doesn't fit any more is told after what time to come again.
func TestFull(t *testing.T) {
	t.Parallel()
	w := begin(t, func(o *Options) { o.Queue = 1 }, zoneOf("z", "a"), zoneOf("y", "b"))
	var all []*asked
	for range 4 {
		all = append(all, w.ask(Facts{Class: "dynamic"}))
	}
	w.expect("a:1+1 b:1+1 ")
	_, err := w.Admit(t.Context(), Facts{Class: "dynamic"})
	var full *FullError
	if !errors.Is(err, ErrFull) || !errors.As(err, &full) || full.Wait < 0 {
		t.Fatalf("got %v", err)
	}
	for _, a := range all[:2] {
		w.clock.Advance(2 * time.Second)
		a.served(2 * time.Second) // now it is known how long they take
	}
	w.ask(Facts{Class: "dynamic"})
	w.ask(Facts{Class: "dynamic"})
	if _, err = w.Admit(t.Context(), Facts{Class: "dynamic"}); !errors.As(err, &full) || full.Wait < time.Second {
		t.Errorf("got %v, expected a wait of a second or more", err)
	}
	if c := w.State().Counts; c.Full != 2 {
		t.Errorf("counted %+v", c)
	}
}

// What waits for a server that must not be used any more is placed anew, in another zone
// if need be, and keeps waiting if there is none at all.
func TestServersDie(t *testing.T) {
	t.Parallel()
	w := begin(t, nil, zoneOf("z", "a", "b"), zoneOf("y", "c"))
	for range 6 {
		w.ask(Facts{})
	}
	w.expect("a:1+1 b:1+1 c:1+1 ")
	w.Usable([]string{"b", "c", "unknown"})
	w.expect("a:1+0 b:1+2 c:1+1 ")
	w.Usable([]string{"c"})
	w.expect("a:1+0 b:1+0 c:1+3 ")
	w.Usable(nil)
	w.expect("a:1+0 b:1+0 c:1+0 ")
	if st := w.State(); st.Homeless != 3 || st.Zones[0].Servers[0].State != StateUnusable {
		t.Errorf("got %+v", st)
	}
	if _, err := w.Admit(t.Context(), Facts{}); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v, expected no server", err)
	}
	for range 3 {
		w.next().served(0)
	}
	w.Usable([]string{"b"})
	w.expect("b:1+2 ")
	for range 3 {
		w.next().served(0)
	}
	if c := w.State().Counts; c.Started != 6 || c.NoServer != 1 || c.Left != 0 {
		t.Errorf("counted %+v", c)
	}
}

// Shares of M bind, also while more are in service than a share that has shrunk.
func TestShares(t *testing.T) {
	t.Parallel()
	sh := &shares{m: map[string]int{"a": 3}}
	w := begin(t, func(o *Options) { o.InService, o.Shares = 4, sh }, zoneOf("z", "a"))
	var all []*asked
	for range 5 {
		all = append(all, w.ask(Facts{}))
	}
	w.expect("a:3+2 ")
	sh.set("a", 1)
	all[0].served(0)
	all[1].served(0)
	w.expect("a:1+2 ")
	all[2].served(0)
	w.expect("a:1+1 ")
	sh.set("a", 0)
	all[3].served(0)
	w.expect("a:0+1 ")
	sh.set("a", 9) // no more than there are
	if all[4].at() != "a" || w.State().Zones[0].Servers[0].Share != 4 {
		t.Errorf("got %+v", w.State().Zones[0])
	}
	all[4].served(0)
}

// Zones that are gone give back what waits there, or refuse it.
func TestZonesChange(t *testing.T) {
	t.Parallel()
	w := begin(t, nil, zoneOf("z", "a"), zoneOf("y", "b"))
	var all []*asked
	for range 4 {
		all = append(all, w.ask(Facts{}))
	}
	w.expect("a:1+1 b:1+1 ")
	if err := w.Set([]Zone{zoneOf("y", "b", "c")}); err != nil {
		t.Fatal(err)
	}
	w.expect("b:1+1 c:1+0 a:1+0 ")
	w.Usable(nil)
	if err := w.Set([]Zone{zoneOf("x", "d")}); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, a := range all {
		if a.await(); a.err != nil {
			refused++
			if !errors.Is(a.err, ErrNoServer) {
				t.Error(a.err)
			}
			continue
		}
		a.served(0)
	}
	if refused != 1 {
		t.Errorf("%d are refused, expected the one that waited", refused)
	}
	w.Usable([]string{"d"})
	if d := w.ask(Facts{}); d.at() != "d" {
		t.Errorf("got %s", d.at())
	}
	if st := w.State(); len(st.Zones) != 1 || st.Counts.NoServer != 1 {
		t.Errorf("got %+v", st)
	}
	if err := w.Set(nil); !errors.Is(err, ErrOptions) {
		t.Errorf("got %v", err)
	}
}

// A server that has failed to answer gets a request again only if no other may.
func TestTriedServersAreAvoided(t *testing.T) {
	t.Parallel()
	w := begin(t, nil, zoneOf("z", "a"), zoneOf("y", "b", "c"))
	for _, test := range []struct {
		tried []string
		want  string
	}{
		{nil, "a"}, {[]string{"a"}, "b"}, {[]string{"a", "b"}, "c"}, {[]string{"b", "c"}, "a"}, {[]string{"c", "b", "a"}, "a"},
	} {
		a := w.ask(Facts{Tried: test.tried})
		if a.at() != test.want {
			t.Errorf("tried %v: got %s, expected %s", test.tried, a.at(), test.want)
		}
		a.served(time.Millisecond)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options){
		"no site":        func(o *Options) { o.Site = "" },
		"no server":      func(o *Options) { o.Zones = []Zone{{Name: "z"}} },
		"zone twice":     func(o *Options) { o.Zones = []Zone{zoneOf("z", "a"), zoneOf("z", "b")} },
		"server twice":   func(o *Options) { o.Zones = []Zone{zoneOf("z", "a"), zoneOf("y", "a")} },
		"weight":         func(o *Options) { o.Zones[0].Servers[0].Weight = -1 },
		"in service":     func(o *Options) { o.InService = -1 },
		"of a server":    func(o *Options) { o.Zones[0].Servers[0].InService = -1 },
		"queue":          func(o *Options) { o.Queue = -1 },
		"policy":         func(o *Options) { o.Policy = "best" },
		"first level":    func(o *Options) { o.Zone = "best" },
		"class twice":    func(o *Options) { o.Classes = []Class{{Name: "a"}, {Name: "a"}} },
		"limit":          func(o *Options) { o.Classes = []Class{{Name: "a", Limit: -1}} },
		"penalty":        func(o *Options) { o.Classes = []Class{{Name: "a", Penalty: -1}} },
		"no zone's name": func(o *Options) { o.Zones[0].Name = "" },
	} {
		o := Options{Site: "here", Zones: []Zone{zoneOf("z", "a")}}
		change(&o)
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestTrialsByDefault: servers that were slow are tried again, unless that is turned off or
// policies are to be literal.
func TestTrialsByDefault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    Options
		want time.Duration
	}{{Options{}, 10 * time.Second}, {Options{Trial: time.Second}, time.Second}, {Options{Trial: -1}, -1}, {Options{Trial: time.Second, Literal: true}, 0}} {
		c.o.Site, c.o.Zones = "a", []Zone{{Name: "z", Servers: []Server{{Name: "s"}}}}
		o, err := c.o.complete()
		if err != nil {
			t.Fatal(err)
		}
		if got := o.poolOptions().Trial; got != c.want {
			t.Errorf("%+v: tried after %v, expected %v", c.o, got, c.want)
		}
	}
}
