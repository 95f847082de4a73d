package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestCoreDoesAsThePlainRule: whatever arrives, ends, fails and gives up, in any order.
func TestCoreDoesAsThePlainRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &twins{t: t, requests: map[string]*Request{}}
		w.plain = &plain{
			connections: rapid.IntRange(1, 6).Draw(t, "connections"), most: rapid.IntRange(1, 4).Draw(t, "most"),
		}
		w.plain.background = rapid.IntRange(1, max(1, w.plain.connections-1)).Draw(t, "background")
		w.plain.patience = rapid.IntRange(1, 4).Draw(t, "patience")
		w.core = NewCore(CoreOptions{
			Connections: w.plain.connections, MaxWaiting: w.plain.most, Background: w.plain.background, Chooser: w,
			Patience: w.plain.patience,
		})
		t.Repeat(map[string]func(*rapid.T){
			"arrive": w.arrive, "arrive too": w.arrive, "done": w.done, "done too": w.done, "extend": w.extend, "abandon": w.abandon, "": w.check,
		})
		w.drain()
	})
}

// twins is a core and the plain rule, to which the same happens.
type twins struct {
	t        *rapid.T
	core     *Core
	plain    *plain
	requests map[string]*Request
	admits   int
	log      []string
	refused  uint64
	starts   uint64
}

func (w *twins) Arrived(backlog int) {
	if n := len(w.plain.inLine(false)); n != backlog {
		w.t.Fatalf("the chooser is told of %d that wait, there are %d", backlog, n)
	}
}

// Choose sees the rule of admission kept: a connection is idle, and no task is queued.
func (w *twins) Choose(_ Op, idle int) Code {
	if s := w.core.State(); idle < 1 || idle != w.plain.connections-s.InUse || s.Queued != 0 {
		w.t.Fatalf("admitted with %d idle: %+v", idle, s)
	}
	return Code{Hedge: time.Second} // used by those whose plan says so
}

func (w *twins) arrive(t *rapid.T) {
	p := &plainRequest{
		name: fmt.Sprintf("r%d", w.admits), background: rapid.Bool().Draw(t, "background"), keep: rapid.Bool().Draw(t, "keep"),
		finish: rapid.Bool().Draw(t, "finish"), planErr: rapid.IntRange(0, 9).Draw(t, "err") == 0,
		n: rapid.IntRange(0, 6).Draw(t, "n"), k: rapid.IntRange(0, 4).Draw(t, "k"), more: rapid.IntRange(0, 3).Draw(t, "more"),
	}
	p.hedge = !p.background && rapid.Bool().Draw(t, "hedge")
	w.admits++
	more := p.more
	r := &Request{Background: p.background, Keep: p.keep, Data: p.name}
	if p.finish {
		r.Rest = Finish
	}
	r.Plan = func(Code) Plan {
		if !p.hedge {
			r.code.Hedge = 0
		}
		plan := Plan{Tasks: make([]Task, p.n), Need: p.k}
		if p.planErr {
			plan.Err = errTest
		}
		return plan
	}
	r.More = func() (Task, bool) { more--; return Task{}, more >= 0 }
	accepted := w.core.Arrive(r)
	if accepted != w.plain.arrive(p) {
		t.Fatalf("%s accepted: %v", p.name, accepted)
	}
	if !accepted {
		w.refused++
		return
	}
	w.requests[p.name] = r
	w.settle()
}

// done ends one of the tasks that run.
func (w *twins) done(t *rapid.T) {
	running := w.plain.tasks(-1, "runs", "told")
	if len(running) == 0 {
		t.Skip("nothing runs") // This step of the drawn course; the test goes on with another.
	}
	x := rapid.SampledFrom(running).Draw(t, "task")
	w.end(x, rapid.Bool().Draw(t, "ok"))
}

func (w *twins) end(x plainTask, ok bool) {
	task := w.requests[x.r.name].first
	for range x.i {
		task = task.sibling
	}
	if told := x.is("told"); told != task.Cancelled() {
		w.t.Fatalf("%v was told to end: %v", x, task.Cancelled())
	}
	var err error
	if !ok {
		err = errTest
	}
	w.core.Done(task, err)
	w.plain.done(x, ok)
	w.settle()
}

func (w *twins) one(t *rapid.T) (*Request, *plainRequest) {
	if len(w.plain.requests) == 0 {
		t.Skip("nobody has come") // As above.
	}
	p := rapid.SampledFrom(w.plain.requests).Draw(t, "request")
	return w.requests[p.name], p
}

func (w *twins) extend(t *rapid.T) {
	r, p := w.one(t)
	w.core.Extend(r)
	w.plain.extend(p)
	w.settle()
}

