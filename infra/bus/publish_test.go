package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/subject"
)

func flush(who string, n int) []bus.Msg {
	msgs := make([]bus.Msg, n)
	for i := range msgs {
		msgs[i] = bus.Msg{
			Subject: "windows.fast.0", Data: fmt.Appendf(nil, "%s %d", who, i),
			Header: map[string][]string{"Penstock-Flush": {who}},
		}
	}
	return msgs
}

// TestWritersFenceEachOther lets two writers take turns without telling each
// other: one that missed the other's write is refused, whole.
func TestWritersFenceEachOther(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	one, two := bustest.Client(t, b), bustest.Client(t, b)
	for _, n := range []int{1, 3} { // a plain message, an atomic batch
		last := uint64(0)
		if m, err := one.Last(testContext(t), subject.WindowsStream, "windows.fast.0"); err == nil {
			last = m.Seq
		}
		seq, err := one.PublishFenced(testContext(t), flush("one", n), last)
		if err != nil || seq != last+uint64(n) {
			t.Fatalf("first write of %d: %d, %v", n, seq, err)
		}
		if _, err := two.PublishFenced(testContext(t), flush("two", n), last); !errors.Is(err, bus.ErrConflict) {
			t.Errorf("write of %d by one who missed the first: %v", n, err)
		}
		m, err := two.Last(testContext(t), subject.WindowsStream, "windows.fast.0")
		if err != nil || m.Seq != seq || m.Header["Penstock-Flush"][0] != "one" || string(m.Data) != fmt.Sprint("one ", n-1) {
			t.Errorf("last: %+v, %v", m, err)
		}
		if _, err := two.PublishFenced(testContext(t), flush("two", n), m.Seq); err != nil {
			t.Errorf("write of %d after reading: %v", n, err)
		}
		if _, err := one.Publish(testContext(t), flush("one", 1)[0], bus.ExpectLast(seq)); !errors.Is(err, bus.ErrConflict) {
			t.Errorf("plain write: %v", err)
		}
	}
	// All or nothing: 1 + 1, then 3 + 3, and nothing of the refused ones.
	if st, err := one.State(testContext(t), subject.WindowsStream); err != nil || st.Msgs != 8 {
		t.Errorf("%d messages, %v", st.Msgs, err)
	}
}

