package executor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/locations"
	"penstock/consumers/executor/mover"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/schemas/control"
	"penstock/schemas/reject"
	"penstock/schemas/subject"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// counts is a Metrics.
type counts struct {
	mu sync.Mutex
	n  map[string]int64
}

func (c *counts) Count(k executor.Counter, reason string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int64{}
	}
	c.n[string(k)] += n
	c.n[string(k)+" "+reason] += n
}

func (c *counts) of(what string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[what]
}

// rig is a bus with two sites.
type rig struct {
	t      testing.TB
	bus    *bus.Bus
	c      *bus.Client
	stores map[string]objectstore.Store
	counts counts
	answer *bus.Reader
}

func newRig(t testing.TB, opts ...bustest.Option) *rig {
	b := bustest.Start(t, opts...)
	r := &rig{t: t, bus: b, c: bustest.Client(t, b), stores: map[string]objectstore.Store{}}
	for _, site := range []string{"a", "b"} {
		s, err := dir.Open(t.TempDir(), dir.Options{NoSync: true})
		ok(t, err)
		r.stores[site] = s
	}
	out, err := r.c.Read(t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf("placement")}, 1)
	ok(t, err)
	t.Cleanup(out.Close)
	r.answer = out
	return r
}

// run starts an executor; stop ends it and returns its error.
func (r *rig) run(o executor.Options) (stop func() error) {
	r.t.Helper()
	o.Client, o.Metrics = r.c, &r.counts
	x, err := executor.New(o)
	ok(r.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	var once sync.Once
	var ended error
	stop = func() error {
		once.Do(func() { cancel(); ended = <-done })
		return ended
	}
	r.t.Cleanup(func() { _ = stop() })
	return stop
}

func (r *rig) mover(name, folder string) *mover.Mover {
	r.t.Helper()
	table, err := locations.Open(r.t.Context(), r.c)
	ok(r.t, err)
	m, err := mover.New(mover.Options{
		Name: name, Dir: folder, Locations: table, Stores: r.stores, NoSync: true, Metrics: &r.counts,
	})
	ok(r.t, err)
	r.t.Cleanup(func() { _ = m.Close() })
	return m
}

func command(epoch uint64, moves ...control.Move) *control.Command {
	end := time.Date(2015, 5, 17, 10, 0, 0, 0, time.UTC)
	return &control.Command{
		Version: 1, Kind: control.Placement, Scope: moves[0].To, Epoch: epoch, Mode: control.Act, TTL: "24h",
		Window: control.Window{Start: end.Add(-time.Hour), End: end}, Placement: &control.Moves{Moves: moves},
	}
}

func (r *rig) send(c *control.Command) uint64 {
	r.t.Helper()
	b, err := control.Encode(c)
	ok(r.t, err)
	seq, err := r.c.Publish(r.t.Context(), bus.Msg{Subject: subject.Commands(string(c.Kind), c.Scope), Data: b})
	ok(r.t, err)
	return seq
}

func (r *rig) put(site, owner, content string) {
	r.t.Helper()
	_, err := r.stores[site].Put(r.t.Context(), owner, "object", strings.NewReader(content), objectstore.Mark{})
	ok(r.t, err)
}

func (r *rig) outcomes(n int) []*control.Outcome {
	r.t.Helper()
	var out []*control.Outcome
	for _, m := range bustest.Take(r.t, r.answer, n) {
		o, err := control.DecodeOutcome(m.Data)
		ok(r.t, err)
		out = append(out, o)
	}
	return out
}

// settled waits until no command of the consumer is pending or unacknowledged.
func (r *rig) settled(consumer string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), bustest.Timeout)
	defer cancel()
	for {
		c, err := r.c.JS.Consumer(ctx, r.c.Stream(subject.CommandsStream), consumer)
		if err == nil {
			info := c.CachedInfo()
			if info.NumPending == 0 && info.NumAckPending == 0 {
				return
			}
		}
		if ctx.Err() != nil {
			r.t.Fatalf("commands are left: %v", err)
		}
	}
}

const moverConsumer = "placement-mover"

