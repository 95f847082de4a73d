package publisher

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/schemas/event"
)

// newGrouped opens a publisher with positions that is closed with the test.
func newGrouped(t testing.TB, c *bus.Client, f ...func(*Options)) *Publisher {
	t.Helper()
	o := Options{Client: c, Entry: "web", Logger: zerolog.Nop(), Positions: true, MaxRows: 20}
	f = append([]func(*Options){func(o *Options) { o.SpoolDir = t.TempDir() }}, f...)
	return open(t, o, f)
}

// send sends rows [from, to) and moves the horizon with them.
func send(t testing.TB, p *Publisher, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		r := row(i)
		if err := p.Send(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		p.Horizon(r.Time)
	}
}

func at(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func rowOf(position []byte) int {
	n, _ := binary.Uvarint(position)
	return int(n)
}

func commit(t testing.TB, p *Publisher, n int) {
	t.Helper()
	if err := p.Commit(testContext(t), at(n)); err != nil {
		t.Fatal(err)
	}
}

// TestCommit: what is not committed is not sent; a group carries rows, malformed
// lines and the position; an ended run is not ended again.
func TestCommit(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	dir := t.TempDir()
	p := newGrouped(t, c, func(o *Options) { o.SpoolDir = dir })
	if p.Position() != nil {
		t.Error("a position of nothing")
	}
	send(t, p, 0, 500)
	waitFor(t, "full batches to be encoded", func() bool {
		p.group.mu.Lock()
		defer p.group.mu.Unlock()
		return len(p.group.batches) == p.group.cut && p.group.cut > 10
	})
	if s := readAll(t, c); len(s.rows) != 0 {
		t.Fatalf("%d rows were sent without a commit", len(s.rows))
	}
	if err := p.End(testContext(t), 0); !errors.Is(err, ErrUncommitted) {
		t.Errorf("end of what is not committed: %v", err)
	}
	p.Malformed(3)
	commit(t, p, 500)
	commit(t, p, 500) // of nothing
	p.Malformed(2)
	commit(t, p, 500) // of malformed lines alone
	send(t, p, 500, 510)
	commit(t, p, 510)
	commit(t, p, 511) // of a position alone
	if s := p.Stats(); s.Commits != 4 {
		t.Errorf("%d groups", s.Commits)
	}
	if err := p.End(testContext(t), row(511).Time); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	next := newGrouped(t, c, func(o *Options) { o.SpoolDir = dir })
	if got := rowOf(next.Position()); got != 511 {
		t.Errorf("position %d", got)
	}
	send(t, next, 511, 600) // not committed: forgotten by Close, to be read again
	if err := next.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if s := next.Stats(); s.Uncommitted != 89-uint64(openRows(next)) || s.Waiting != 0 {
		t.Errorf("stats %+v", s)
	}
	if err := next.Commit(testContext(t), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("commit after close: %v", err)
	}
	s := readAll(t, c)
	if len(s.rows) != 510 || s.lines != 5 || s.repeats != 0 {
		t.Errorf("%d rows, %d malformed, %d repeats", len(s.rows), s.lines, s.repeats)
	}
	ends := slices.DeleteFunc(s.marks, func(m event.Mark) bool { return m.Kind != event.End })
	if len(ends) != 1 || ends[0].Run != p.Run() {
		t.Errorf("ends %+v", ends)
	}
}

func openRows(p *Publisher) (n int) {
	for i := range p.slots {
		if b := p.slots[i].open; b != nil {
			n += b.Len()
		}
	}
	return n
}

// TestTornGroup cuts a file of groups at each of its bytes, and turns each of its
// bytes over: what is left are the groups before, as a whole, and their position.
func TestTornGroup(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 3 })
	c := bustest.Client(t, b)
	b.Suspend()
	dir := t.TempDir()
	p := newGrouped(t, c, func(o *Options) { o.SpoolDir = dir })
	path := p.spool.active.path
	type state struct{ size, batches, position int }
	states := []state{{int(p.spool.size()), 0, 0}}
	for n := 0; n < 40; {
		to := n + 1 + n%17
		send(t, p, n, to)
		n = to
		commit(t, p, n)
		states = append(states, state{int(p.spool.size()), int(sumOf(p.Sequences())), n})
	}
	abandon(p)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	count, err := newCounters(nil, "web")
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, broken []byte, at int) {
		t.Helper()
		want := states[0]
		for _, s := range states {
			if s.size <= at {
				want = s
			}
		}
		var r oldRun
		rest, err := r.parseHead(broken, 3)
		if err != nil {
			if at >= states[0].size {
				t.Fatalf("%s %d: %v", what, at, err)
			}
			return
		}
		left, last := r.parse(broken, rest, &segment{}, count)
		if len(r.batches) != want.batches || rowOf(last.position) != want.position ||
			int(sumOf(r.head.seqs)) != want.batches || len(broken)-len(left) != want.size {
			t.Fatalf("%s %d: %d batches, position %d, %d bytes; want %+v",
				what, at, len(r.batches), rowOf(last.position), len(broken)-len(left), want)
		}
	}
	for i := range content {
		check("cut at", content[:i], i)
		content[i] ^= 0x55
		check("turned over", content, i)
		content[i] ^= 0x55
	}
	check("whole", content, len(content))
}