func TestFencedOverSeveralSubjects(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	decision := func(epoch string) []bus.Msg {
		return []bus.Msg{
			{Subject: "decisions.placement", Data: []byte(epoch)},
			{Subject: "commands.placement.east", Data: []byte(epoch)},
			{Subject: "commands.placement.east", Data: []byte(epoch)},
			{Subject: "commands.placement.west", Data: []byte(epoch)},
		}
	}
	if _, err := c.PublishFenced(testContext(t), decision("1"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PublishFenced(testContext(t), decision("2"), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PublishFenced(testContext(t), decision("3"), 1); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("stale: %v", err)
	}
	m, err := c.Last(testContext(t), subject.CommandsStream, "commands.placement.west")
	if err != nil || string(m.Data) != "2" || m.Seq != 8 {
		t.Errorf("last of west: %+v, %v", m, err)
	}
	if m, err = c.Get(testContext(t), subject.CommandsStream, 5); err != nil || m.Subject != "decisions.placement" {
		t.Errorf("get: %+v, %v", m, err)
	}
	if _, err = c.Get(testContext(t), subject.CommandsStream, 9); !errors.Is(err, bus.ErrNoMessage) {
		t.Errorf("get beyond the end: %v", err)
	}
}

func TestFencedLimits(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	if _, err := c.PublishFenced(testContext(t), nil, 0); err == nil {
		t.Error("nothing was published")
	}
	if _, err := c.PublishFenced(testContext(t), flush("x", bus.MaxBatch+1), 0); !errors.Is(err, bus.ErrTooLarge) {
		t.Errorf("too many: %v", err)
	}
	big := flush("x", 2)
	big[1].Data = bytes.Repeat([]byte("x"), bus.MaxMessage+1)
	if _, err := c.PublishFenced(testContext(t), big, 0); !errors.Is(err, bus.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	full := flush("x", bus.MaxBatch)
	for i := range 40 { // 20 MB in one batch
		full[i].Data = bytes.Repeat([]byte{byte(i)}, 512<<10)
	}
	seq, err := c.PublishFenced(testContext(t), full, 0)
	if err != nil || seq != bus.MaxBatch {
		t.Errorf("a full batch: %d, %v", seq, err)
	}
	r, err := c.Read(t.Context(), subject.WindowsStream, []string{"windows.fast.*"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range bustest.Take(t, r, bus.MaxBatch) {
		if !bytes.Equal(m.Data, full[i].Data) {
			t.Fatalf("message %d differs", i)
		}
	}
}

// TestLostAnswerIsNoConflict cuts the bus under a fenced write. Its state is
// then unknown, never a conflict; sent again it is refused by itself at most.
func TestLostAnswerIsNoConflict(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	b.Suspend()
	for _, n := range []int{1, 3} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := c.PublishFenced(ctx, flush("x", n), 0)
		cancel()
		if err == nil || errors.Is(err, bus.ErrConflict) {
			t.Errorf("%d without a bus: %v", n, err)
		}
	}
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the connection", func() bool { return c.NC.IsConnected() })
	if _, err := c.PublishFenced(testContext(t), flush("x", 3), 0); err != nil {
		t.Errorf("after the cut: %v", err)
	}
	// The first answer is thrown away, as a cut would: again under the same fence.
	if _, err := c.PublishFenced(testContext(t), flush("x", 3), 0); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("sent again: %v", err)
	}
	m, err := c.Last(testContext(t), subject.WindowsStream, "windows.fast.0")
	if err != nil || m.Header["Penstock-Flush"][0] != "x" || m.Seq != 3 {
		t.Errorf("what was written: %+v, %v", m, err)
	}
}

func TestMessageIDsAreRemembered(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	m := bus.Msg{Subject: "outcomes.placement.east", Data: []byte("done")}
	for i := range 3 {
		seq, err := c.Publish(testContext(t), m, bus.MsgID("owner/1"))
		if err != nil || seq != 1 {
			t.Errorf("publish %d: %d, %v", i, seq, err)
		}
		if i == 1 {
			b = bustest.Reopen(t, b)
			c = bustest.Client(t, b)
		}
	}
}

func TestTrim(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	for range 5 {
		publish(t, c, "events.0.web", 1)
		publish(t, c, "events.1.web", 1)
	}
	for _, tc := range []struct {
		below       uint64
		subjects    []string
		first, msgs uint64
	}{
		{0, nil, 1, 10},
		{1, nil, 1, 10},
		{4, []string{"events.1.web"}, 1, 9},
		{4, []string{"events.0.*", "events.1.*"}, 4, 7},
		{8, nil, 8, 3},
		{99, nil, 11, 0},
	} {
		if err := c.Trim(testContext(t), subject.EventsStream, tc.below, tc.subjects...); err != nil {
			t.Fatal(err)
		}
		st, err := c.State(testContext(t), subject.EventsStream)
		if err != nil || st.FirstSeq != tc.first || st.Msgs != tc.msgs || st.LastSeq != 10 {
			t.Errorf("below %d of %v: %+v, %v", tc.below, tc.subjects, st, err)
		}
	}
	if _, err := c.Last(testContext(t), subject.EventsStream, "events.0.web"); !errors.Is(err, bus.ErrNoMessage) {
		t.Errorf("last of an empty stream: %v", err)
	}
	publish(t, c, "events.0.web", 1)
	if m, err := c.Last(testContext(t), subject.EventsStream, "events.0.web"); err != nil || m.Seq != 11 {
		t.Errorf("the next sequence: %d, %v", m.Seq, err)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for v, ok := range map[string]bool{
		"2.15.3": true, "v2.15.3": true, "2.15.10": true, "2.16.0": true, "3.0.0": true, "2.16.0-RC.1": true,
		"2.15.3+build.7": true, "2.15.4-beta": true,
		"2.15.2": false, "2.9.25": false, "1.99.99": false, "2.15.3-RC.1": false, "2.15.2+x": false,
		"": false, "2.15": false, "x.y.z": false, "2.15.3.1": false, "-2.15.3": false, "2.15.99999999999": false,
	} {
		if err := bus.CheckVersion(v); (err == nil) != ok || err != nil && !errors.Is(err, bus.ErrVersion) {
			t.Errorf("%q: %v", v, err)
		}
	}
	if got := bus.CheckVersion("2.9.25").Error(); got != "version 2.9.25, need 2.15.3 or later: the NATS server is too old" {
		t.Error(got)
	}
}
