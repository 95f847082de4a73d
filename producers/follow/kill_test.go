package follow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/publisher"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// followed is set for the process that follows: URL of the bus, folder of the
// logs, folder of the spool, and where it kills itself ("send:n", "commit:n",
// "committed:n", "never:0").
const followed = "FOLLOW_LOGS"

// ownDisorder is how late a line of the test's writer may come.
const ownDisorder = time.Second

// doomed is a publisher whose process dies at a point.
type doomed struct {
	*publisher.Publisher
	point string
	left  int
}

func (d *doomed) come(point string) {
	if point != d.point {
		return
	}
	if d.left--; d.left == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (d *doomed) Send(ctx context.Context, r *event.Request) error {
	d.come("send")
	return d.Publisher.Send(ctx, r)
}

func (d *doomed) Commit(ctx context.Context, position []byte) error {
	d.come("commit")
	err := d.Publisher.Commit(ctx, position)
	d.come("committed")
	return err
}

// followHere is the process that follows, until SIGTERM or its point.
func followHere() int {
	f := strings.Fields(os.Getenv(followed))
	point, n, _ := strings.Cut(f[3], ":")
	left, err := strconv.Atoi(n)
	if err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	b, err := bus.Open(ctx, bus.Options{URL: f[0], Logger: zerolog.Nop()})
	if err != nil {
		panic(err)
	}
	c, err := b.Client(ctx, "follow")
	if err != nil {
		panic(err)
	}
	p, err := publisher.New(ctx, publisher.Options{Client: c, Entry: "web", Positions: true, SpoolDir: f[2], Logger: zerolog.Nop(), MaxRows: 100})
	if err != nil {
		panic(err)
	}
	w, err := New(Options{
		Paths: []string{f[1] + "/access.log"}, Parser: text, Publisher: &doomed{p, point, left}, Client: c, Entry: "web",
		Logger:    zerolog.New(os.Stderr),
		PollLeast: 2 * time.Millisecond, PollMost: 20 * time.Millisecond, ScanEvery: 20 * time.Millisecond,
		CommitEvery: 10 * time.Millisecond, Settle: 200 * time.Millisecond, Linger: time.Second, SearchFor: 10 * time.Second,
		Disorder: ownDisorder,
	})
	if err != nil {
		panic(err)
	}
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Timeout)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		panic(err)
	}
	return 0
}

// victim is the process, which is started again whenever it has died.
type victim struct {
	t      testing.TB
	args   []string
	cmd    *exec.Cmd
	said   *said
	killed int
	ended  chan struct{}
}

// start starts it with its next death.
func (r *victim) start(point string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), followed+"="+strings.Join(append(r.args, point), " "))
	cmd.Stdout, cmd.Stderr = r.said, r.said
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state tells
		close(ended)
	}()
	r.cmd, r.ended = cmd, ended
}

// dead reports whether it was killed since the start, and counts that.
func (r *victim) dead() bool {
	r.t.Helper()
	select {
	case <-r.ended:
	default:
		return false
	}
	if ws, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
		r.t.Fatalf("the reader ended by itself: %v", r.cmd.ProcessState)
	}
	r.killed++
	return true
}

// tallied reads EVENTS as it grows.
type tallied struct {
	mu       sync.Mutex
	rows     map[int64]int
	batches  map[string]bool
	repeats  int
	late     int
	greatest map[int]int64 // watermark that was said of a partition
	n        atomic.Int64
}

