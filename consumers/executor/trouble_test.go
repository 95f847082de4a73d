package executor_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// TestBusAway: a bus that is away for a while in the middle uses no delivery up.
func TestBusAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "o", "x")
	r.put("a", "p", "x")
	r.send(command(1, control.Move{Owner: "o", From: "a", To: "b", Version: 1}))
	m := r.mover("m", filepath.Join(t.TempDir(), "m"))
	s := &slow{Target: m, started: make(chan uint64, 10), release: make(chan struct{})}
	stop := r.run(executor.Options{Target: s, Workers: 1})
	<-s.started
	r.bus.Suspend()
	close(s.release)
	time.Sleep(2 * time.Second) // the blip of P24
	ok(t, r.bus.Resume())
	if o := r.outcomes(1)[0]; o.Status != control.Done {
		t.Errorf("outcome %+v", o)
	}
	r.send(command(2, control.Move{Owner: "p", From: "a", To: "b", Version: 1}))
	r.outcomes(1)
	r.settled(moverConsumer)
	ok(t, stop())
	if n := r.counts.of("redelivered"); n > 1 {
		t.Errorf("%d deliveries were used up", n)
	}
}

// TestConsumerLost: a consumer that somebody deleted, or that has to be made
// again, leaves no gap.
func TestConsumerLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stop := r.run(executor.Options{Target: r.mover("m", t.TempDir()), Stall: 200 * time.Millisecond})
	for i := range 3 {
		owner := fmt.Sprintf("o%d", i)
		r.put("a", owner, "x")
		r.send(command(uint64(i+1), control.Move{Owner: owner, From: "a", To: "b", Version: 1}))
		if o := r.outcomes(1)[0]; o.Owner != owner || o.Status != control.Done {
			t.Errorf("outcome %+v", o)
		}
		r.settled(moverConsumer)
		ok(t, r.c.JS.DeleteConsumer(t.Context(), r.c.Stream(subject.CommandsStream), moverConsumer))
	}
	ok(t, stop())
	if n := r.counts.of("stalled"); n < 2 {
		t.Errorf("subscribed anew %d times", n)
	}
	if n := r.counts.of("outcomes"); n != 3 {
		t.Errorf("%d outcomes", n)
	}
}

// TestStop: a stop under load finishes and acknowledges what is in flight; what
// comes after a restart has never been delivered before (PROBLEMS P25). And a
// command that takes far longer than AckWait is not given to another (P20).
func TestStop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 6 {
		owner := fmt.Sprintf("o%d", i)
		r.put("a", owner, "x")
		r.send(command(uint64(i+1), control.Move{Owner: owner, From: "a", To: "b", Version: 1}))
	}
	folder := t.TempDir()
	m := r.mover("m", folder)
	s := &slow{Target: m, started: make(chan uint64, 10), release: make(chan struct{})}
	// Long enough for a machine that stands still between two signs of life.
	const ackWait = 4 * time.Second
	stop := r.run(executor.Options{Target: s, Workers: 2, AckWait: ackWait})
	<-s.started
	<-s.started
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	select {
	case err := <-stopped:
		t.Fatalf("stopped with commands in flight: %v", err)
	case n := <-s.started:
		t.Fatalf("command %d started while two are in flight", n)
	case <-time.After(ackWait + ackWait/2):
	}
	close(s.release)
	ok(t, <-stopped)
	if n := len(r.outcomes(2)); n != 2 {
		t.Fatal(n)
	}
	ok(t, m.Close())
	stop = r.run(executor.Options{Target: r.mover("m", folder), Workers: 2, AckWait: ackWait})
	r.outcomes(4)
	r.settled(moverConsumer)
	ok(t, stop())
	if n := r.counts.of("redelivered"); n != 0 {
		t.Errorf("%d commands were delivered again", n)
	}
}

// TestGrace: what does not end within the grace is cut off, said so, and done by
// the next.
func TestGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "o", "x")
	r.send(command(1, control.Move{Owner: "o", From: "a", To: "b", Version: 1}))
	folder := t.TempDir()
	m := r.mover("m", folder)
	s := &slow{Target: m, started: make(chan uint64, 10), release: make(chan struct{})}
	stop := r.run(executor.Options{Target: s, Grace: 10 * time.Millisecond, AckWait: 300 * time.Millisecond})
	<-s.started
	if err := stop(); !errors.Is(err, executor.ErrGrace) {
		t.Errorf("stopped with %v", err)
	}
	ok(t, m.Close())
	stop = r.run(executor.Options{Target: r.mover("m", folder)})
	if o := r.outcomes(1)[0]; o.Status != control.Done {
		t.Errorf("outcome %+v", o)
	}
	r.settled(moverConsumer)
	ok(t, stop())
}
