package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/publisher"
	"penstock/pipeline/report"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// whole says that tests take the time that the issue asks for.
var whole = os.Getenv("PENSTOCK_WHOLE") != ""

// TestTwoAggregatorsOnOnePartition stops and wakes two aggregator processes in
// turn while events keep coming. Each wakes up in the belief that the partition
// is its own, and is fenced. Windows and account are what one process that nobody
// disturbs makes of the same events.
func TestTwoAggregatorsOnOnePartition(t *testing.T) {
	t.Parallel()
	least, atLeast := 2, time.Duration(0)
	if whole {
		least, atLeast = 5, 60*time.Second
	}
	dir := t.TempDir()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 1, "127.0.0.1:0" })
	c := bustest.Client(t, b)
	args := func(name, url string) []string {
		return []string{"--roles", "aggregator", "--nats", url, "--config", configure(t, dir, settings{1, 0.3}), "--name", name, "--state", filepath.Join(dir, name)}
	}
	began := time.Now()
	feed := startFeed(t, c)
	one := serve(t, args("one", b.URL())...)
	owners := map[string]string{}
	for _, g := range []string{window.Owners, window.Fast} {
		eventually(t, "the first claim", func() bool { owners[g] = ownerOf(t, c, g); return owners[g] != "" })
	}
	pair := [2]*server{one, serve(t, args("two", b.URL())...)}
	fenced := [2]int{}
	awake := 0
	for fenced[0] < least || fenced[1] < least || time.Since(began) < atLeast {
		// The one that is awake now falls asleep; the other wakes up, or has just
		// come, and takes over.
		pair[awake].signal(syscall.SIGSTOP)
		awake = 1 - awake
		pair[awake].signal(syscall.SIGCONT)
		for g, first := range owners {
			eventually(t, fmt.Sprintf("process %d to claim %s", awake, g), func() bool { return (ownerOf(t, c, g) == first) == (awake == 0) })
		}
		fenced[awake] = pair[awake].count("penstock_aggregator_happenings_total", `what="fenced"`)
		t.Logf("%.1f s: process %d has the partition; fenced %v", time.Since(began).Seconds(), awake, fenced)
	}
	pair[1-awake].signal(syscall.SIGCONT)
	rows, malformed := feed.end()
	settled(t, c)
	for _, s := range pair {
		s.stop()
	}
	total := checkAudit(t, c)
	if total.Counted+total.Late != rows || total.Malformed != malformed || total.Received != rows+malformed {
		t.Errorf("account %+v, sent %d rows and %d malformed lines", total, rows, malformed)
	}
	if total.Late == 0 || malformed == 0 {
		t.Errorf("%d late rows and %d malformed lines: they are to be in the test", total.Late, malformed)
	}

	calm := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 1, "127.0.0.1:0" })
	cc := bustest.Client(t, calm)
	copyEvents(t, c, cc)
	undisturbed := serve(t, args("calm", calm.URL())...)
	settled(t, cc)
	if n := undisturbed.count("penstock_aggregator_happenings_total", `what="fenced"`); n != 0 {
		t.Errorf("the undisturbed one was fenced %d times", n)
	}
	undisturbed.stop()
	if want := checkAudit(t, cc); total != want {
		t.Errorf("account %+v, undisturbed %+v", total, want)
	}
	sameWindows(t, c, cc)
}