func sumOf(us []uint64) (n uint64) {
	for _, u := range us {
		n += u
	}
	return n
}

// TestSpoolFilesCarryThePosition goes through many small files, with and without
// a bus: Commit waits while the spool is full, and can be called again; the
// position is always there; old files go.
func TestSpoolFilesCarryThePosition(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	dir := t.TempDir()
	opts := func(o *Options) { o.SpoolDir, o.SpoolMax = dir, 200_000 }
	p := newGrouped(t, c, opts)
	n := 0
	for range 60 {
		send(t, p, n, n+100)
		n += 100
		commit(t, p, n)
	}
	if p.spool.number < 3 {
		t.Errorf("only %d files", p.spool.number)
	}
	b.Suspend()
	for full := false; !full; {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		send(t, p, n, n+100)
		n += 100
		err := p.Commit(ctx, at(n))
		cancel()
		if full = errors.Is(err, context.DeadlineExceeded); err != nil && !full {
			t.Fatal(err)
		}
	}
	if got := p.spool.size(); got > 200_000 {
		t.Errorf("%d bytes in the spool", got)
	}
	if got := rowOf(p.Position()); got >= n {
		t.Errorf("position %d of a group that was not written", got)
	}
	done := make(chan error, 1)
	go func() { done <- p.Commit(t.Context(), at(n)) }()
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	waitFor(t, "everything to be sent", func() bool { return p.Stats().Waiting == 0 })
	abandon(p)
	if files, _ := filepath.Glob(filepath.Join(dir, "*.spool")); len(files) > 2 {
		t.Errorf("files %v", files)
	}
	p = newGrouped(t, c, opts)
	if got := rowOf(p.Position()); got != n {
		t.Errorf("position %d of %d", got, n)
	}
	if s := readAll(t, c); len(s.rows) != n {
		t.Errorf("%d rows of %d", len(s.rows), n)
	}
	send(t, p, n, n+9000)
	if err := p.Commit(testContext(t), at(n)); err != nil && !errors.Is(err, ErrSpoolSmall) {
		t.Errorf("a group as large as the spool: %v", err)
	}
}

// TestGroupBound: more than a group holds is refused, and taken after a commit.
func TestGroupBound(t *testing.T) {
	t.Parallel()
	p := newGrouped(t, bustest.Client(t, bustest.Start(t)))
	p.group.mu.Lock()
	p.group.bytes = groupMax
	p.group.mu.Unlock()
	r := row(1)
	if err := p.Send(t.Context(), &r); !errors.Is(err, ErrGroup) {
		t.Errorf("send: %v", err)
	}
	commit(t, p, 1)
	send(t, p, 1, 2)
}

// TestDiskErrors: a write that fails leaves the group, and the next Commit writes
// it; a sync that fails ends the publisher, and the next start has the position
// of what is there.
func TestDiskErrors(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	dir := t.TempDir()
	var broken *os.File
	p := newGrouped(t, c, func(o *Options) {
		o.SpoolDir = dir
		o.at = func(point string) {
			if point == "written" && broken != nil {
				_ = broken.Close() // what follows, the sync, fails
			}
		}
	})
	send(t, p, 0, 100)
	p.spool.mu.Lock()
	file := p.spool.active.file
	p.spool.active.file = nil
	p.spool.mu.Unlock()
	if err := p.Commit(testContext(t), at(100)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("commit without a file: %v", err)
	}
	p.spool.mu.Lock()
	p.spool.active.file = file
	p.spool.mu.Unlock()
	send(t, p, 100, 150)
	commit(t, p, 150)
	send(t, p, 150, 200)
	broken = file
	if err := p.Commit(testContext(t), at(200)); !errors.Is(err, ErrSync) {
		t.Errorf("commit without a sync: %v", err)
	}
	r := row(200)
	if err := p.Send(t.Context(), &r); !errors.Is(err, ErrSync) {
		t.Errorf("send after it: %v", err)
	}
	if err := p.Commit(testContext(t), at(200)); !errors.Is(err, ErrSync) {
		t.Errorf("commit after it: %v", err)
	}
	abandon(p)
	next := newGrouped(t, c, func(o *Options) { o.SpoolDir = dir })
	if got := rowOf(next.Position()); got != 200 {
		t.Errorf("position %d", got)
	}
	commit(t, next, 200)
	if err := next.End(testContext(t), row(200).Time); err != nil {
		t.Fatal(err)
	}
	if s := readAll(t, c); len(s.rows) != 200 {
		t.Errorf("%d rows", len(s.rows))
	}
}

