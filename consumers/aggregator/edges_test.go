package aggregator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// TestPoisonIsParkedOnce is P24: what cannot be used goes to REJECTS with its
// position and why, once though two groups read it and one starts again; its
// neighbours are unaffected.
func TestPoisonIsParkedOnce(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	row := []event.Request{rowAt(5, "ann", "bob", "east")}
	bad := batch{run: "R", seq: 2, rows: row}.message(t)
	bad.Data = []byte("not a batch")
	headless := batch{run: "R", seq: 3, rows: row}.message(t)
	headless.Header[event.HeaderSeq] = []string{"three"}
	short := batch{run: "R", seq: 3, rows: row}.message(t)
	short.Header[event.HeaderRows] = []string{"2"}
	crooked := mark(event.Barrier, "R", hour, 3)
	crooked.Header[event.HeaderUpto] = []string{"1,2,3"}
	publish(t, c,
		batch{run: "R", seq: 1, rows: row}.message(t), bad, headless, short, crooked,
		batch{run: "R", seq: 4, rows: row}.message(t), mark(event.Heartbeat, "R", hour, 4))
	never := Options{Client: bustest.Client(t, b), Group: window.Owners, Advice: Always{}, Metrics: newCounts()}
	start(t, Options{Client: bustest.Client(t, b), Group: window.Fast, Advice: Always{}})
	stop := start(t, never)
	await(t, never.Metrics.(*counts), "four rejects", func() bool { return never.Metrics.(*counts).of(Rejected) == 4 })
	stop()
	start(t, Options{Client: bustest.Client(t, b), Group: window.Owners, Advice: Always{}})
	publish(t, c, mark(event.End, "R", 2*hour, 4))

	got := outputs(t, c, window.Owners, 0, watermarkAt(2*hour))
	want := window.Account{Received: 6, Counted: 2, Malformed: 4}
	if got.commit.Total != want {
		t.Fatalf("account %+v, want %+v", got.commit.Total, want)
	}
	if r := column(got.tables["traffic"], "requests"); r["0 bob east"] != 2 {
		t.Fatalf("traffic %v, want 2", r)
	}
	outputs(t, c, window.Fast, 0, watermarkAt(2*hour))
	r, err := c.Read(t.Context(), subject.RejectsStream, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var text []string
	for _, m := range bustest.Take(t, r, 4) {
		h := m.Header
		text = append(text, fmt.Sprintf("%s seq %s field %s expected %s, %d bytes",
			m.Subject, h["Penstock-Events-Seq"][0], h["Penstock-Field"][0], h["Penstock-Expected"][0], len(m.Data)))
		if m.Pending > uint64(4-len(text)) {
			t.Errorf("%d more rejects than four", m.Pending)
		}
	}
	wanted := []string{
		"rejects.undecodable.web-1 seq 2 field body expected ",
		"rejects.headers.web-1 seq 3 field Penstock-Seq expected a whole number of at least 1",
		"rejects.undecodable.web-1 seq 4 field Penstock-Rows expected the batch's 1 rows",
		"rejects.headers.web-1 seq 5 field Penstock-Upto expected 1 sequences",
	}
	for i := range wanted {
		if !strings.HasPrefix(text[i], wanted[i]) {
			t.Errorf("reject %d: %s\nwant %s", i, text[i], wanted[i])
		}
	}
}

func TestBeyondTheStreamIsRefused(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	commit := window.Commit{Group: window.Owners, Flush: "F", Owner: "x", Covered: 99, Watermark: 5, Reach: 5}
	body, err := commit.Encode()
	if err != nil {
		t.Fatal(err)
	}
	publish(t, c, bus.Msg{
		Subject: subject.Windows(window.Owners, 0), Data: body,
		Header: map[string][]string{event.HeaderSchema: {window.CommitSchema}, window.HeaderFlush: {"F"}},
	})
	a, err := New(Options{Client: c, Group: window.Owners, Advice: Always{}})
	if err != nil {
		t.Fatal(err)
	}
	var beyond *bus.ErrBeyond
	if err := a.Run(t.Context()); !errors.As(err, &beyond) {
		t.Fatalf("got %v, want ErrBeyond", err)
	}
}

func TestUnreadableCommitIsRefused(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	publish(t, c, bus.Msg{Subject: subject.Windows(window.Owners, 0), Data: []byte("{")})
	a, err := New(Options{Client: c, Group: window.Owners, Advice: Always{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Run(t.Context()); !errors.Is(err, ErrCommit) {
		t.Fatalf("got %v, want ErrCommit", err)
	}
}

// TestTrimmedEventsAreLost starts on a stream whose next messages are gone.
func TestTrimmedEventsAreLost(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	one := func(seq uint64, at int64) bus.Msg {
		return batch{run: "R", seq: seq, watermark: at, rows: []event.Request{rowAt(at, "ann", "bob", "east")}}.message(t)
	}
	stop := start(t, Options{Client: bustest.Client(t, b), Group: window.Owners, Advice: Always{}})
	publish(t, c, one(1, 5), mark(event.Barrier, "R", hour, 1))
	outputs(t, c, window.Owners, 0, watermarkAt(hour))
	stop()
	publish(t, c, one(2, hour+5), one(3, hour+6), one(4, hour+7))
	if err := c.Trim(t.Context(), subject.EventsStream, 5); err != nil {
		t.Fatal(err)
	}
	seen := newCounts()
	start(t, Options{Client: bustest.Client(t, b), Group: window.Owners, Advice: Always{}, Metrics: seen})
	publish(t, c, mark(event.End, "R", 2*hour, 4))
	got := outputs(t, c, window.Owners, 0, watermarkAt(2*hour))
	if got.commit.Total.LostBatches != 2 || got.commit.Total.Counted != 2 || seen.of(TrimmedUnder) == 0 {
		t.Fatalf("account %+v", got.commit.Total)
	}
	if len(got.lost) == 0 || got.lost[0].From != hour || got.lost[0].Reason != "trimmed" {
		t.Fatalf("incomplete %+v", got.lost)
	}
}

// TestGreatStateIsOneBatch flushes a state of several messages: all panes and
// the commit, or none.
func TestGreatStateIsOneBatch(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	const batches, rows = 30, 1000
	for k := range batches {
		m := batch{run: "R", seq: uint64(k + 1)}
		for i := range rows {
			name := fmt.Sprintf("%x-%d", uint64(k*rows+i)*0x9E3779B97F4A7C15, i)
			m.rows = append(m.rows, rowAt(int64(i), name, name, "east"))
		}
		publish(t, c, m.message(t))
	}
	publish(t, c, mark(event.End, "R", hour, batches))
	// The clock stands still, so that nothing is due but at the end.
	start(t, Options{Client: bustest.Client(t, b), Group: window.Owners, Advice: Always{}, Clock: clock.NewManual(time.UnixMicro(0))})
	got := outputs(t, c, window.Owners, 0, watermarkAt(hour))
	if got.commit.Panes < 3 || got.count != 2 {
		t.Fatalf("%d panes in %d commits, want a claim and one flush of several", got.commit.Panes, got.count)
	}
	for _, name := range []string{"traffic", "interactions", "places"} {
		if n := got.tables[name].Len(); n != batches*rows {
			t.Errorf("%s: %d rows, want %d", name, n, batches*rows)
		}
	}
}

// TestGaugesHaveTheirPlaceInTheAccount: no rollup reads them yet.
func TestGaugesHaveTheirPlaceInTheAccount(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	start(t, Options{Client: bustest.Client(t, b), Group: window.Fast, Advice: Always{}})
	var g event.Gauges
	for k := range 3 {
		row := event.NewGauge(int64(k))
		row.Site, row.Server = "east", "s1"
		g.Append(&row)
	}
	var e event.GaugeEncoder
	body, err := e.Encode(nil, &g)
	if err != nil {
		t.Fatal(err)
	}
	h := event.Header{Schema: event.GaugeSchema, Encoding: event.EncodingS2, Run: "R", Seq: 1, Rows: 3, Watermark: 2}
	publish(t, c, bus.Msg{Subject: subject.Events(0, "web-1"), Header: h.Fields(), Data: body}, mark(event.End, "R", hour, 1))
	got := outputs(t, c, window.Fast, 0, watermarkAt(hour))
	if want := (window.Account{Received: 3, Counted: 3}); got.commit.Total != want || len(got.tables) != 0 {
		t.Fatalf("account %+v, tables %v", got.commit.Total, got.tables)
	}
}

// TestTrimmerKeepsWhatIsNotCovered trims to the least over groups and
// partitions, and no further.
func TestTrimmerKeepsWhatIsNotCovered(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 2; o.Purpose = bus.Replay })
	c := bustest.Client(t, b)
	trim := NewTrimmer(bustest.Client(t, b), window.Groups, clock.System(), zerolog.Nop())
	done := make(chan error, 1)
	ctx := t.Context()
	go func() { done <- trim.Run(ctx) }()
	for _, g := range window.Groups {
		start(t, Options{Client: bustest.Client(t, b), Group: g, Advice: Always{}, Covered: trim.Covered, Purpose: bus.Replay})
	}
	publish(t, c,
		batch{run: "R", partition: 0, seq: 1, rows: []event.Request{rowAt(1, "ann", "bob", "east")}}.message(t),
		batch{run: "R", partition: 1, seq: 1, rows: []event.Request{rowAt(2, "ann", "cid", "east")}}.message(t),
		mark(event.Barrier, "R", hour, 1, 1),
		batch{run: "R", partition: 1, seq: 2, watermark: hour, rows: []event.Request{rowAt(hour+2, "ann", "cid", "east")}}.message(t))
	for {
		st, err := c.State(ctx, subject.EventsStream)
		if err != nil {
			t.Fatal(err)
		}
		if st.FirstSeq == 4 {
			break
		}
		if st.FirstSeq > 4 {
			t.Fatalf("trimmed to %d, though 4 is not covered", st.FirstSeq)
		}
	}
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestTrimmerStopsWithoutAWarning: being told to stop is no fault, also when it
// comes between the wake and the trim.
func TestTrimmerStopsWithoutAWarning(t *testing.T) {
	c := bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Partitions = 1; o.Purpose = bus.Replay }))
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 64 { // Which of wake and stop is seen first is left to chance.
		trim := NewTrimmer(c, []string{window.Owners}, clock.System(), zerolog.New(&said))
		trim.Covered(window.Owners, 0, 1)
		if err := trim.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if said.Len() > 0 {
		t.Errorf("said %s", &said)
	}
}

// TestTimedFlushes moves the clock by hand.
func TestTimedFlushes(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	clk := clock.NewManual(time.UnixMicro(1e15))
	start(t, Options{Client: bustest.Client(t, b), Group: window.Fast, Advice: Always{}, Clock: clk})
	last := func() *window.Commit {
		m, err := c.Last(t.Context(), subject.WindowsStream, subject.Windows(window.Fast, 0))
		if errors.Is(err, bus.ErrNoMessage) {
			return new(window.Commit)
		}
		if err != nil {
			t.Fatal(err)
		}
		commit, err := window.CommitOf(m.Header, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		return commit
	}
	// until moves the clock by steps until the last commit is as wanted, and
	// returns how far it went.
	until := func(step time.Duration, done func(*window.Commit) bool) time.Duration {
		t.Helper()
		deadline := time.After(bustest.Timeout)
		for at := time.Duration(0); ; at += step {
			if done(last()) {
				return at
			}
			select {
			case <-deadline:
				t.Fatalf("not after %v; last %+v", at, last())
			default:
			}
			clk.Advance(step)
		}
	}
	if err := clk.Await(t.Context(), 1); err != nil { // the ticker: it has claimed
		t.Fatal(err)
	}
	claim := last().Flush

	// Panes go out a second after the last flush; without an event nothing does.
	publish(t, c, batch{run: "R", seq: 1, watermark: 5, rows: []event.Request{rowAt(5, "ann", "bob", "east")}}.message(t))
	until(time.Second, func(c *window.Commit) bool { return c.Covered == 1 && c.Panes == 1 })
	flush := last().Flush
	for range 5 {
		clk.Advance(time.Second)
	}
	if got := last().Flush; got != flush || got == claim {
		t.Fatal("a flush of nothing")
	}

	// The watermark passes a window's end: a commit without panes.
	publish(t, c, mark(event.Heartbeat, "R", 10_000_000, 1))
	until(time.Second, func(c *window.Commit) bool { return c.Watermark == 10_000_000 && c.Panes == 0 })

	// It does not pass another: the covered sequence still moves, after 5 min.
	publish(t, c, mark(event.Heartbeat, "R", 10_500_000, 1))
	if at := until(time.Minute, func(c *window.Commit) bool { return c.Covered == 3 }); at < DefaultFlushOwners-time.Minute {
		t.Fatalf("a commit without need after %v", at)
	}

	// Renewed daily.
	flush = last().Flush
	if at := until(time.Hour, func(c *window.Commit) bool { return c.Flush != flush }); at < 23*time.Hour {
		t.Fatalf("renewed after %v", at)
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 2 })
	c := bustest.Client(t, b)
	for name, o := range map[string]Options{
		"no client":    {Group: window.Owners},
		"no group":     {Client: c, Group: "slow"},
		"no partition": {Client: c, Group: window.Fast, Partitions: []int{2}},
		"negative":     {Client: c, Group: window.Fast, FlushBytes: -1},
	} {
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: got %v, want ErrOptions", name, err)
		}
	}
}
