package lease_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/lease"
	"penstock/schemas/subject"
)

func TestMain(m *testing.M) { bustest.Main(m) }

const key = "work"

func wish(t *testing.T, b *bus.Bus, who string) *lease.Lease {
	t.Helper()
	l, err := lease.New(lease.Options{Client: bustest.Client(t, b), Key: key, Holder: who, Says: func() any { return who + " works" }})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// worker is a process that wants the lease, until stop.
type worker struct {
	stop  context.CancelFunc
	began chan struct{} // a word for each time that its work began
	ended chan error    // and ended, with the cause of its context
	gone  chan error
}

// start has it work; running counts those that do, and fails the test beyond one.
func start(t *testing.T, l *lease.Lease, running *atomic.Int32) *worker {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &worker{stop, make(chan struct{}, 10), make(chan error, 10), make(chan error, 1)}
	go func() {
		w.gone <- l.Run(ctx, func(ctx context.Context) error {
			if running.Add(1) > 1 {
				t.Error("two work at a time")
			}
			w.began <- struct{}{}
			<-ctx.Done()
			running.Add(-1)
			w.ended <- context.Cause(ctx)
			return nil
		})
	}()
	t.Cleanup(func() { stop() })
	return w
}

func await[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Fatal("waited for", what)
	}
	return v
}

// TestOneAtATime: the second waits, and comes as soon as the first has gone.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	var running atomic.Int32
	one := start(t, wish(t, b, "one"), &running)
	await(t, "the first", one.began)
	held, ok, err := lease.Read(t.Context(), bustest.Client(t, b), key)
	if err != nil || !ok || held.Holder != "one" || string(held.Says) != `"one works"` || held.At.IsZero() {
		t.Fatalf("%+v, %v, %v", held, ok, err)
	}
	two := start(t, wish(t, b, "two"), &running)
	client := bustest.Client(t, b)
	kv, err := client.KV(t.Context(), subject.MembersKV)
	if err != nil {
		t.Fatal(err)
	}
	stands, err := kv.Watch(t.Context(), key+".waiting.*", jetstream.UpdatesOnly())
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the second to stand by", stands.Updates())
	if err := stands.Stop(); err != nil {
		t.Fatal(err)
	}
	if names, err := lease.StandingBy(t.Context(), client, key); err != nil || !slices.Equal(names, []string{"two"}) {
		t.Errorf("standing by: %v, %v", names, err)
	}
	one.stop()
	if err := await(t, "the first's end", one.gone); err != nil {
		t.Fatal(err)
	}
	await(t, "the second", two.began)
	two.stop()
	if err := await(t, "the second's end", two.gone); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := lease.Read(t.Context(), bustest.Client(t, b), key); ok || err != nil {
		t.Errorf("still held: %v, %v", ok, err)
	}
}

// TestOneThatLosesIt: where the key has become another's, the work is stopped; when that
// one is gone it goes on.
func TestOneThatLosesIt(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	var running atomic.Int32
	one := start(t, wish(t, b, "one"), &running)
	await(t, "the first", one.began)
	kv, err := bustest.Client(t, b).KV(t.Context(), subject.MembersKV)
	if err != nil {
		t.Fatal(err)
	}
	other, err := json.Marshal(lease.Held{Holder: "other", ID: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), key, other); err != nil {
		t.Fatal(err)
	}
	if err := await(t, "the end of the work", one.ended); !errors.Is(err, lease.ErrLost) {
		t.Errorf("the work ended by %v", err)
	}
	await(t, "the work again, as the other's key has expired", one.began)
}

// TestTheBusIsGone: nobody works without it for longer than the key lasts.
func TestTheBusIsGone(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	var running atomic.Int32
	one := start(t, wish(t, b, "one"), &running)
	await(t, "the first", one.began)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := await(t, "the end of the work", one.ended); !errors.Is(err, lease.ErrLost) {
		t.Errorf("the work ended by %v", err)
	}
	one.stop()
	if err := await(t, "its end", one.gone); err != nil {
		t.Error(err)
	}
}

// TestOneThatStopsSlowly: the key is renewed until the work has ended, however long after
// its context that is.
func TestOneThatStopsSlowly(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	written := make(chan struct{}, 1)
	l, err := lease.New(lease.Options{Client: bustest.Client(t, b), Key: key, Says: func() any {
		select {
		case written <- struct{}{}:
		default:
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	began, end, gone := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		gone <- l.Run(ctx, func(ctx context.Context) error {
			close(began)
			<-ctx.Done()
			<-end
			return nil
		})
	}()
	await(t, "the work", began)
	stop()
	for range 3 { // One is of before, and one may have been under way.
		await(t, "a renewal", written)
	}
	if _, ok, err := lease.Read(t.Context(), bustest.Client(t, b), key); !ok || err != nil {
		t.Errorf("not held: %v, %v", ok, err)
	}
	close(end)
	if err := await(t, "its end", gone); err != nil {
		t.Error(err)
	}
	if _, ok, err := lease.Read(t.Context(), bustest.Client(t, b), key); ok || err != nil {
		t.Errorf("still held: %v, %v", ok, err)
	}
}

// TestWorkThatIsDone ends Run.
func TestWorkThatIsDone(t *testing.T) {
	t.Parallel()
	if err := wish(t, bustest.Start(t), "one").Run(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// TestAnErrorOfTheWork ends Run, and gives the key back.
func TestAnErrorOfTheWork(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	broken := errors.New("broken")
	if err := wish(t, b, "one").Run(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	kv, err := bustest.Client(t, b).KV(t.Context(), subject.MembersKV)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Get(t.Context(), key); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("still there: %v", err)
	}
	if _, err := lease.New(lease.Options{}); !errors.Is(err, lease.ErrOptions) {
		t.Error(err)
	}
}
