package simcoder_test

import (
	"errors"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/executor/coder/queue"
	"penstock/pipeline/experiment/coding/simcoder"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// observer is a policy that sends a table at every window, and adds up what it is shown.
type observer struct {
	decider.Policy
	windows []control.Window
	tasks   map[string]int64 // by outcome
	bytes   int64
}

func (*observer) Width() time.Duration { return 10 * time.Second }

func (p *observer) Decide(in decider.Input) decider.Output {
	p.windows = append(p.windows, in.Window)
	t := in.Tables[window.Storage.Name]
	for i := range t.Len() {
		p.tasks[t.Key("outcome").At(i)] += t.Column("tasks")[i]
		p.bytes += t.Column("bytes")[i]
	}
	return decider.Output{Commands: []control.Command{{Coding: &control.CodingTable{Policy: control.CodingGreedy}}}}
}

// TestLoop: every task that ended is in one window, with the bytes that it was asked
// for, and a table is in force the feedback after a window's end, by the run's clock.
func TestLoop(t *testing.T) {
	p := &observer{tasks: map[string]int64{}}
	at := simcoder.NewClock()
	began := at.Now()
	var installed []time.Duration
	o := options(4, 2, 20)
	o.Clock, o.Until, o.Bin, o.Requests, o.Warm = at, 45*time.Second, time.Second, 0, 0
	o.Loop = &simcoder.Loop{Policy: p, Store: "east", Feedback: 3 * time.Second, Install: func(when time.Duration, _ *control.CodingTable) error {
		if got := at.Now().Sub(began); got != when {
			t.Errorf("installed at %v, the clock says %v", when, got)
		}
		installed = append(installed, when)
		return nil
	}}
	out := run(t, o)
	if at.Now().Sub(began) != o.Until {
		t.Errorf("the clock ends at %v", at.Now().Sub(began))
	}
	if len(p.windows) != 4 || out.Tables != 4 || p.windows[3].End.Sub(began) != 40*time.Second {
		t.Errorf("windows %v, %d tables", p.windows, out.Tables)
	}
	for i, when := range installed {
		if want := time.Duration(i+1)*10*time.Second + o.Loop.Feedback; when != want {
			t.Errorf("table %d at %v, expected %v", i, when, want)
		}
	}
	answered := int64(0)
	for _, b := range out.Course[:40] {
		answered += int64(b.Answered)
	}
	// Two tasks of each answered request were done, two cancelled; a task of one more or
	// less may have been done at the end.
	if done := p.tasks["done"]; done < 2*answered || done > 2*answered+16 || p.tasks["cancelled"] != 2*answered || p.bytes != 1_500_000*(done+p.tasks["cancelled"]) {
		t.Errorf("%v tasks with %d bytes of %d requests", p.tasks, p.bytes, answered)
	}
	bad := errors.New("not this one")
	o.Loop.Install = func(time.Duration, *control.CodingTable) error { return bad }
	o.Chooser, o.Clock = queue.Fixed{N: 1, K: 1}, simcoder.NewClock()
	if _, err := simcoder.Run(t.Context(), o); !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
}
