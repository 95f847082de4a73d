package codes

import (
	"context"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/coder/queue"
	"penstock/consumers/executor/inforce"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// process is a coder's process as far as codes go.
type process struct {
	chooser *Chooser
	stop    func()
}

// follow starts a process at a bus and returns when its executor is ready: by then the
// last table is in force.
func follow(t *testing.T, b *bus.Client) *process {
	t.Helper()
	p := &process{chooser: chooser(t, always(control.CodingStatic, 1, 1), 0)}
	target, err := NewTarget(map[string]*Chooser{"objects": p.chooser}, inforce.Options{History: executor.History(b, control.Coding)})
	if err != nil {
		t.Fatal(err)
	}
	x, err := executor.New(executor.Options{Client: b, Target: target, Role: "coder-objects", Own: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- x.Run(ctx) }()
	go func() { done <- target.Run(ctx) }()
	p.stop = func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	for !x.Ready() {
		if err := clock.System().Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestOverTheBus sends tables over a bus to a coder, stops its process and starts
// another: the table is in force before the executor is ready, and each epoch has one
// outcome.
func TestOverTheBus(t *testing.T) {
	t.Parallel()
	b := bustest.Client(t, bustest.Start(t))
	outcomes, err := b.Read(t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf("coding")}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer outcomes.Close()
	send := func(c *control.Command) {
		t.Helper()
		body, err := control.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Publish(t.Context(), bus.Msg{Subject: subject.Commands("coding", c.Scope), Data: body}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(p *process, coder string, epoch uint64, status control.Status, code queue.Code) {
		t.Helper()
		o, err := control.DecodeOutcome(bustest.Take(t, outcomes, 1)[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		if o.Scope != coder || o.Epoch != epoch || o.Status != status || o.Target != "coder" {
			t.Errorf("outcome %+v", o)
		}
		if got := p.chooser.Choose(queue.Read, 16); got != code {
			t.Errorf("epoch %d: code %+v, expected %+v", epoch, got, code)
		}
	}
	p := follow(t, b)
	send(order("objects", 1, control.Act, "10m", 4, 2))
	expect(p, "objects", 1, control.Done, c(4, 2))
	send(order("objects", 2, control.Advise, "10m", 6, 3))
	expect(p, "objects", 2, control.Advised, c(4, 2))
	send(order("elsewhere", 1, control.Act, "10m", 6, 3))
	expect(p, "elsewhere", 1, control.Advised, c(4, 2))
	p.stop()
	send(order("objects", 3, control.Act, "10m", 6, 3)) // while nobody is there
	p = follow(t, b)
	if got := p.chooser.Choose(queue.Read, 16); got != c(6, 3) {
		t.Errorf("after a restart: %+v", got)
	}
	expect(p, "objects", 3, control.Done, c(6, 3))
	p.stop()
}
