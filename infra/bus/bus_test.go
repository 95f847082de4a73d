package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/subject"
)

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Timeout)
	t.Cleanup(cancel)
	return ctx
}

func publish(t *testing.T, c *bus.Client, subj string, n int) {
	t.Helper()
	for i := range n {
		if _, err := c.Publish(testContext(t), bus.Msg{Subject: subj, Data: fmt.Appendf(nil, "%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPublishAndRead(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	if c.Partitions() != bus.DefaultPartitions {
		t.Errorf("partitions: %d", c.Partitions())
	}
	publish(t, c, "events.0.web", 3)
	publish(t, c, "events.1.web", 2)
	r, err := c.Read(t.Context(), subject.EventsStream, []string{"events.0.*"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, c, "events.0.web", 2)
	var seqs []uint64
	for _, m := range bustest.Take(t, r, 5) {
		if m.Subject != "events.0.web" || m.Time.IsZero() {
			t.Errorf("message %+v", m)
		}
		seqs = append(seqs, m.Seq)
	}
	if got := fmt.Sprint(seqs); got != "[1 2 3 6 7]" {
		t.Errorf("sequences %s", got)
	}
	r.Close()
	if _, ok := <-r.C(); ok || r.Err() != nil {
		t.Errorf("after Close: %v, %v", ok, r.Err())
	}
}

func TestFolderInUseIsRefused(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	o := b.Options()
	if _, err := bus.Open(testContext(t), o); !errors.Is(err, bus.ErrInUse) {
		t.Errorf("second open: %v", err)
	}
	bustest.Reopen(t, b) // and free once the first is closed
}

func TestClientNeedsStreams(t *testing.T) {
	t.Parallel()
	b, err := bus.Open(testContext(t), bus.Options{Dir: t.TempDir(), Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if _, err := b.Client(testContext(t), "x"); !errors.Is(err, bus.ErrNotReady) {
		t.Errorf("client of an empty bus: %v", err)
	}
	var diff *bus.DiffError
	if err := b.Check(testContext(t)); !errors.As(err, &diff) || len(diff.Diffs) != 10 {
		t.Errorf("check of an empty bus: %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, o := range []bus.Options{
		{},
		{Dir: "x", Prefix: "a.b"},
		{Dir: "x", Partitions: 26},
		{Dir: "x", Partitions: -1},
		{URL: "nats://localhost", Listen: "localhost:1"},
	} {
		if _, err := bus.Open(testContext(t), o); err == nil {
			t.Errorf("opened %+v", o)
		}
	}
	for _, listen := range []string{"nowhere", "localhost:port", "localhost:70000"} {
		if _, err := bus.Open(testContext(t), bus.Options{Dir: t.TempDir(), Listen: listen}); err == nil {
			t.Errorf("listens at %s", listen)
		}
	}
}

func TestListenForOtherProcesses(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Listen, o.Partitions = "127.0.0.1:0", 3 })
	other, err := bus.Open(testContext(t), bus.Options{URL: b.URL(), Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if err := other.Check(testContext(t)); err != nil {
		t.Errorf("check from outside: %v", err)
	}
	c := bustest.Client(t, other)
	if c.Partitions() != 3 {
		t.Errorf("partitions from outside: %d", c.Partitions())
	}
	publish(t, c, "events.0.web", 1)
	r, err := bustest.Client(t, b).Read(t.Context(), subject.EventsStream, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	bustest.Take(t, r, 1)
	if bustest.Start(t).URL() != "" {
		t.Error("a bus without Listen has a port")
	}
}

func TestPrefixesAreApart(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Listen, o.Prefix = "127.0.0.1:0", "blue" })
	green, err := bus.Open(testContext(t), bus.Options{URL: b.URL(), Prefix: "green", Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = green.Close() }()
	if err := green.Init(testContext(t)); err != nil {
		t.Fatal(err)
	}
	cb, cg := bustest.Client(t, b), bustest.Client(t, green)
	publish(t, cb, "events.0.web", 2)
	publish(t, cg, "events.0.web", 1)
	for name, c := range map[string]*bus.Client{"blue": cb, "green": cg} {
		want := map[string]uint64{"blue": 2, "green": 1}[name]
		st, err := c.State(testContext(t), subject.EventsStream)
		if err != nil || st.Msgs != want {
			t.Errorf("%s holds %d messages, %v", name, st.Msgs, err)
		}
		m, err := c.Last(testContext(t), subject.EventsStream, "events.0.*")
		if err != nil || m.Subject != "events.0.web" {
			t.Errorf("last of %s: %v, %v", name, m.Subject, err)
		}
		kv, err := c.KV(testContext(t), subject.LocationsKV)
		if err != nil || kv.Bucket() != name+"_locations" {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := kv.Create(testContext(t), "owner", []byte(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		objects, err := c.Objects(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := objects.PutString(testContext(t), "snapshot", name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := cb.Subject("a") + " " + cb.Stream("S") + " " + cb.Bare("blue.a"); got != "blue.a blue_S a" {
		t.Errorf("names: %s", got)
	}
}

func TestCheckTellsWhatDiffers(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 4 })
	if err := b.Init(testContext(t)); err != nil {
		t.Errorf("init again: %v", err)
	}
	c := bustest.Client(t, b)
	s, err := c.JS.Stream(testContext(t), subject.EventsStream)
	if err != nil {
		t.Fatal(err)
	}
	conf := s.CachedInfo().Config
	conf.MaxAge, conf.Subjects = time.Hour, append(conf.Subjects, "other.>")
	if _, err := c.JS.UpdateStream(testContext(t), conf); err != nil {
		t.Fatal(err)
	}
	if err := c.JS.DeleteKeyValue(testContext(t), subject.OperatorKV); err != nil {
		t.Fatal(err)
	}
	err = b.Check(testContext(t))
	want := strings.TrimSpace(`
the bus is not as it should be:
  stream EVENTS: subjects: have [events.> other.>], want [events.>]
  stream EVENTS: max_age: have 1h0m0s, want 168h0m0s
  bucket operator: bucket: have none, want one`)
	if err == nil || err.Error() != want {
		t.Errorf("check:\n%v\nwant:\n%s", err, want)
	}
	// Init mends what is missing and still refuses to change what is there.
	if err := b.Init(testContext(t)); err == nil || strings.Contains(err.Error(), "operator") {
		t.Errorf("init: %v", err)
	}
	if b.Check(testContext(t)).Error() == "" {
		t.Error("init changed a stream")
	}
}

func TestCheckOfAnotherPurposeAndPartitions(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Purpose, o.Listen = 4, bus.Replay, "127.0.0.1:0" })
	for _, tc := range []struct {
		o    bus.Options
		want []string
	}{
		{bus.Options{Purpose: bus.Replay}, nil},
		{bus.Options{Purpose: bus.Replay, Partitions: 4}, nil},
		{bus.Options{Purpose: bus.Replay, Partitions: 5}, []string{"metadata penstock.partitions: have 4, want 5"}},
		{bus.Options{Purpose: bus.Serve}, []string{
			"EVENTS: discard: have DiscardNew, want DiscardOld",
			"metadata penstock.purpose: have replay, want serve", "OUTCOMES: max_age: have 0s, want 720h0m0s",
		}},
	} {
		tc.o.URL, tc.o.Logger = b.URL(), zerolog.Nop()
		other, err := bus.Open(testContext(t), tc.o)
		if err != nil {
			t.Fatal(err)
		}
		err = other.Check(testContext(t))
		if (err == nil) != (tc.want == nil) {
			t.Errorf("%+v: %v", tc.o, err)
		}
		for _, w := range tc.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%v: %v lacks %q", tc.o.Purpose, err, w)
			}
		}
		_ = other.Close()
	}
}

func TestCloseIsSafeTwiceAndEndsAll(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	r, err := c.Read(t.Context(), subject.EventsStream, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		c.Close()
		r.Close()
	}
	if _, err := b.Client(testContext(t), "x"); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("client of a closed bus: %v", err)
	}
	if _, err := c.Read(testContext(t), subject.EventsStream, nil, 0); err == nil {
		t.Error("read from a closed client")
	}
	if c.NC.Status() != nats.CLOSED {
		t.Errorf("connection is %v", c.NC.Status())
	}
}