func (c *tallied) run(ctx context.Context, t testing.TB, client *bus.Client) {
	r, err := client.Read(ctx, subject.EventsStream, nil, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Close()
	for {
		select {
		case m, ok := <-r.C():
			if !ok {
				return
			}
			if err := c.take(m, client.Partitions()); err != nil {
				t.Error(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (c *tallied) take(m bus.Msg, partitions int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if event.IsMark(m.Header) {
		mark, err := event.ParseMark(m.Header, partitions)
		for p := range partitions {
			c.greatest[p] = max(c.greatest[p], mark.Watermark)
		}
		return err
	}
	h, err := event.ParseHeader(m.Header)
	if err != nil {
		return err
	}
	_, p, err := subject.Entry(m.Subject)
	if err != nil {
		return err
	}
	key := fmt.Sprintf("%s/%d/%d", h.Run, p, h.Seq)
	if c.batches[key] {
		c.repeats++
		return nil
	}
	c.batches[key] = true
	var d event.Decoder
	var batch event.Requests
	if err := d.Decode(m.Data, h.Encoding, &batch); err != nil {
		return err
	}
	for i := range batch.Len() {
		r := batch.Row(i)
		c.rows[r.Bytes]++
		if r.Mark != event.InTime || r.Time < c.greatest[p] {
			c.late++
		}
	}
	c.greatest[p] = max(c.greatest[p], h.Watermark)
	c.n.Store(int64(len(c.rows)))
	return nil
}

// server writes a log as a web server does: it keeps its file open until it is
// told to open it again.
type server struct {
	w    *world
	mu   sync.Mutex
	file *os.File
	err  error
}

func (s *server) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reopen()
}

func (s *server) reopen() {
	if s.file != nil {
		s.err = errors.Join(s.err, s.file.Close())
	}
	f, err := os.OpenFile(s.w.path("access.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	s.file, s.err = f, errors.Join(s.err, err)
}

// write writes some lines at once, the last one in two parts now and then.
func (s *server) write(r *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for range 1 + r.IntN(8) {
		b.WriteString(s.w.line())
	}
	text := b.String()
	cut := len(text)
	if r.IntN(4) == 0 {
		cut = r.IntN(len(text))
	}
	for _, part := range []string{text[:cut], text[cut:]} {
		if _, err := s.file.WriteString(part); err != nil {
			s.err = errors.Join(s.err, err)
		}
	}
}

// run writes until ctx ends.
func (s *server) run(ctx context.Context) {
	r := rand.New(rand.NewPCG(7, 7))
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.write(r)
		}
	}
}

// still runs f while the server writes nothing.
func (s *server) still(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// TestKill is what issue 4 must show (4): a log is written all the time and
// rotated in each way, its reader is killed again and again, and every line is on
// the bus once, none of them late.
//
// The writer holds still between the copy and the truncation of copytruncate, for
// lines written there are gone by nature. And a file is deleted only when all of
// it was read, for a dead reader has nothing to hold it with.
func TestKill(t *testing.T) {
	t.Parallel()
	each, kills := 2, 6
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		each, kills = 20, 20
	}
	b := bustest.Start(t, func(o *bus.Options) { o.Listen = "127.0.0.1:0" })
	w := newWorld(t)
	c := &tallied{rows: map[int64]int{}, batches: map[string]bool{}, greatest: map[int]int64{}}
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	t.Cleanup(func() { cancel(); tasks.Wait() })
	client := bustest.Client(t, b)
	tasks.Go(func() { c.run(ctx, t, client) })
	srv := &server{w: w}
	srv.open()
	writing, enough := context.WithCancel(ctx)
	defer enough()
	tasks.Go(func() { srv.run(writing) })

	random := rand.New(rand.NewPCG(11, 11))
	rd := &victim{t: t, args: []string{b.URL(), w.dir, t.TempDir()}, said: &said{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(rd.said.String())
		}
	})
	points := []string{"send", "commit", "committed"}
	next := func() string {
		if rd.killed >= kills {
			return "never:0"
		}
		p := points[rd.killed%len(points)]
		n := 3 + random.IntN(20)
		if p == "send" {
			n *= 40
		}
		return fmt.Sprintf("%s:%d", p, n)
	}
	rd.start(next())
	alive := func() {
		if !rd.dead() {
			return
		}
		if rd.killed == 2 {
			time.Sleep(ownDisorder * 3 / 2) // a backlog beyond the disorder
		}
		rd.start(next())
	}
	lines := func() int {
		srv.mu.Lock()
		defer srv.mu.Unlock()
		return w.n
	}
	read := func(n int) {
		w.wait(t, "the reader to read on", func() bool { alive(); return int(c.n.Load()) >= n })
	}
	rotate := []func(){
		func() { // rename and create
			w.shift("access.log")
			srv.still(func() { w.rename("access.log", "access.log.1"); srv.reopen() })
		},
		func() { // rename; the server opens the new one late
			w.shift("access.log")
			w.rename("access.log", "access.log.1")
			w.append("access.log", "")
			time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
			srv.open()
		},
		func() { srv.still(func() { w.copyTruncate("access.log") }) },
		func() { // rename and compress
			w.shift("access.log")
			srv.still(func() { w.rename("access.log", "access.log.1"); srv.reopen() })
			w.compress("access.log.1")
		},
		func() { // delete and create
			srv.still(func() {
				read(w.n)
				w.remove("access.log")
				srv.reopen()
			})
		},
		func() { // copy, truncate and compress
			srv.still(func() { w.copyTruncate("access.log") })
			w.compress("access.log.1")
		},
	}
	for i := range each * len(rotate) {
		for done := time.After(time.Duration(20+random.IntN(60)) * time.Millisecond); done != nil; {
			select {
			case <-done:
				done = nil
			case <-time.After(5 * time.Millisecond):
				alive()
			}
		}
		rotate[i%len(rotate)]()
		for j := 9; ; j++ { // old ones go, as with logrotate, once they were read
			old := fmt.Sprintf("access.log.%d", j)
			_, plain := os.Stat(w.path(old))
			_, packed := os.Stat(w.path(old + ".gz"))
			if plain != nil && packed != nil {
				break
			}
			read(lines() - 1000)
			_ = os.Remove(w.path(old))
			_ = os.Remove(w.path(old + ".gz"))
		}
	}
	w.wait(t, "the kills", func() bool { alive(); return rd.killed >= kills })
	enough()
	read(lines())
	if err := rd.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-rd.ended
	if code := rd.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	srv.still(func() {
		if srv.err = errors.Join(srv.err, srv.file.Close()); srv.err != nil {
			t.Error(srv.err)
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	w.book.rows = c.rows
	w.check()
	if c.late > 0 {
		t.Errorf("%d rows are late", c.late)
	}
	t.Logf("%d lines, %d rotations, %d kills; %d batches, %d repeated", w.n, each*len(rotate), rd.killed, len(c.batches), c.repeats)
}

// wait waits for what other processes do.
func (w *world) wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * bustest.Timeout); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s; files %v", what, w.files())
		}
	}
}
