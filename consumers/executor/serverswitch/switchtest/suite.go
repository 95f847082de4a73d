package switchtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor/serverswitch"
)

// generous bounds what a backend is given time for.
const generous = 60 * time.Second

// World is a backend with two servers of one site, which are both on.
type World struct {
	Backend serverswitch.Backend
	Servers [2]serverswitch.Server
	// On says what a server really is.
	On func(server string) bool
	// Sees says that Observe can tell.
	Sees bool
	// Cut makes what the backend calls unreachable; it returns what takes that back.
	Cut func() (restore func())
	// Hold sends a request to a server that runs until it is released; for a Drainer.
	Hold func(server string) (release func())
}

// orders makes orders, and knows what is to run.
type orders struct {
	mu     sync.Mutex
	number int
	wanted map[string]bool
}

func (o *orders) of(s serverswitch.Server, on bool) serverswitch.Order {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.number++
	o.wanted[s.Name] = on
	up := func() []string {
		o.mu.Lock()
		defer o.mu.Unlock()
		var names []string
		for name, on := range o.wanted {
			if on {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	return serverswitch.Order{Server: s, On: on, Epoch: 7, Key: fmt.Sprint("key ", o.number), Up: up, Wanted: up}
}

// Run runs the suite, each part in a world of its own.
func Run(t *testing.T, open func(t *testing.T) World) {
	for name, part := range map[string]func(ctx context.Context, t *testing.T, w World, o *orders){
		"switches": switches, "unreachable": unreachable, "its context ends": contextEnds, "at once": atOnce, "drains": drains,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), generous)
			defer cancel()
			w := open(t)
			o := &orders{wanted: map[string]bool{w.Servers[0].Name: true, w.Servers[1].Name: true}}
			part(ctx, t, w, o)
		})
	}
}

// is checks what a server is, and what the backend says of it.
func (w *World) is(ctx context.Context, t *testing.T, s serverswitch.Server, on bool) {
	t.Helper()
	want := serverswitch.Unseen
	switch {
	case w.Sees && on:
		want = serverswitch.PowerOn
	case w.Sees:
		want = serverswitch.PowerOff
	}
	if got, err := w.Backend.Observe(ctx, s); err != nil || got != want {
		t.Errorf("%s is %v, %v; expected %v", s.Name, got, err, want)
	}
	if w.On(s.Name) != on {
		t.Errorf("%s is really on: %v", s.Name, !on)
	}
}

// switches: off and on, each twice, the second server first, the other left alone.
func switches(ctx context.Context, t *testing.T, w World, o *orders) {
	if w.Backend.Name() == "" {
		t.Error("no name")
	}
	for _, on := range []bool{true, false, false, true, true, false} {
		if err := w.Backend.Switch(ctx, o.of(w.Servers[1], on)); err != nil {
			t.Fatalf("%v: %v", on, err)
		}
		w.is(ctx, t, w.Servers[1], on)
		w.is(ctx, t, w.Servers[0], true)
	}
	if err := w.Backend.Switch(ctx, o.of(w.Servers[0], false)); err != nil {
		t.Fatal(err)
	}
	w.is(ctx, t, w.Servers[0], false)
}

// unreachable: that is an error, and changes nothing for later.
func unreachable(ctx context.Context, t *testing.T, w World, o *orders) {
	restore := w.Cut()
	if err := w.Backend.Switch(ctx, o.of(w.Servers[1], false)); err == nil {
		t.Error("it was switched")
	}
	if got, err := w.Backend.Observe(ctx, w.Servers[1]); got != serverswitch.Unseen || w.Sees && err == nil {
		t.Errorf("it is %v, %v", got, err)
	}
	restore()
	if err := w.Backend.Switch(ctx, o.of(w.Servers[1], false)); err != nil {
		t.Fatal(err)
	}
	w.is(ctx, t, w.Servers[1], false)
}

// contextEnds: nothing is done then.
func contextEnds(ctx context.Context, t *testing.T, w World, o *orders) {
	ended, end := context.WithCancel(ctx)
	end()
	if err := w.Backend.Switch(ended, o.of(w.Servers[1], false)); err == nil {
		t.Error("it was switched")
	}
	if got, err := w.Backend.Observe(ended, w.Servers[1]); got != serverswitch.Unseen || w.Sees && err == nil {
		t.Errorf("it is %v, %v", got, err)
	}
	o.of(w.Servers[1], true)
	w.is(ctx, t, w.Servers[1], true)
}

// atOnce: orders for two servers don't disturb each other.
func atOnce(ctx context.Context, t *testing.T, w World, o *orders) {
	for round := range 6 {
		on := [2]bool{round%2 == 0, round%3 != 0}
		if !on[0] && on[1] {
			on[1] = false // a StatefulSet could not
		}
		var group sync.WaitGroup
		for i, s := range w.Servers {
			order := o.of(s, on[i])
			group.Go(func() {
				if err := w.Backend.Switch(ctx, order); err != nil {
					t.Errorf("%s: %v", s.Name, err)
				}
			})
		}
		group.Wait()
		for i, s := range w.Servers {
			w.is(ctx, t, s, on[i])
		}
	}
}

// drains: what runs goes on, and is counted; a drain can be taken back.
func drains(ctx context.Context, t *testing.T, w World, o *orders) {
	d, some := w.Backend.(serverswitch.Drainer)
	if !some {
		return
	}
	s := w.Servers[1]
	release := w.Hold(s.Name)
	running := func(want int) {
		t.Helper()
		for {
			n, err := d.Running(ctx, s)
			if err != nil {
				t.Fatalf("%d run, %v; expected %d", n, err, want)
			}
			if n == want {
				return
			}
		}
	}
	running(1)
	for range 2 {
		if err := d.Drain(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	running(1)
	release()
	running(0)
	for range 2 {
		if err := d.Undrain(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	w.is(ctx, t, s, true)
	release = w.Hold(s.Name) // it gets requests again
	release()
	if err := d.Drain(ctx, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Backend.Switch(ctx, o.of(s, false)); err != nil {
		t.Fatal(err)
	}
	w.is(ctx, t, s, false)
	restore := w.Cut()
	defer restore()
	_, err := d.Running(ctx, s)
	if d.Drain(ctx, s) == nil || d.Undrain(ctx, s) == nil || err == nil {
		t.Error("unreachable, and nothing failed")
	}
}