// TestWaitingCommands: a mover that was off for 100 windows answers every move
// once when it comes (Must show 7), on a bus with a prefix.
func TestWaitingCommands(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *bus.Options) { o.Prefix = "P" })
	const windows, owners = 100, 3
	for w := range windows {
		var moves []control.Move
		for o := range owners {
			owner := fmt.Sprintf("owner %d-%d@example.com", w, o)
			r.put("a", owner, "content")
			moves = append(moves, control.Move{Owner: owner, From: "a", To: "b", Version: 1})
		}
		r.send(command(uint64(w+1), moves...))
	}
	stop := r.run(executor.Options{Target: r.mover("m", t.TempDir())})
	seen := map[string]bool{}
	for _, o := range r.outcomes(windows * owners) {
		if o.Status != control.Done || seen[o.Owner] {
			t.Errorf("outcome %+v (again: %v)", o, seen[o.Owner])
		}
		seen[o.Owner] = true
	}
	r.settled(moverConsumer)
	ok(t, stop())
	if state, err := r.c.State(t.Context(), subject.OutcomesStream); err != nil || state.Msgs != windows*owners {
		t.Errorf("%d outcomes on the bus, %v", state.Msgs, err)
	}
}

// TestFiveTimesTwoExecutors: a command sent five times to two executors has one
// effect and one outcome a move, the rest is counted (PROBLEMS P21).
func TestFiveTimesTwoExecutors(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const owners = 40
	var moves []control.Move
	for o := range owners {
		owner := fmt.Sprintf("owner-%d", o)
		r.put("a", owner, strings.Repeat(owner, 1000))
		moves = append(moves, control.Move{Owner: owner, From: "a", To: "b", Version: 1})
	}
	for range 5 {
		r.send(command(1, moves...))
	}
	stop1 := r.run(executor.Options{Target: r.mover("m1", t.TempDir()), Name: "m1"})
	stop2 := r.run(executor.Options{Target: r.mover("m2", t.TempDir()), Name: "m2"})
	for _, o := range r.outcomes(owners) {
		if o.Status != control.Done {
			t.Errorf("outcome %+v", o)
		}
	}
	r.settled(moverConsumer)
	ok(t, errors.Join(stop1(), stop2()))
	if state, err := r.c.State(t.Context(), subject.OutcomesStream); err != nil || state.Msgs != owners {
		t.Errorf("%d outcomes on the bus, %v", state.Msgs, err)
	}
	// A command that came once more, after trouble, is answered once more.
	again := r.counts.of("redelivered") + r.counts.of("returned")
	if n := r.counts.of("already_applied"); n < 4*owners || n > 4*owners && again == 0 {
		t.Errorf("%d counted already applied, want %d; %d commands came again", n, 4*owners, again)
	}
	for _, m := range moves {
		if mark, err := r.stores["b"].Stat(t.Context(), m.Owner); err != nil || mark.State != objectstore.Live {
			t.Errorf("%s at b: %v, %v", m.Owner, mark, err)
		}
	}
}

// TestPoison: what can't be decoded is parked once, with reason and sequence, and
// its neighbours are carried out (PROBLEMS P24).
func TestPoison(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "o", "x")
	wrong := command(1, control.Move{Owner: "o", From: "a", To: "b", Version: 1})
	wrong.Mode = control.Observe
	var bodies [][]byte
	b, err := control.Encode(wrong)
	ok(t, err)
	bodies = append(bodies, b, []byte("{"), []byte(`{"version":2,"kind":"placement"}`), []byte(`{"version":1,"kind":"split","ttl":"1m"}`))
	for _, body := range bodies {
		_, err := r.c.Publish(t.Context(), bus.Msg{Subject: "commands.placement.b", Data: body})
		ok(t, err)
	}
	last := r.send(command(2, control.Move{Owner: "o", From: "a", To: "b", Version: 1}))
	stop := r.run(executor.Options{Target: r.mover("m", t.TempDir())})
	if o := r.outcomes(1)[0]; o.Status != control.Done {
		t.Errorf("outcome %+v", o)
	}
	r.settled(moverConsumer)
	ok(t, stop())
	rejects, err := r.c.Read(t.Context(), subject.RejectsStream, nil, 1)
	ok(t, err)
	defer rejects.Close()
	wants := []string{
		"mode, expected act or advise", "body, expected a command that can be decoded",
		"version, expected 1", "mode, expected observe, advise or act",
	}
	for range bodies {
		m := bustest.Take(t, rejects, 1)[0]
		var seq int
		_, err := fmt.Sscan(m.Header[reject.HeaderCommandsSeq][0], &seq)
		ok(t, err)
		if m.Subject != "rejects.undecodable.placement-mover" || string(m.Data) != string(bodies[seq-1]) ||
			m.Header[reject.HeaderReason][0] != "undecodable" || m.Header[reject.HeaderSubject][0] != "commands.placement.b" {
			t.Errorf("parked %s %v %q", m.Subject, m.Header, m.Data)
		}
		if got := m.Header[reject.HeaderField][0] + ", expected " + m.Header[reject.HeaderExpected][0]; got != wants[seq-1] {
			t.Errorf("parked %q: field %s, want %s", m.Data, got, wants[seq-1])
		}
	}
	if n := r.counts.of("rejected undecodable"); n != int64(len(bodies)) || last != uint64(len(bodies)+1) {
		t.Errorf("%d rejected", n)
	}
}