func (w *twins) abandon(t *rapid.T) {
	r, p := w.one(t)
	w.core.Abandon(r, errTest)
	w.plain.abandon(p)
	w.settle()
}

// settle lets both do all they can.
func (w *twins) settle() {
	w.plain.pump()
	for {
		w.events()
		t, ok := w.core.Next()
		w.events()
		if !ok {
			return
		}
		w.starts++
		w.log = append(w.log, "start "+nameOf(t))
	}
}

func (w *twins) events() {
	for e, ok := w.core.Event(); ok; e, ok = w.core.Event() {
		line := fmt.Sprintf("%s %s", e.Kind, e.Request.Data)
		switch e.Kind {
		case Cancelled:
			line = "cancelled " + nameOf(e.Task)
		case Finished:
			line = fmt.Sprintf("%s %v", line, e.Request.Err() == nil)
		}
		w.log = append(w.log, line)
	}
}

// check compares what happened and how both stand.
func (w *twins) check(t *rapid.T) {
	if !slices.Equal(w.log, w.plain.log) {
		t.Fatalf("the core did\n%s\nby the plain rule it is\n%s", strings.Join(w.log, "\n"), strings.Join(w.plain.log, "\n"))
	}
	w.log, w.plain.log = w.log[:0], w.plain.log[:0]
	got, p := w.core.State(), w.plain
	want := State{
		Counts: got.Counts, Backlog: len(p.inLine(false)), Queued: len(p.queues[front]), InUse: len(p.tasks(-1, "runs", "told")),
		BackgroundBacklog: len(p.inLine(true)), BackgroundQueued: len(p.queues[behind]), BackgroundInUse: len(p.tasks(behind, "runs", "told")),
	}
	for _, r := range p.requests {
		if !r.waits && !r.hasEnded {
			want.Alive++
		}
	}
	if got != want {
		t.Fatalf("state %+v, expected %+v", got, want)
	}
}

// drain ends all that runs until nothing is left, and then everything adds up: whoever
// arrived was finished once, and every task was started and ended, or dropped.
func (w *twins) drain() {
	for running := w.plain.tasks(-1, "runs", "told"); len(running) > 0; running = w.plain.tasks(-1, "runs", "told") {
		w.end(running[0], false)
	}
	w.check(w.t)
	s := w.core.State()
	if s.Backlog+s.BackgroundBacklog+s.Queued+s.BackgroundQueued+s.InUse+s.Alive > 0 {
		w.t.Fatalf("left: %+v", s)
	}
	tasks := 0
	for _, r := range w.plain.requests {
		tasks += len(r.tasks)
	}
	if s.Arrived != s.Finished+s.Broken || s.Arrived != uint64(len(w.requests)) || s.Refused != w.refused ||
		s.Done+s.Failed+s.Cancelled != w.starts || w.starts+s.Dropped != uint64(tasks) {
		w.t.Fatalf("%d started of %d: %+v", w.starts, tasks, s)
	}
}

// TestDoneOfATaskThatDoesNotRun is a fault of the caller, and none that is passed over.
func TestDoneOfATaskThatDoesNotRun(t *testing.T) {
	t.Parallel()
	c := NewCore(CoreOptions{Chooser: Fixed{N: 1, K: 1}})
	c.Arrive(&Request{Plan: func(Code) Plan { return Plan{Tasks: make([]Task, 1), Need: 1} }})
	task, _ := c.Next()
	c.Done(task, nil)
	defer func() {
		if recover() == nil {
			t.Error("a task ended twice")
		}
	}()
	c.Done(task, nil)
}

// TestTheRecordOfATask has the plan's code, or the task's own.
func TestTheRecordOfATask(t *testing.T) {
	t.Parallel()
	c := NewCore(CoreOptions{Connections: 8, Chooser: Fixed{N: 9, K: 9}})
	r := &Request{
		Plan: func(Code) Plan { return Plan{Tasks: []Task{{}, {N: 7, K: 5}, {}}, Need: 2} },
		More: func() (Task, bool) { return Task{}, true },
	}
	c.Arrive(r)
	codes := func() (out [][2]int) {
		for task, ok := c.Next(); ok; task, ok = c.Next() {
			out = append(out, [2]int{task.N, task.K})
		}
		return out
	}
	if got := codes(); !slices.Equal(got, [][2]int{{3, 2}, {7, 5}, {3, 2}}) {
		t.Errorf("%v", got)
	}
	c.Done(r.first, errTest)
	if got := codes(); !slices.Equal(got, [][2]int{{3, 2}}) {
		t.Errorf("another: %v", got)
	}
}