// TestHeartbeatsSayWhatIsCommitted: rows that are not committed may be read again
// by the next run, so that no watermark may pass them.
func TestHeartbeatsSayWhatIsCommitted(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	clk := clock.NewManual(time.UnixMicro(1_700_000_000_000_000))
	p := newGrouped(t, c, func(o *Options) { o.Clock = clk })
	if err := clk.Await(testContext(t), 2); err != nil { // heartbeats and pump
		t.Fatal(err)
	}
	beat := func() event.Mark {
		t.Helper()
		before := p.Stats().HeartbeatsConfirmed
		waitFor(t, "a heartbeat", func() bool {
			clk.Advance(heartbeatEvery / 4)
			return p.Stats().HeartbeatsConfirmed > before
		})
		marks := readAll(t, c).marks
		return marks[len(marks)-1]
	}
	if m := beat(); m.Watermark != earliest || sumOf(m.Upto) != 0 {
		t.Errorf("before anything: %+v", m)
	}
	send(t, p, 0, 500)
	if m := beat(); m.Watermark != earliest || sumOf(m.Upto) != 0 {
		t.Errorf("before the commit: %+v", m)
	}
	commit(t, p, 500)
	waitFor(t, "the group to be sent", func() bool { clk.Advance(lookEvery); return p.Stats().Waiting == 0 })
	send(t, p, 500, 600)
	// On a busy machine this clock is so fast that the bus seems to be slow; then the
	// watermark stands still for a while.
	m := beat()
	for m.Watermark == earliest {
		m = beat()
	}
	if m.Watermark != row(499).Time || sumOf(m.Upto) == 0 || sumOf(m.Upto) >= sumOf(p.Sequences()) {
		t.Errorf("after it: %+v, cut %v", m, p.Sequences())
	}
}

// TestSpoolOfAnother: a spool with a position is not a live publisher's, and one
// of a bus with other partitions is refused while it holds batches.
func TestSpoolOfAnother(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	dir := t.TempDir()
	in := func(o *Options) { o.SpoolDir = dir }
	b.Suspend()
	p := newGrouped(t, c, in)
	send(t, p, 0, 10)
	commit(t, p, 10)
	abandon(p)
	live := Options{Client: c, Entry: "web", Logger: zerolog.Nop(), MaxAge: time.Second, SpoolDir: dir}
	if _, err := New(testContext(t), live); !errors.Is(err, ErrPositions) {
		t.Errorf("a live publisher: %v", err)
	}
	other := bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Partitions = 3 }))
	o := Options{Client: other, Entry: "web", Logger: zerolog.Nop(), Positions: true, SpoolDir: dir}
	if _, err := New(testContext(t), o); !errors.Is(err, ErrPartitions) {
		t.Errorf("another bus: %v", err)
	}
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	p = newGrouped(t, c, in)
	waitFor(t, "the rest to be sent", func() bool { return p.Stats().Waiting == 0 })
	abandon(p)
	if p = newGrouped(t, other, in); rowOf(p.Position()) != 10 {
		t.Errorf("position %v", p.Position())
	}
	for _, wrong := range []Options{
		{Client: c, Entry: "web", Positions: true},
		{Client: c, Entry: "web", Positions: true, SpoolDir: t.TempDir(), MaxAge: time.Second},
	} {
		if _, err := New(testContext(t), wrong); !errors.Is(err, ErrNotReplay) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if err := newReplay(t, c).Commit(testContext(t), nil); !errors.Is(err, ErrNotReplay) {
		t.Errorf("commit of a replay: %v", err)
	}
}

// TestOldRunFirst: what an earlier run left is sent and ended before the new
// run's first group.
func TestOldRunFirst(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	dir := t.TempDir()
	in := func(o *Options) { o.SpoolDir = dir }
	b.Suspend()
	first := newGrouped(t, c, in)
	send(t, first, 0, 300)
	commit(t, first, 300)
	upto := first.Sequences()
	send(t, first, 300, 400) // torn: never committed
	abandon(first)
	second := newGrouped(t, c, in)
	n := rowOf(second.Position())
	send(t, second, n, 500)
	commit(t, second, 500)
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := second.End(testContext(t), row(500).Time); err != nil {
		t.Fatal(err)
	}
	s := readAll(t, c)
	if n != 300 || len(s.rows) != 500 {
		t.Errorf("position %d, %d rows", n, len(s.rows))
	}
	// Else windows could pass what it has once the earlier ones have ended.
	if m := s.marks[0]; s.order[0] != second.Run()+" heartbeat" || m.Watermark != earliest {
		t.Errorf("the new run is not heard of first: %v, %+v", s.order[0], m)
	}
	s.order = slices.DeleteFunc(s.order, func(o string) bool { return strings.HasSuffix(o, "heartbeat") })
	want := []string{first.Run(), first.Run() + " end", second.Run(), second.Run() + " end"}
	if got := slices.Compact(s.order); !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	for _, m := range s.marks {
		if m.Run == first.Run() && m.Kind == event.End && fmt.Sprint(m.Upto) != fmt.Sprint(upto) {
			t.Errorf("end of the first run: %v, committed were %v", m.Upto, upto)
		}
	}
}
