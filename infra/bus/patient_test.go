package bus_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
	"penstock/schemas/subject"
)

// patientClient opens a patient bus at an address and a client of it.
func patientClient(t *testing.T, at string, opts ...bustest.Option) (*bus.Bus, *bus.Client) {
	t.Helper()
	o := bus.Options{URL: "nats://" + at, Patient: true, Logger: zerolog.Nop(), Partitions: bus.DefaultPartitions}
	for _, f := range opts {
		f(&o)
	}
	b, err := bus.Open(testContext(t), o)
	if err != nil {
		t.Fatalf("a patient bus that is away: %v", err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b, bustest.Client(t, b)
}

func listenTo(at string) bustest.Option {
	return func(o *bus.Options) { o.Listen = at }
}

// TestABusThatComesLater: everything is made while nobody listens, and works
// once somebody does.
func TestABusThatComesLater(t *testing.T) {
	t.Parallel()
	at := testserver.FreeAddress(t)
	b, c := patientClient(t, at)
	if c.Connected() || !errors.Is(c.Usable(), bus.ErrAway) || c.Fault() != nil || c.Partitions() != bus.DefaultPartitions {
		t.Errorf("away: connected %v, usable %v, fault %v, %d partitions", c.Connected(), c.Usable(), c.Fault(), c.Partitions())
	}
	for what, f := range map[string]func(context.Context) error{
		"Ready": c.Ready, "Init": b.Init, "Check": b.Check,
		"Publish": func(ctx context.Context) error {
			_, err := c.Publish(ctx, bus.Msg{Subject: "events.0.web"})
			return err
		},
		"PublishFenced": func(ctx context.Context) error {
			_, err := c.PublishFenced(ctx, flush("mine", 2), 0)
			return err
		},
	} {
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := f(short); !errors.Is(err, bus.ErrAway) {
			t.Errorf("%s of a bus that is away: %v", what, err)
		}
		cancel()
	}
	r, err := c.Read(t.Context(), subject.EventsStream, nil, 1)
	if err != nil || !r.Interrupted() {
		t.Fatalf("a reader of a bus that is away: %v", err)
	}

	near := bustest.Start(t, listenTo(at))
	if err := c.Ready(testContext(t)); err != nil {
		t.Fatalf("the bus is there: %v", err)
	}
	if !c.Connected() || c.Usable() != nil {
		t.Errorf("the bus is there: connected %v, usable %v", c.Connected(), c.Usable())
	}
	publish(t, c, "events.0.web", 3)
	if got := bustest.Take(t, r, 3); got[2].Seq != 3 {
		t.Errorf("read %+v", got)
	}

	// Away and back again: what it gives up for is the connection, not the bus.
	near.Suspend()
	waitFor(t, "the loss", func() bool { return errors.Is(c.Usable(), bus.ErrAway) })
	if err := near.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	publish(t, c, "events.0.web", 1)
	if got := bustest.Take(t, r, 1); got[0].Seq != 4 {
		t.Errorf("read %+v", got)
	}
	// The connection of the bus's own comes back by itself, and may be later.
	waitFor(t, "the bus's own connection", func() bool {
		err := b.Init(testContext(t))
		if err != nil && !errors.Is(err, bus.ErrAway) {
			t.Fatal(err)
		}
		return err == nil
	})
	if b.Replicas() != 1 {
		t.Errorf("%d replicas", b.Replicas())
	}
}

// TestABusThatIsThereIsNotAway: a patient start is as good as any other.
func TestABusThatIsThereIsNotAway(t *testing.T) {
	t.Parallel()
	near := bustest.Start(t, listenTo("127.0.0.1:0"), func(o *bus.Options) { o.Partitions = 3 })
	at := strings.TrimPrefix(near.URL(), "nats://")
	// It waits for a second, which is over if the machine stands still.
	waitFor(t, "a start that has seen the bus", func() bool {
		_, c := patientClient(t, at, func(o *bus.Options) { o.Partitions = 0 })
		return c.Usable() == nil && c.Partitions() == 3
	})
	// Whoever may not wait is told so by the context, and gets a client all the same.
	b, _ := patientClient(t, at)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := b.Client(over, "late"); err != nil || c.Partitions() != bus.DefaultPartitions {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestABusOfOtherPartitions is a fault until it is another bus.
func TestABusOfOtherPartitions(t *testing.T) {
	t.Parallel()
	at := testserver.FreeAddress(t)
	_, c := patientClient(t, at)
	other := bustest.Start(t, listenTo(at), func(o *bus.Options) { o.Partitions = 3 })
	var diff *bus.DiffError
	waitFor(t, "the fault", func() bool { return errors.As(c.Fault(), &diff) })
	if want := "stream EVENTS: metadata penstock.partitions: have 3, want 8"; !strings.Contains(diff.Error(), want) {
		t.Errorf("got %v, want %s", diff, want)
	}
	if !errors.As(c.Usable(), &diff) || !c.Connected() {
		t.Errorf("connected %v, usable: %v", c.Connected(), c.Usable())
	}
	if _, err := c.Publish(testContext(t), bus.Msg{Subject: "events.7.web"}); !errors.As(err, &diff) {
		t.Errorf("published: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.Ready(short); !errors.As(err, &diff) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ready: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	bustest.Start(t, listenTo(at))
	if err := c.Ready(testContext(t)); err != nil || c.Fault() != nil {
		t.Errorf("the right bus came: %v, fault %v", err, c.Fault())
	}
}

// TestABusWithoutStreams is usable once somebody has made them, without a new
// connection.
func TestABusWithoutStreams(t *testing.T) {
	t.Parallel()
	at := testserver.FreeAddress(t)
	_, c := patientClient(t, at)
	r, err := c.Read(t.Context(), subject.WindowsStream, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	near, err := bus.Open(testContext(t), bus.Options{Dir: t.TempDir(), Listen: at, Logger: zerolog.Nop(), Sync: bus.SyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = near.Close() }()
	waitFor(t, "the fault", func() bool { return errors.Is(c.Fault(), bus.ErrNotReady) })
	if err := near.Init(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	publish(t, c, "windows.fast.0", 1)
	bustest.Take(t, r, 1)
}

// TestABusThatForgot comes back with less than a reader has read. The reader ends
// with the reason; who publishes goes on.
func TestABusThatForgot(t *testing.T) {
	t.Parallel()
	at := testserver.FreeAddress(t)
	_, c := patientClient(t, at)
	first := bustest.Start(t, listenTo(at))
	if err := c.Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	r, err := c.Read(t.Context(), subject.EventsStream, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, c, "events.0.web", 5)
	bustest.Take(t, r, 5)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	bustest.Start(t, listenTo(at))
	waitFor(t, "the end of the reader", func() bool {
		select {
		case _, ok := <-r.C():
			return !ok
		default:
			return false
		}
	})
	var beyond *bus.ErrBeyond
	if !errors.As(r.Err(), &beyond) || beyond.Want != 6 {
		t.Errorf("the reader ended with %v", r.Err())
	}
	if err := c.Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if seq, err := c.Publish(testContext(t), bus.Msg{Subject: "events.0.web"}); err != nil || seq != 1 {
		t.Errorf("published at %d, %v", seq, err)
	}
}

// TestAPatientClientOfAnOldServer is told, and goes on looking.
func TestAPatientClientOfAnOldServer(t *testing.T) {
	t.Parallel()
	at := oldServer(t)
	_, c := patientClient(t, at)
	waitFor(t, "the fault", func() bool { return errors.Is(c.Fault(), bus.ErrVersion) })
	if err := c.Usable(); !errors.Is(err, bus.ErrVersion) {
		t.Errorf("usable: %v", err)
	}
}

// TestSilenceHoldsNobodyUp: an address that takes connections and says nothing is
// no reason to wait.
func TestSilenceHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	began := time.Now()
	b, err := bus.Open(testContext(t), bus.Options{URL: "nats://" + l.Addr().String(), Patient: true, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Client(testContext(t), "web")
	if err != nil {
		t.Fatal(err)
	}
	// The bus and the client give it a second each; without that they would wait as long as
	// their contexts. What is between leaves room for a machine that stands still.
	if took := time.Since(began); took > bustest.Timeout/2 {
		t.Errorf("the start took %v", took)
	}
	c.Close()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Ready(testContext(t)); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("ready after close: %v", err)
	}
}

// TestPatienceChangesNothingElse: an embedded bus, and a client that is not
// patient.
func TestPatienceChangesNothingElse(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Patient = true }))
	if err := errors.Join(c.Usable(), c.Fault(), c.Ready(testContext(t))); err != nil || !c.Connected() {
		t.Errorf("embedded: %v", err)
	}
	b := bustest.Start(t)
	c = bustest.Client(t, b)
	b.Suspend()
	waitFor(t, "the loss", func() bool { return !c.Connected() })
	if err := errors.Join(c.Usable(), c.Fault()); err != nil {
		t.Errorf("not patient: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.Ready(short); !errors.Is(err, bus.ErrAway) {
		t.Errorf("ready without a connection: %v", err)
	}
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestReadySaysWhy: whoever waits in vain hears what is wrong.
func TestReadySaysWhy(t *testing.T) {
	t.Parallel()
	_, c := patientClient(t, testserver.FreeAddress(t))
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Ready(short); !errors.Is(err, syscall.ECONNREFUSED) || !errors.Is(err, bus.ErrAway) {
		t.Errorf("nobody listens: %v", err)
	}
	refusing := scripted(t, func(conn net.Conn) {
		fmt.Fprint(conn, "INFO {\"server_id\":\"x\",\"version\":\"2.15.3\",\"max_payload\":1048576,\"headers\":true,\"auth_required\":true}\r\n")
		fmt.Fprint(conn, "-ERR 'Authorization Violation'\r\n")
	})
	_, c = patientClient(t, refusing)
	waitFor(t, "the reason", func() bool {
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := c.Ready(short)
		return errors.Is(err, nats.ErrAuthorization) && errors.Is(err, bus.ErrAway)
	})
	if c.NC.IsClosed() {
		t.Error("the client has given up")
	}
}