// sameWindows compares the merged windows of two buses.
func sameWindows(t *testing.T, a, b *bus.Client) {
	t.Helper()
	x, y := t.TempDir(), t.TempDir()
	for dir, c := range map[string]*bus.Client{x: a, y: b} {
		if err := report.WriteMatrices(t.Context(), c, dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range window.Rollups {
		same(t, x, y, filepath.Join("matrices", r.Name+".parquet"))
	}
	if i, err := os.Stat(filepath.Join(x, "matrices", "traffic.parquet")); err != nil || i.Size() < 5000 {
		t.Errorf("traffic.parquet has next to nothing: %v, %v", i, err)
	}
}

// ownerOf is who committed last; empty while nobody has.
func ownerOf(t testing.TB, c *bus.Client, group string) string {
	t.Helper()
	m, err := c.Last(t.Context(), subject.WindowsStream, subject.Windows(group, 0))
	if err != nil {
		return ""
	}
	commit, err := window.CommitOf(m.Header, m.Data)
	if err != nil {
		return ""
	}
	return commit.Owner
}

// settled waits until both groups have covered all of EVENTS.
func settled(t testing.TB, c *bus.Client) {
	t.Helper()
	events, err := c.State(t.Context(), subject.EventsStream)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []string{window.Owners, window.Fast} {
		for p := range c.Partitions() {
			eventually(t, "everything to be covered", func() bool {
				m, err := c.Last(t.Context(), subject.WindowsStream, subject.Windows(g, p))
				if err != nil {
					return false
				}
				commit, err := window.CommitOf(m.Header, m.Data)
				// An end mark that all partitions get is the last message.
				return err == nil && commit.Covered >= events.LastSeq
			})
		}
	}
}

// checkAudit checks the account over the stream and returns that of the group
// owners, which is that of all groups.
func checkAudit(t testing.TB, c *bus.Client) window.Account {
	t.Helper()
	a, err := report.NewAudit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !a.Holds() {
		t.Errorf("audit: %v", a.Faults)
	}
	for _, g := range a.Groups {
		if g.Total != a.Groups[0].Total || len(g.Incomplete) > 0 || g.Total.LostBatches > 0 {
			t.Errorf("group %s: %+v, %d incomplete; group %s: %+v", g.Group, g.Total, len(g.Incomplete), a.Groups[0].Group, a.Groups[0].Total)
		}
	}
	return a.Groups[0].Total
}

// copyEvents puts the messages of EVENTS on another bus.
func copyEvents(t testing.TB, from, to *bus.Client) {
	t.Helper()
	st, err := from.State(t.Context(), subject.EventsStream)
	if err != nil {
		t.Fatal(err)
	}
	in, err := from.Read(t.Context(), subject.EventsStream, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for m := range in.C() {
		if _, err := to.Publish(t.Context(), bus.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}); err != nil {
			t.Fatal(err)
		}
		if m.Seq == st.LastSeq {
			return
		}
	}
	t.Fatalf("events ended: %v", in.Err())
}

// feed sends rows without a pause until it is told to end.
type feed struct {
	t               testing.TB
	stop            chan struct{}
	done            chan error
	rows, malformed int64
}

func startFeed(t testing.TB, c *bus.Client) *feed {
	t.Helper()
	f := &feed{t: t, stop: make(chan struct{}), done: make(chan error, 1)}
	p, err := publisher.New(t.Context(), publisher.Options{Client: c, Entry: "web-1", Run: "feed", MaxRows: 16, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	go func() { f.done <- f.run(t.Context(), p) }()
	return f
}

// run sends a crowd's requests, one window of an hour about every 150 ms of wall
// time, with a late row now and then.
func (f *feed) run(ctx context.Context, p *publisher.Publisher) error {
	r := rand.New(rand.NewPCG(6, 1))
	at, barrier := epoch, epoch+hour
	for {
		select {
		case <-f.stop:
			if err := p.End(ctx, barrier); err != nil {
				return err
			}
			return p.Close(ctx)
		case <-time.After(5 * time.Millisecond):
		}
		for range 1 + r.IntN(30) {
			at += int64(r.IntN(10_000_000))
			if at >= barrier {
				if err := p.Barrier(ctx, barrier); err != nil {
					return err
				}
				barrier = at/hour*hour + hour
			}
			row := rowOf(r, at)
			if r.IntN(50) == 0 {
				row.Time, row.Mark = at-int64(r.IntN(7200))*1e6, event.Late
			}
			if err := p.Send(ctx, &row); err != nil {
				return err
			}
			f.rows++
		}
		if r.IntN(20) == 0 {
			p.Malformed(1)
			f.malformed++
		}
		p.Horizon(at - 60e6)
	}
}

// end sends the last rows and returns how many there were.
func (f *feed) end() (rows, malformed int64) {
	f.t.Helper()
	close(f.stop)
	if err := <-f.done; err != nil {
		f.t.Fatal(err)
	}
	return f.rows, f.malformed
}

const hour = int64(time.Hour / time.Microsecond)

// epoch is where the event time of these tests begins.
var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func rowOf(r *rand.Rand, at int64) event.Request {
	q := event.NewRequest(at)
	q.User, q.Owner = fmt.Sprintf("user-%d", r.IntN(40)), fmt.Sprintf("owner-%d", r.IntN(25))
	q.ToSite, q.ToComponent, q.FromComponent = []string{"east", "west"}[r.IntN(2)], "web", "front"
	q.Lat, q.Lon = 30+20*r.Float32(), -120+50*r.Float32()
	q.Op, q.Status, q.Bytes = event.Op(r.IntN(2)), 200, int64(r.IntN(5000))
	q.Wait, q.Service, q.Network = int64(r.IntN(1000)), int64(r.IntN(50_000)), int64(r.IntN(90_000))
	return q
}