// TestModesAndTTL: what is only advised or has expired moves nothing, and is
// answered; an advised version may come again in earnest.
func TestModesAndTTL(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "o", "x")
	c := command(1, control.Move{Owner: "o", From: "a", To: "b", Version: 1})
	c.Mode = control.Advise
	r.send(c)
	c.Epoch = 2
	r.send(c)
	late := command(3, control.Move{Owner: "p", From: "a", To: "b", Version: 1})
	late.TTL = "1ns"
	r.send(late)
	r.send(command(4, control.Move{Owner: "o", From: "a", To: "b", Version: 1}))
	stop := r.run(executor.Options{Target: r.mover("m", t.TempDir()), Workers: 1})
	var got []string
	for _, o := range r.outcomes(4) {
		got = append(got, o.Owner+" "+string(o.Status))
	}
	if want := "[o advised o advised p expired o done]"; fmt.Sprint(got) != want {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	r.settled(moverConsumer)
	ok(t, stop())
}

// slow is a target that waits to be told.
type slow struct {
	executor.Target
	started chan uint64
	release chan struct{}
}

func (s *slow) Apply(ctx context.Context, c *control.Command, answer executor.Answer) error {
	s.started <- c.Epoch
	select {
	case <-s.release:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.Target.Apply(ctx, c, answer)
}

// halfway is a target that answers one move failed and never comes to an end.
type halfway struct {
	executor.Target
	started chan struct{}
}

func (h *halfway) Apply(ctx context.Context, c *control.Command, answer executor.Answer) error {
	m := c.Placement.Moves[0]
	err := answer(ctx, control.Outcome{Scope: c.Scope, Owner: m.Owner, Move: m.Version, Status: control.Failed, Reason: "test"})
	close(h.started)
	<-ctx.Done()
	return errors.Join(err, ctx.Err())
}

// TestAnsweredElsewhere: a move that another executor has answered failed, before
// it died, is not done after all; the rest of its command is.
func TestAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *bus.Options) { o.Prefix = "P" })
	r.put("a", "o", "x")
	r.put("a", "p", "x")
	r.send(command(1,
		control.Move{Owner: "o", From: "a", To: "b", Version: 1},
		control.Move{Owner: "p", From: "a", To: "b", Version: 1}))
	h := &halfway{Target: r.mover("m1", t.TempDir()), started: make(chan struct{})}
	stop := r.run(executor.Options{Target: h, Grace: time.Millisecond, AckWait: 300 * time.Millisecond})
	<-h.started
	if err := stop(); !errors.Is(err, executor.ErrGrace) {
		t.Errorf("stopped with %v", err)
	}
	stop = r.run(executor.Options{Target: r.mover("m2", t.TempDir()), AckWait: 300 * time.Millisecond})
	got := r.outcomes(2)
	r.settled(moverConsumer)
	ok(t, stop())
	if got[0].Owner != "o" || got[0].Status != control.Failed || got[1].Owner != "p" || got[1].Status != control.Done {
		t.Errorf("outcomes %+v, %+v", got[0], got[1])
	}
	if mark, err := r.stores["b"].Stat(t.Context(), "o"); err != nil || mark.State != objectstore.Absent {
		t.Errorf("o at b: %v, %v", mark, err)
	}
	if n := r.counts.of("already_applied outcomes"); n != 1 {
		t.Errorf("%d known from outcomes", n)
	}
}
