package turn_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/serverswitch"
	"penstock/consumers/executor/serverswitch/turn"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

func TestMain(m *testing.M) { bustest.Main(m) }

const generous = 60 * time.Second

func take[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(generous):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// TestOneAtATime: who waits has the turn when the one before ends, when its key is another's,
// or when it can't renew it.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	has, causes, ended := make(chan string), make(chan error), make(chan error)
	run := func(name string) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			ended <- turn.Run(ctx, turn.Options{Client: c, Name: name, Renew: 10 * time.Millisecond}, func(ctx context.Context) error {
				has <- name
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return nil
			})
		}()
		return cancel
	}
	stops := map[string]func(){"a": run("a"), "b": run("b")}
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	first := take(t, has)
	stops[first]()
	if err := take(t, causes); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	if err := take(t, ended); err != nil {
		t.Error(err)
	}
	second := take(t, has)
	if first == second {
		t.Fatalf("%s has it twice", first)
	}
	kv, err := c.KV(t.Context(), subject.MembersKV)
	if err == nil {
		_, err = kv.Put(t.Context(), "turn.serverswitch", []byte("somebody"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := take(t, causes); !errors.Is(err, serverswitch.ErrTurn) {
		t.Errorf("taken away: %v", err)
	}
	if err := kv.Purge(t.Context(), "turn.serverswitch"); err != nil {
		t.Fatal(err)
	}
	if again := take(t, has); again != second {
		t.Errorf("%s has it", again)
	}
	if err := c.JS.DeleteKeyValue(t.Context(), c.Stream(subject.MembersKV)); err != nil {
		t.Fatal(err)
	}
	if err := take(t, causes); !errors.Is(err, serverswitch.ErrTurn) {
		t.Errorf("not renewed: %v", err)
	}
	stops[second]()
	if err := take(t, ended); err != nil {
		t.Error(err)
	}
	for _, o := range []turn.Options{{}, {Client: c}, {Client: c, Name: "a", Keep: time.Minute}, {Client: c, Name: "a", Renew: time.Minute}} {
		if err := turn.Run(t.Context(), o, nil); !errors.Is(err, turn.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestEnds with the error of what it runs.
func TestEnds(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	want := errors.New("broken")
	for range 2 { // the second need not wait for the first one's key to be forgotten
		if err := turn.Run(t.Context(), turn.Options{Client: c, Name: "a"}, func(context.Context) error { return want }); !errors.Is(err, want) {
			t.Error(err)
		}
	}
}

// machines are turned on and off, by whom is noted.
type machines struct {
	mu  sync.Mutex
	on  map[string]bool
	by  []string
	two bool // orders of two processes at once
	now int
}

type hooks struct {
	*machines
	process string
}

func (h hooks) Name() string { return "machines" }

func (h hooks) Switch(_ context.Context, o serverswitch.Order) error {
	h.mu.Lock()
	h.now++
	h.two = h.two || h.now > 1
	h.mu.Unlock()
	_ = clock.System().Sleep(context.Background(), time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now--
	h.on[o.Server.Name] = o.On
	h.by = append(h.by, fmt.Sprintf("%s: %s %v", h.process, o.Server.Name, o.On))
	return nil
}

func (h hooks) Observe(context.Context, serverswitch.Server) (serverswitch.Power, error) {
	return serverswitch.Unseen, nil
}

func (h hooks) ready(_ context.Context, s serverswitch.Server) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.on[s.Name] {
		return errors.New("off")
	}
	return nil
}

// process is one that has all: a turn, an executor, and a switch with a folder of its own.
func process(ctx context.Context, c *bus.Client, m *machines, name, folder string) error {
	h := hooks{m, name}
	o := serverswitch.Options{
		Folder: folder, Ready: h.ready, Drained: func(string, string, uint64) (bool, string) { return true, "" },
		History: executor.History(c, control.Servers), Look: time.Millisecond,
	}
	for _, server := range []string{"a", "b"} {
		o.Servers = append(o.Servers, serverswitch.Server{Name: server, Site: "east", Backend: h})
	}
	return turn.Run(ctx, turn.Options{Client: c, Name: name, Renew: 10 * time.Millisecond}, func(ctx context.Context) error {
		w, err := serverswitch.New(o)
		if err != nil {
			return err
		}
		x, err := executor.New(executor.Options{Client: c, Target: w, Role: "serverswitch", Workers: 3})
		if err != nil {
			return errors.Join(err, w.Close())
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		done := make(chan error, 1)
		go func() { defer cancel(); done <- w.Run(ctx) }()
		err = x.Run(ctx)
		cancel()
		return errors.Join(err, <-done, w.Close())
	})
}

// TestOverTheBus: two processes of one role with folders of their own. Tables are carried
// out by one at a time and have one outcome each; who takes over knows the last one.
func TestOverTheBus(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	outcomes, err := c.Read(t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf("servers")}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer outcomes.Close()
	m := &machines{on: map[string]bool{"a": true}}
	ended := make(chan error, 2)
	stops := map[string]func(){}
	for _, name := range []string{"one", "two"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stops[name] = cancel
		folder := t.TempDir()
		go func() { ended <- process(ctx, c, m, name, folder) }()
	}
	send := func(epoch uint64, mode control.Mode, on, off string) *control.Outcome {
		t.Helper()
		end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		body, err := control.Encode(&control.Command{
			Version: 1, Kind: control.Servers, Scope: "east", Epoch: epoch, Mode: mode, TTL: "10m", Window: control.Window{Start: end.Add(-time.Second), End: end},
			Reason:  control.Reason{Code: "Penalty"},
			Servers: &control.ServersTable{On: []string{on}, Off: []string{off}, ZoneWeights: map[string]float64{"east": 1}},
		})
		if err == nil {
			_, err = c.Publish(t.Context(), bus.Msg{Subject: subject.Commands("servers", "east"), Data: body})
		}
		if err != nil {
			t.Fatal(err)
		}
		o, err := control.DecodeOutcome(bustest.Take(t, outcomes, 1)[0].Data)
		if err != nil || o.Epoch != epoch || o.Target != control.SwitchTarget {
			t.Fatalf("%+v, %v", o, err)
		}
		return o
	}
	is := func(o *control.Outcome, status control.Status, on, off string) {
		t.Helper()
		m.mu.Lock()
		defer m.mu.Unlock()
		if o.Status != status || !m.on[on] || m.on[off] {
			t.Errorf("%+v; on are %v", o, m.on)
		}
	}
	is(send(1, control.Act, "b", "a"), control.Done, "b", "a")
	is(send(2, control.Advise, "a", "b"), control.Advised, "b", "a")
	m.mu.Lock()
	first, hookCount := m.by[0][:3], len(m.by)
	m.mu.Unlock()
	stops[first]()
	if err := take(t, ended); err != nil {
		t.Fatal(err)
	}
	is(send(3, control.Act, "a", "b"), control.Done, "a", "b")
	is(send(2, control.Act, "b", "a"), control.Refused, "a", "b")
	for _, stop := range stops {
		stop()
	}
	if err := take(t, ended); err != nil {
		t.Fatal(err)
	}
	if m.two {
		t.Error("two hooks at once")
	}
	for i, by := range m.by {
		if (by[:3] == first) != (i < hookCount) {
			t.Errorf("hooks %q", m.by)
		}
	}
}
